//! The draft: the committed state with what is settled executed on it, and what of that is in doubt.

use std::collections::BTreeMap;

use types::{Account, Address, Amount, BondChange, CheckedTx, Hash, Rejection};

use crate::error::PoolFault;
use crate::held::is_about_the_phase;
use crate::ports::{AdmitError, Extent, PendingLedger, TakenBack};

/// So many transactions at most are to be executed again because a block could not take them.
const DOUBTFUL_MAX: usize = 1_024;

/// The ledger's draft, and when it has to be built anew.
pub(super) struct Draft {
    ledger: Box<dyn PendingLedger>,
    /// Whether something was evicted from the draft since it was last built.
    has_evicted: bool,
    /// Whether the next block has the draft built anew, because something could not be taken off the
    /// draft.
    wants_rebuild: bool,
    /// Transactions that a block could not take, and that may build on something that was evicted. They
    /// are to be executed again; what is last here comes first.
    doubtful: Vec<Hash>,
    /// Transactions that left in blocks since the draft was last built.
    included: usize,
}

impl Draft {
    pub(super) const fn new(ledger: Box<dyn PendingLedger>) -> Self {
        Self { ledger, has_evicted: false, wants_rebuild: false, doubtful: Vec::new(), included: 0 }
    }

    /// The base fee of the next block; none before fork v7.
    pub(super) fn base_fee(&self) -> Option<u64> {
        self.ledger.base_fee()
    }

    /// The highest base fee at which a block may take the transaction.
    pub(super) fn highest_base_fee(&self, tx: &CheckedTx) -> u64 {
        self.ledger.highest_base_fee(tx).unwrap_or(u64::MAX)
    }

    /// Refuses a transaction that waits for the base fee to fall.
    pub(super) fn check_base_fee(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.ledger.check_base_fee(tx)
    }

    /// Refuses a transaction that is not ready to pay the lowest base fee that there can be.
    pub(super) fn check_lowest_fee(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.ledger.check_lowest_fee(tx)
    }

    /// Whether the next block could take the transaction after nothing but these of its sender.
    pub(super) fn stands_alone(
        &self,
        tx: &CheckedTx,
        before: &[CheckedTx],
    ) -> Result<bool, PoolFault> {
        self.ledger.stands_alone(tx, before)
    }

    /// Refuses a transaction of a form that no block takes yet.
    pub(super) fn check_form(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.ledger.check_form(tx)
    }

    /// What [`Draft::admit`] would answer to so much of it.
    pub(super) fn check(&self, tx: &CheckedTx, extent: Extent) -> Result<(), AdmitError> {
        self.ledger.check(tx, extent)
    }

    /// The account after everything that is settled.
    pub(super) fn account(&self, address: Address) -> Result<Account, PoolFault> {
        self.ledger.account(address)
    }

    /// Whether a transaction that was refused comes before its time.
    pub(super) fn is_early(&self, tx: &CheckedTx, reason: &Rejection) -> Result<bool, PoolFault> {
        Ok(is_about_the_phase(reason) && self.ledger.is_early(tx)?)
    }

    /// Whether no block takes the transaction any more because a height has come.
    pub(super) fn is_late(&self, tx: &CheckedTx) -> bool {
        self.ledger.is_late(tx)
    }

    /// Executes a transaction after everything that is settled.
    pub(super) fn admit(&mut self, tx: &CheckedTx) -> Result<(), AdmitError> {
        self.ledger.admit(tx)
    }

    /// Takes the last transaction of its sender off the draft, to execute it again.
    pub(super) fn take_back(&mut self, tx: &CheckedTx) -> Result<TakenBack, PoolFault> {
        self.ledger.take_back(tx)
    }

    /// Takes the last transaction of its sender off the draft for good. What fails in a block from now on
    /// may have built on it.
    pub(super) fn evict(&mut self, tx: &CheckedTx) -> Result<TakenBack, PoolFault> {
        let answer = self.ledger.take_back(tx)?;
        self.has_evicted |= answer == TakenBack::Yes;
        Ok(answer)
    }

    /// So many transactions left in a block.
    pub(super) const fn count_included(&mut self, count: usize) {
        self.included = self.included.saturating_add(count);
    }

    /// How many transactions left in blocks since the draft was last built.
    pub(super) const fn included(&self) -> usize {
        self.included
    }

    /// Goes on after a block; false if the draft has to be built anew.
    pub(super) fn advance(
        &mut self,
        credits: &BTreeMap<Address, Amount>,
        bonds: &BTreeMap<Address, BondChange>,
    ) -> Result<bool, PoolFault> {
        self.ledger.advance(credits, bonds)
    }

    /// The draft is the committed state.
    pub(super) fn reset(&mut self) -> Result<(), PoolFault> {
        self.included = 0;
        (self.has_evicted, self.wants_rebuild) = (false, false);
        self.doubtful.clear();
        self.ledger.reset()
    }

    /// Whether the next block has the draft built anew.
    pub(super) const fn wants_rebuild(&self) -> bool {
        self.wants_rebuild
    }

    /// The next block has the draft built anew.
    pub(super) const fn want_rebuild(&mut self) {
        self.wants_rebuild = true;
    }
}

impl Draft {
    /// Whether something is to be executed again because it is in doubt.
    pub(super) const fn has_doubts(&self) -> bool {
        !self.doubtful.is_empty()
    }

    /// How many more transactions can be in doubt.
    pub(super) const fn doubts_left(&self) -> usize {
        DOUBTFUL_MAX.saturating_sub(self.doubtful.len())
    }

    /// A block could not take the transaction: what it needs may have been evicted.
    pub(super) fn doubt_if_evicted(&mut self, hash: Hash) {
        if self.has_evicted && self.doubts_left() > 0 {
            self.doubtful.push(hash);
        }
    }

    /// All of these are to be executed again, or everything if that is too much.
    pub(super) fn doubt_all(&mut self, doubtful: Vec<Hash>) {
        if doubtful.len() > self.doubts_left() {
            self.give_up_doubts();
        } else {
            self.doubtful.extend(doubtful);
        }
    }

    /// The one that is looked at next.
    pub(super) fn next_doubt(&self) -> Option<Hash> {
        self.doubtful.last().copied()
    }

    /// The one that was looked at is not on the draft any more.
    pub(super) fn settle_doubt(&mut self) {
        self.doubtful.pop();
    }

    /// The transaction has to be taken off before the one that is looked at.
    pub(super) fn doubt_before(&mut self, hash: Hash) {
        self.doubtful.push(hash);
        if self.doubtful.len() > 2 * DOUBTFUL_MAX {
            self.give_up_doubts();
        }
    }

    /// The next block has everything executed again.
    pub(super) fn give_up_doubts(&mut self) {
        self.wants_rebuild = true;
        self.doubtful.clear();
    }
}
