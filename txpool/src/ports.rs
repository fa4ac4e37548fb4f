//! What the pool needs from the rest of the node, in its own words.

use std::collections::BTreeMap;

use types::{Account, Address, Amount, BondChange, CheckedTx, Hash, Rejection};

use crate::PoolEvent;
use crate::error::PoolFault;

/// Why the ledger did not take a transaction.
#[derive(Debug, thiserror::Error)]
pub enum AdmitError {
    /// The transaction's fault.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// Our fault.
    #[error(transparent)]
    Fault(#[from] PoolFault),
}

/// How much of a transaction is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Every rule of block execution.
    Whole,
    /// Whether the sender could pay for it, even if it would be refused for another reason. Its nonce is
    /// not looked at.
    Funds,
}

/// What came of taking a transaction off the draft.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakenBack {
    /// The draft is as if it had never been admitted.
    Yes,
    /// Nothing has changed: this transaction builds on it and must be taken back first.
    After(Hash),
    /// Nothing has changed: this account was paid by it and may have spent that.
    Spent(Address),
    /// Nothing has changed, and nothing short of building the draft anew would take it off.
    Unknown,
}

/// What the pool needs of its draft where places in blocks have a price, from fork v7 on.
pub trait PricedDraft {
    /// Takes an admitted transaction back, the one of its sender with the highest nonce. What only reads
    /// what it wrote is not found, and fails in the block or when the draft is built anew.
    ///
    /// # Errors
    /// [`PoolFault`] when the store cannot be read.
    fn take_back(&mut self, tx: &CheckedTx) -> Result<TakenBack, PoolFault>;

    /// The base fee of the next block, in micro-OMBRA per KiB; none before fork v7. Where there is one,
    /// tips decide who gets into the block and who may wait.
    fn base_fee(&self) -> Option<u64>;

    /// The highest base fee at which a block may take the transaction, in micro-OMBRA per KiB; none if
    /// there is a block that takes it at any.
    fn highest_base_fee(&self, tx: &CheckedTx) -> Option<u64>;

    /// Whether no block takes an admitted transaction any more because a height has come, as the one that
    /// a vote names. Asked only of what is about the validators.
    fn is_late(&self, tx: &CheckedTx) -> bool;

    /// Refuses a transaction that the next block may not take because its base fee is above
    /// [`PricedDraft::highest_base_fee`]. [`PendingLedger::admit`] takes it nevertheless: it waits until
    /// the base fee has fallen.
    ///
    /// # Errors
    /// The rejection, `FEE_ABOVE_MAX`.
    fn check_base_fee(&self, tx: &CheckedTx) -> Result<(), Rejection>;
}

/// What the pool asks its draft about what blocks can take, whatever else waits, from fork v7 on.
pub trait ReadyDraft {
    /// Whether the next block could take the transaction, if it took nothing before it but these of its
    /// sender.
    ///
    /// # Errors
    /// [`PoolFault`] when the store cannot be read.
    fn stands_alone(&self, tx: &CheckedTx, before: &[CheckedTx]) -> Result<bool, PoolFault>;

    /// Refuses a transaction that is not ready to pay the lowest base fee that there can be, so that no
    /// block takes it.
    ///
    /// # Errors
    /// The rejection, `FEE_ABOVE_MAX`.
    fn check_lowest_fee(&self, tx: &CheckedTx) -> Result<(), Rejection>;
}

/// What the pool asks its draft about transactions that come before their time, from fork v8 on.
pub trait PhasedDraft {
    /// Whether a transaction about a call that was refused for the call's phase may be taken in a later
    /// phase. Only of one that could not have been refused for anything else.
    ///
    /// # Errors
    /// [`PoolFault`] when the store cannot be read.
    fn is_early(&self, tx: &CheckedTx) -> Result<bool, PoolFault>;

    /// Refuses a transaction of a form that no block takes before fork v8. It must not wait for its turn
    /// either: peers whose programs do not know the fork would ban whoever passes it on.
    ///
    /// # Errors
    /// The rejection, `INVALID_FIELD`.
    fn check_form(&self, tx: &CheckedTx) -> Result<(), Rejection>;
}

/// The ledger with everything pending applied to it: a draft over the latest committed state.
///
/// The pool calls it from one thread at a time and holds its lock meanwhile. Only the methods of
/// this trait and of [`PricedDraft`] may change the draft.
pub trait PendingLedger: PricedDraft + ReadyDraft + PhasedDraft + Send {
    /// The account after everything admitted so far. An unknown account is a zero account.
    ///
    /// # Errors
    /// [`PoolFault`] when the store cannot be read.
    fn account(&self, address: Address) -> Result<Account, PoolFault>;

    /// What [`PendingLedger::admit`] would answer to so much of it; the draft stays as it is.
    ///
    /// # Errors
    /// As [`PendingLedger::admit`].
    fn check(&self, tx: &CheckedTx, extent: Extent) -> Result<(), AdmitError>;

    /// Executes on the draft, with every rule of block execution: the nonce must be the draft's,
    /// the draft's balance must suffice, and so on. A rejection leaves the draft as it was.
    ///
    /// # Errors
    /// [`AdmitError::Rejected`] by the first rule that fails, or [`AdmitError::Fault`].
    fn admit(&mut self, tx: &CheckedTx) -> Result<(), AdmitError>;

    /// The base is now the newly committed state. The block's transactions were all admitted, what
    /// else was admitted stays, and the block did nothing beyond its transactions to what that is
    /// about, but for `credits` to accounts and changes of `bonds`: an account or a bond that the draft
    /// knows by itself gets them. What no admitted transaction changed is as in the new state. Answers
    /// whether the draft is right with that; otherwise it has to be built anew.
    ///
    /// # Errors
    /// [`PoolFault`] when the store cannot be read.
    fn advance(
        &mut self,
        credits: &BTreeMap<Address, Amount>,
        bonds: &BTreeMap<Address, BondChange>,
    ) -> Result<bool, PoolFault>;

    /// Forgets the draft: back to the newly committed state.
    ///
    /// # Errors
    /// [`PoolFault`] when the store cannot be read.
    fn reset(&mut self) -> Result<(), PoolFault>;
}

/// The committed chain.
pub trait CommittedChain: Send + Sync {
    /// Whether a block holds the transaction. Asked only for a nonce that is used up, so it is
    /// not on the fast path.
    ///
    /// # Errors
    /// [`PoolFault`] when the store cannot be read.
    fn is_included(&self, hash: Hash) -> Result<bool, PoolFault>;

    /// Reads what [`PendingLedger::admit`] would read for long. The pool asks for it before it takes a
    /// transaction, without its lock.
    fn prepare(&self, tx: &CheckedTx) {
        let _ = tx;
    }
}

/// Where events go.
pub trait EventSink: Send + Sync {
    /// Takes what one operation of the pool did, in order. It is called under the pool's lock, so
    /// that the order is total: it must neither block nor call the pool. A sink that is full
    /// counts what it loses.
    fn publish(&self, events: Vec<PoolEvent>);

    /// The pool had nothing for a block and has something now. As [`EventSink::publish`].
    fn executable(&self);
}
