//! What the pool tells others.

use std::sync::Arc;

use types::{CheckedTx, Hash, Rejection};

/// Where a transaction that the pool answered for stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxStanding {
    /// Executable: the next blocks may hold it.
    Pending,
    /// Waits until the sender's nonces before it are there.
    Queued,
    /// A block holds it.
    Included,
}

/// The success of a submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// The transaction.
    pub hash: Hash,
    /// Where it stands now.
    pub standing: TxStanding,
    /// False if the transaction was known before: sending again is success and changes nothing.
    pub is_new: bool,
}

/// A transaction that was accepted once and will not be in a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dropped {
    /// The transaction.
    pub tx: CheckedTx,
    /// Why: the code and message of the rule that it breaks now.
    pub reason: Rejection,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Something that happened to a transaction in the pool. Inclusion is not among the events: the
/// block says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolEvent {
    /// It was accepted.
    Accepted {
        /// The transaction.
        tx: CheckedTx,
        /// [`TxStanding::Pending`] or [`TxStanding::Queued`].
        standing: TxStanding,
    },
    /// It was queued and is executable now.
    Promoted(CheckedTx),
    /// It was executable and is queued now, because one before it was dropped.
    Demoted(CheckedTx),
    /// It was dropped.
    Dropped(Arc<Dropped>),
}
