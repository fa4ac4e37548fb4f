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
mod execution;
mod follow;
mod replay;
mod size;
mod tail;

use std::path::PathBuf;

use state::block::BlockError;
use state::error::StorageError;
use state::invariants::Broken;
use types::Hash;

pub use ahead::Supply;
pub use archive::{export, import};
pub(crate) use copies::{beside, sync_folder};
pub use copies::{restore, snapshot};
pub use execution::{Certificates, EncodedBlock, PrecheckedBlock, Replay, ReplayError, V7Height};
pub use follow::follow;
pub(super) use replay::refuse_interrupted;
pub use replay::{Verified, rebuild, rollback, verify};
pub use size::{TableStats, compact, stats};

/// How far a tool is; called often, cheap to ignore.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Why a tool gave up.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The database failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file or folder could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The place for the result is taken.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file or folder.
        path: PathBuf,
    },
    /// There is nothing to export.
    #[error("there is no block from height {first} to {last}")]
    NoBlocks {
        /// The first height that was asked for.
        first: u64,
        /// The last one, at most the tip.
        last: u64,
    },
    /// A block could not be executed again.
    #[error("block {height}: {source}")]
    Replay {
        /// The block's index.
        height: u64,
        /// Why.
        source: Box<ReplayError>,
    },
    /// A block that should be there is not.
    #[error("block {height} is missing")]
    Missing {
        /// The block's index.
        height: u64,
    },
    /// A hash or root is not what it must be.
    #[error("block {height}: {what} is {found}, expected {expected}")]
    Mismatch {
        /// The block's index.
        height: u64,
        /// Which value.
        what: &'static str,
        /// What was found.
        found: Hash,
        /// What it must be.
        expected: Hash,
    },
    /// A row differs from what the blocks give.
    #[error("table {table}: the row with key {key} {what}")]
    Row {
        /// The table.
        table: &'static str,
        /// The row's key, in hex.
        key: String,
        /// How it differs.
        what: &'static str,
    },
    /// The state breaks a rule that must hold at all times.
    #[error("{0}")]
    Broken(Box<Broken>),
    /// A file is not an export, or was damaged.
    #[error("{}: {what}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// There is no block to take back.
    #[error("the chain is at genesis: there is no block to roll back")]
    AtGenesis,
}

impl ToolError {
    /// The fault of the database, if that is what it is.
    #[must_use]
    pub fn storage(&self) -> Option<&StorageError> {
        let Self::Replay { source, .. } = self else {
            return if let Self::Storage(fault) = self { Some(fault) } else { None };
        };
        if let ReplayError::Storage(fault) = &**source { Some(fault) } else { None }
    }

    /// The height of the block that is wrong, if this is the fault of a block that somebody sent:
    /// it cannot be read, breaks a rule, or was not decided.
    #[must_use]
    pub fn wrong_block(&self) -> Option<u64> {
        match self {
            Self::Storage(StorageError::Block { height, .. }) => Some(*height),
            Self::Replay { height, source } => match &**source {
                ReplayError::Transaction { .. } | ReplayError::Certificate { .. } => Some(*height),
                ReplayError::Block(BlockError::Storage(_)) | ReplayError::Storage(_) => None,
                ReplayError::Block(_) => Some(*height),
            },
            Self::Storage(_)
            | Self::File { .. }
            | Self::Exists { .. }
            | Self::NoBlocks { .. }
            | Self::Missing { .. }
            | Self::Mismatch { .. }
            | Self::Row { .. }
            | Self::Broken(_)
            | Self::Archive { .. }
            | Self::AtGenesis => None,
        }
    }
}
