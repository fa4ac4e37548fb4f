//! Why a block is not valid, and why a transaction does not come into one.

use types::Rejection;

use crate::error::{StorageError, TxError};

/// Why a block is not valid on top of its parent.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// A member of the header is not what the chain or the content demands.
    #[error("{field} is {got}, expected {expected}")]
    Header {
        /// The member.
        field: &'static str,
        /// What it is.
        got: String,
        /// What it must be.
        expected: String,
    },
    /// There are more bytes of payloads and signatures than a block may have.
    #[error("the transactions have {bytes} bytes, at most {max} are allowed")]
    TooLarge {
        /// How many there are.
        bytes: u64,
        /// `maxBlockBytes`.
        max: u64,
    },
    /// The transactions take more work than a block may.
    #[error("transaction {position} takes the block beyond {max} units of work")]
    TooMuchWork {
        /// The place of the first one that has no room, from 0.
        position: u32,
        /// `maxBlockWork`.
        max: u64,
    },
    /// A transaction is not valid at its place.
    #[error("transaction {position}: {rejection}")]
    Transaction {
        /// Its place, from 0.
        position: u32,
        /// The rule that it breaks.
        rejection: Box<Rejection>,
    },
    /// Our fault, not the block's.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What a block has so much of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Bytes of payloads and signatures, as `maxBlockBytes` says.
    Bytes,
    /// Units of work, as `maxBlockWork` says, from v7 on.
    Work,
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Work => "units of work",
        })
    }
}

/// Why a transaction does not come into the block that is being built.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The block has no room for it; a smaller one may fit.
    #[error("the block has room for {room} more {resource}, the transaction takes {needed}")]
    Full {
        /// What there is too little of.
        resource: Resource,
        /// How much of it the transaction takes; of work at least so much.
        needed: u64,
        /// What is left of it.
        room: u64,
    },
    /// It is not valid at this place.
    #[error("{0}")]
    Rejected(Box<Rejection>),
    /// Our fault.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<TxError> for PushError {
    fn from(error: TxError) -> Self {
        match error {
            TxError::Rejected(rejection) => Self::Rejected(rejection),
            TxError::Storage(fault) => Self::Storage(fault),
        }
    }
}
