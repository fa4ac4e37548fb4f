//! Faults of storage, and the two ways in which a transaction can fail to execute.

use types::Rejection;
use types::codec::DecodeError;

/// Our fault, never the input's: the database failed or holds what it must not hold.
/// A node that meets one stops.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The database failed.
    #[error("database: {0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A stored value does not decode.
    #[error("table {table}: {source}")]
    Decode {
        /// The table's name.
        table: &'static str,
        /// What is wrong with the bytes.
        source: DecodeError,
    },
    /// A stored value was written by a version that this program does not know.
    #[error("table {table}: a value has version {found}, this program knows {expected}")]
    ValueVersion {
        /// The table's name.
        table: &'static str,
        /// The version of the value.
        found: u8,
        /// The version that is written now.
        expected: u8,
    },
    /// Stored values contradict each other.
    #[error("state is inconsistent: {what}")]
    Inconsistent {
        /// The broken rule.
        what: &'static str,
    },
    /// The state tree failed.
    #[error("state tree: {0}")]
    Tree(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database was written by another format.
    #[error("the database has format {found}, this program reads format {expected}")]
    Format {
        /// What the database says.
        found: u32,
        /// What this program knows.
        expected: u32,
    },
    /// The database belongs to another chain.
    #[error("the database belongs to genesis {found}, not {expected}")]
    Genesis {
        /// The genesis hash in the database.
        found: types::Hash,
        /// The genesis hash of the configuration.
        expected: types::Hash,
    },
    /// Another process has the database open.
    #[error("the database in {} is in use by another process", path.display())]
    Locked {
        /// The folder.
        path: std::path::PathBuf,
    },
    /// There is no database, but what a rollback that was interrupted left is beside its place.
    #[error(
        "there is no database in {}, but {} is there: a rollback was interrupted; give it its place \
         back, or move it away",
        path.display(),
        left.display()
    )]
    Interrupted {
        /// The folder.
        path: std::path::PathBuf,
        /// What was left beside it.
        left: std::path::PathBuf,
    },
    /// There is no database.
    #[error("there is no database in {}", path.display())]
    Missing {
        /// The folder.
        path: std::path::PathBuf,
    },
    /// The database has no genesis yet.
    #[error("the database is empty: no genesis was written")]
    Empty,
    /// What was asked for stands in a block before the first one of a database that began with a
    /// snapshot. No fault of anybody.
    #[error("the blocks before {earliest} are not in this database")]
    History {
        /// The first block that is there.
        earliest: u64,
    },
    /// A state that stood still was asked for too late: the database has moved on by too many blocks to
    /// know it any more. No fault of anybody.
    #[error("the state after block {height} is not kept any more")]
    Moved {
        /// The block after which it was the state.
        height: u64,
    },
    /// The chain's next block has rules that this program does not know. No fault of anybody: another
    /// release goes on.
    #[error(
        "block {height} begins the fork {fork}, which ombra {} does not know: start a release that \
         knows it, on the same home",
        env!("CARGO_PKG_VERSION")
    )]
    UnknownFork {
        /// The fork.
        fork: String,
        /// Its first block.
        height: u64,
    },
    /// The validators have decided the next block by the rules of fork v7, and the votes that fixed its
    /// height stand in blocks before the snapshot with which this database began. No fault of anybody:
    /// once those votes are counted, it goes on.
    #[error(
        "block {height} belongs to the fork v7, and the votes for it in the blocks before the snapshot \
         are not counted yet"
    )]
    UncountedFork {
        /// The block.
        height: u64,
    },
    /// A block was executed by the rules of before fork v7, whose height was counted since.
    #[error("block {height} was executed by the rules of before the fork v7, to which it belongs")]
    FormerRules {
        /// The block.
        height: u64,
    },
    /// A block does not follow the tip.
    #[error("a block of height {found} was to be committed, the next height is {expected}")]
    Height {
        /// The block's height.
        found: u64,
        /// The height after the tip.
        expected: u64,
    },
    /// A stored block does not decode.
    #[error("block {height}: {source}")]
    Block {
        /// The block's index.
        height: u64,
        /// What is wrong with it.
        source: types::block::DecodeBlockError,
    },
    /// A stored transaction does not decode.
    #[error("a transaction of block {height}: {source}")]
    Transaction {
        /// The block's index.
        height: u64,
        /// What is wrong with it.
        source: types::transaction::DecodeTxError,
    },
}

impl StorageError {
    /// Whether the next block belongs to a fork that this program does not know.
    #[must_use]
    pub const fn is_unknown_fork(&self) -> bool {
        matches!(self, Self::UnknownFork { .. })
    }

    /// Whether the next block has to wait until votes in earlier blocks are counted.
    #[must_use]
    pub const fn is_uncounted_fork(&self) -> bool {
        matches!(self, Self::UncountedFork { .. })
    }
}

/// Why a transaction was not executed. Either way the draft is as it was.
#[derive(Debug, thiserror::Error)]
pub enum TxError {
    /// The transaction's fault.
    #[error("{0}")]
    Rejected(Box<Rejection>),
    /// Our fault.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<Rejection> for TxError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}
