//! Why the journal cannot be used.

use std::path::{Path, PathBuf};

use super::Owner;

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process works with it.
    #[error("{} is open in another process: one miner per wallet and journal", path.display())]
    InUse {
        /// Which file.
        path: PathBuf,
    },
    /// It is of another wallet, chain or format.
    #[error(
        "the journal is of wallet {}, chain {}, genesis {}, format {}; expected wallet {}, chain {}, genesis {}, format {}",
        found.miner, name(found), found.genesis, found.format,
        wanted.miner, name(wanted), wanted.genesis, wanted.format
    )]
    Foreign {
        /// What it says.
        found: Box<Owner>,
        /// What was expected.
        wanted: Box<Owner>,
    },
    /// The database failed.
    #[error("the journal's database: {0}")]
    Database(Box<redb::Error>),
    /// A record cannot be read.
    #[error("a record of the journal cannot be read: {0}")]
    Damaged(serde_json::Error),
    /// The thread that writes it cannot be started.
    #[error("the thread that writes the journal: {0}")]
    Thread(std::io::Error),
    /// The thread that writes it has ended.
    #[error("the thread that writes the journal has ended")]
    Ended,
    /// A write failed, and nothing of it was written.
    #[error("the journal was not written: {why}")]
    Unwritten {
        /// What failed; of changes that are written together one is enough.
        why: String,
    },
    /// A record cannot be written.
    #[error("a record of the journal cannot be written: {0}")]
    Unwritable(serde_json::Error),
}

/// The chain's id, which an old journal does not have.
fn name(owner: &Owner) -> &str {
    owner.chain_id.as_deref().unwrap_or("unknown")
}

impl JournalError {
    /// Why a file could not be opened.
    pub(super) fn open(path: &Path, error: redb::DatabaseError) -> Self {
        if matches!(error, redb::DatabaseError::DatabaseAlreadyOpen) {
            return Self::InUse { path: path.to_owned() };
        }
        Self::Database(Box::new(error.into()))
    }

    /// Whether the file has not even its tables.
    pub(super) fn is_missing_table(&self) -> bool {
        match self {
            Self::Database(error) => matches!(**error, redb::Error::TableDoesNotExist(_)),
            Self::InUse { .. }
            | Self::Foreign { .. }
            | Self::Damaged(_)
            | Self::Thread(_)
            | Self::Ended
            | Self::Unwritten { .. }
            | Self::Unwritable(_) => false,
        }
    }
}

impl From<redb::Error> for JournalError {
    fn from(error: redb::Error) -> Self {
        Self::Database(Box::new(error))
    }
}

impl From<redb::TransactionError> for JournalError {
    fn from(error: redb::TransactionError) -> Self {
        redb::Error::from(error).into()
    }
}

impl From<redb::TableError> for JournalError {
    fn from(error: redb::TableError) -> Self {
        redb::Error::from(error).into()
    }
}

impl From<redb::StorageError> for JournalError {
    fn from(error: redb::StorageError) -> Self {
        redb::Error::from(error).into()
    }
}

impl From<redb::CommitError> for JournalError {
    fn from(error: redb::CommitError) -> Self {
        redb::Error::from(error).into()
    }
}
