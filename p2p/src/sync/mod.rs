//! Blocks between nodes: what a node that is behind asks of its peers, and what it is answered.
//!
//! ```text
//! peers ──questions──▶ requests ──bounded──▶ reader ──▶ Chain (blocking threads)
//!                       │  └ status, from memory
//! Handle::blocks ──▶ swarm ──▶ a peer's requests
//! ```
//!
//! [`Handle::download`](crate::Handle::download) gets many blocks from several peers at once; whom
//! it asks for what is decided in `schedule.rs`.
//!
//! A question begins with its kind, so that kinds can be added: a variant of `wire::Question`, a
//! method of [`crate::ports::ChainSource`], an arm in `reader.rs`, and a method in `ask.rs`.

mod ask;
mod download;
mod reader;
mod requests;
mod schedule;
mod standing;
pub(crate) mod wire;

pub use ask::AskError;
pub use download::DownloadFigures;
pub(crate) use reader::Reader;
pub(crate) use requests::{QUESTIONS_MAX, SyncQuestion, SyncRequests};
pub use schedule::Range;
