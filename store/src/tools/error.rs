//! Why a tool gave up, and whose fault that is.

use std::path::PathBuf;

use state::block::BlockError;
use state::error::StorageError;
use state::invariants::Broken;
use types::{Hash, Rejection};

/// Why a block was not executed again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A transaction breaks a rule that needs no state.
    #[error("transaction {position}: {rejection}")]
    Transaction {
        /// Its place in the block.
        position: usize,
        /// Why.
        rejection: Box<Rejection>,
    },
    /// The block breaks a rule.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The validators have decided the block, its transactions are those of its header, and it cannot be
    /// executed over this database.
    #[error("the validators have decided it, but it cannot be executed: {0}")]
    Decided(BlockError),
    /// The certificate does not prove that the block was decided.
    #[error("certificate: {reason}")]
    Certificate {
        /// Why, for people.
        reason: String,
    },
    /// Our fault.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

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
    /// A database was written to while it was copied.
    #[error("{} changed while it was copied: stop the node that uses it, and try again", path.display())]
    Torn {
        /// Its folder.
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

impl ReplayError {
    /// What kept a block from execution that has a good certificate. The sender is to blame only for another
    /// content than the header's, and for a block that does not stand on the tip, be it of another history.
    /// All else the validators have decided.
    pub(super) fn of_certified(error: BlockError) -> Self {
        match error {
            BlockError::Header {
                field: "chainId" | "index" | "previousHash" | "txCount" | "txRoot",
                ..
            }
            | BlockError::TooLarge { .. }
            | BlockError::Storage(_) => Self::Block(error),
            BlockError::Header { .. }
            | BlockError::TooMuchWork { .. }
            | BlockError::Transaction { .. } => Self::Decided(error),
        }
    }
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

    /// Whether the validators have decided a block that cannot be executed over this database: its state is
    /// wrong, or the program's rules are.
    #[must_use]
    pub fn is_of_own_state(&self) -> bool {
        let Self::Replay { source, .. } = self else { return false };
        matches!(**source, ReplayError::Decided(_))
    }

    /// The height of the block that is wrong, if this is the fault of who sent it: it cannot be read, was not
    /// decided, does not stand on the tip, or has other transactions than its header says.
    #[must_use]
    pub fn wrong_block(&self) -> Option<u64> {
        match self {
            Self::Storage(StorageError::Block { height, .. }) => Some(*height),
            Self::Replay { height, source } => match &**source {
                ReplayError::Transaction { .. } | ReplayError::Certificate { .. } => Some(*height),
                ReplayError::Block(BlockError::Storage(_))
                | ReplayError::Decided(_)
                | ReplayError::Storage(_) => None,
                ReplayError::Block(_) => Some(*height),
            },
            Self::Storage(_)
            | Self::File { .. }
            | Self::Exists { .. }
            | Self::Torn { .. }
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
