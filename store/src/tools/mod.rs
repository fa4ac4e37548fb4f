//! Work on the database of a stopped node, and [`follow`], which a running node uses to catch up.
//!
//! | tool | needs |
//! |---|---|
//! | [`stats`], [`compact`] | the database |
//! | [`snapshot`], [`restore`] | the database; a snapshot shares its files until they change |
//! | [`export`], [`import`] | a file; importing executes every block |
//! | [`rebuild`], [`verify`], [`rollback`] | room for a second database; they execute every block |
//!
//! [`follow`] takes blocks that peers sent and brings the database in use up to them.
//!
//! Tools that execute blocks check them on other threads ahead of the one that executes
//! (`ahead.rs`), and sync once at their end: a crash before costs blocks of a copy, or of an import
//! that goes on from where the database then stands.
//!
//! The database keeps no undo records: they would cost every commit for something that is almost
//! never done. So `rollback` executes the chain anew up to the block before the tip, and `verify`
//! does the same up to the tip and compares the two databases row by row. A database that began with
//! a snapshot has no blocks to be executed from genesis: `verify` checks what it has (`tail.rs`). What a chain is and
//! whether a certificate is good is given by the caller as a [`Replay`].

mod ahead;
mod archive;
mod copies;
mod error;
mod execution;
mod follow;
mod progress;
mod rebuild;
mod rollback;
mod size;
mod tail;
mod verify;

pub use self::ahead::Supply;
pub use self::archive::{export, import};
pub use self::copies::{restore, snapshot};
pub use self::error::{ReplayError, ToolError};
pub use self::execution::{EncodedBlock, PrecheckedBlock, Replay};
pub use self::follow::follow;
pub use self::progress::Progress;
pub use self::rebuild::rebuild;
pub use self::rollback::rollback;
pub use self::size::{TableStats, compact, stats};
pub use self::verify::{Verified, verify};
pub use crate::certificates::{Certificates, V7Height};
