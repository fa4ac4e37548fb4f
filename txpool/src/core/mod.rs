//! The pool without its lock.
//!
//! ```text
//!                         Core (`parts`)
//!      ┌──────────┬──────────┼───────────┬──────────┐
//!   admission   commit    rebuild     eviction    query      operations
//!      └──────────┴──────────┼───────────┴──────────┘
//!      ┌──────────┬──────────┴───────────┬──────────┐
//!   Contents    Draft                 History    Limits      parts, each with its own state
//! ```
//!
//! `contents` is what is in the pool, in all its indexes; `draft` is the ledger with what is settled
//! executed on it; `history` is what is told of it; `limits` is how much there may be. An operation
//! borrows the parts that it needs and changes them through their methods alone: `admission` lets
//! transactions in, `promotion` takes them from the queues, `evict` makes room, `rivals` lets what a block
//! can take displace what none takes, `commit` follows the chain, `rebuild` executes again what waits, `candidates` chooses for blocks, `query` answers.

mod admission;
mod candidates;
mod commit;
mod contents;
mod draft;
mod evict;
mod history;
mod limits;
mod parts;
mod promotion;
mod query;
mod rebuild;
mod rejection;
mod rivals;
mod touched;

pub use commit::Committed;
pub(crate) use contents::Contents;
pub(crate) use parts::Core;
pub use query::{Found, Page, SenderContent};
pub use touched::Touched;
