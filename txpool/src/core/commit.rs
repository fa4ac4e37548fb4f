//! Following the chain: what a committed block does to the pool.
//!
//! # Why the draft stays right without executing anything again
//!
//! The draft is the old state with the executable transactions p₁ … pₙ executed in their order. A
//! block takes some of them, B; the others, R, stay. If the block holds nothing else, the draft
//! must be the new state with R executed in order. It is, because a block keeps the nonce order of
//! each sender, and transactions of different senders do not disturb each other. Take an r in R
//! that stands before a b in B, of another sender. b was valid after r, and the block shows that it
//! is valid without r. So
//!
//! - money: only its own transactions debit an account, and credits commute: each finds as much as
//!   it needs in either order;
//! - runs and blobs: if r and b change the same one, then either b needed r (a claim needs the
//!   request, a step the claim) and would not be valid without it, or both want what only one can
//!   have (two claims of one run) and b would not be valid after r. Both are excluded. What only
//!   the sender can change (its miner entry, its blob, the steps of its run) is kept in nonce order.
//!   Run ids of different senders differ, since a run id hashes the sender;
//! - existence of turns, runs and final blobs only ever grows by transactions.
//!
//! So r and b commute, and R can be moved behind B. A kind of transaction for which this does not
//! hold must be reported in [`Touched`] by whoever calls [`crate::Pool::committed`]; a property test
//! compares the pool with a naive one that executes everything again.
//!
//! What a block does beyond its transactions is in [`Touched`], and the draft knows nothing of it.
//! What it does to accounts is only ever a credit (refunds, fees, rewards) and is told to the draft,
//! which adds it where needed: a credit commutes with everything. If an executable transaction is
//! about a run or blob that a sweep changed, the draft is built anew at once, and what became invalid
//! is dropped. Otherwise the change is noted (`drift`), and the draft built anew when it would show:
//! before a transaction about a noted run or blob is executed. So nobody can make the pool execute
//! everything again by asking.
//!
//! The draft is also built anew when a block holds a transaction that was not executable here, when
//! nothing executable got into a block (so that a transaction that wrongly counts as executable
//! cannot stay), and now and then (so that the draft's changes cannot pile up).

use std::collections::{BTreeMap, BTreeSet};

use types::{Account, Address, Amount, CheckedTx, Code, Hash, Rejection, Sweep};

use super::Core;
use super::admission::stale;
use crate::entries::Place;
use crate::error::Fault;
use crate::order::{Ready, Seq};
use crate::ports::AdmitError;
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::subject::Subject;
use crate::tally::Half;

/// A block that was committed.
#[derive(Clone, Copy, Debug)]
pub struct Committed<'a> {
    /// Its transactions in order.
    pub included: &'a [CheckedTx],
    /// What it changed beyond them.
    pub touched: &'a Touched,
}

/// What a block changed otherwise than by the effects of its transactions that every block would
/// have: by sweeps, and for its proposer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Touched {
    /// Runs that a sweep reopened or ended.
    pub runs: BTreeSet<Hash>,
    /// Blobs that a sweep dropped.
    pub blobs: BTreeSet<String>,
    /// How much sweeps (to the submitters of ended runs), fees and reward (to the proposer) credited
    /// to whom.
    pub credits: BTreeMap<Address, Amount>,
    /// Whether the validators of the next heights changed: who may vote on them, and on what.
    pub validators: bool,
}

impl Touched {
    /// The runs and blobs of a block's sweeps, and whether a change of the validators was decided.
    /// The credits are to be added ([`Touched::credit`]): a sweep does not name the submitter.
    #[must_use]
    pub fn by_sweeps(sweeps: &[Sweep]) -> Self {
        let mut touched = Self::default();
        for sweep in sweeps {
            match sweep {
                Sweep::Reopened { agent_run_id, .. } | Sweep::TimedOut { agent_run_id, .. } => {
                    touched.runs.insert(*agent_run_id);
                }
                Sweep::BlobDropped { blob_id } => {
                    touched.blobs.insert(blob_id.clone());
                }
                Sweep::ValidatorChanged { .. } => touched.validators = true,
            }
        }
        touched
    }

    /// The block credited so much to an account, beyond what its transactions did.
    pub fn credit(&mut self, address: Address, amount: Amount) {
        if !amount.is_zero() {
            let credit = self.credits.entry(address).or_default();
            *credit = credit.checked_add(amount).unwrap_or(Amount::MAX);
        }
    }

    /// Whether the transaction is about one of the runs or blobs, or the validators.
    pub(super) fn is_subject_of(&self, tx: &CheckedTx) -> bool {
        if !self.has_subjects() {
            return false;
        }
        match Subject::of(tx.body()) {
            Some(Subject::Run(id)) => self.runs.contains(&id),
            Some(Subject::Blob(id)) => self.blobs.contains(id),
            Some(Subject::Validators) => self.validators,
            None => false,
        }
    }

    /// Notes what the other changed but for the credits, which the draft learns at once.
    fn note(&mut self, other: &Self) {
        let Self { runs, blobs, credits: _, validators } = other;
        self.validators |= validators;
        self.runs.extend(runs);
        self.blobs.extend(blobs.iter().cloned());
    }

    fn has_subjects(&self) -> bool {
        self.validators || !self.runs.is_empty() || !self.blobs.is_empty()
    }

    fn len(&self) -> usize {
        self.runs.len().saturating_add(self.blobs.len())
    }
}

/// The draft is built anew after so many transactions in blocks, and eight times as many as are
/// executable: the work is less than an eighth of what admission costs anyway.
const ADVANCED_MAX: usize = 50_000;
const ADVANCED_FACTOR: usize = 8;

/// So often within their longest age queued transactions are looked at.
const AGE_LOOKS: u64 = 64;

/// So many changes may be noted that the draft does not know.
const DRIFT_MAX: usize = 10_000;

impl Core {
    /// Follows a committed block.
    pub(crate) fn committed(&mut self, block: &Committed<'_>, now_ms: u64) -> Result<(), Fault> {
        let mut all_ours = true;
        let mut progress = false;
        for tx in block.included {
            self.dropped.forget(tx.hash());
            let is_ours = self.take_included(tx.hash());
            progress |= is_ours;
            all_ours &= is_ours;
        }
        self.dropped.expire(now_ms);
        self.drop_aged(now_ms);
        self.drift.note(block.touched);
        self.advanced = self.advanced.saturating_add(block.included.len());

        let executable = self.order.len();
        let advanced_max = ADVANCED_MAX.max(executable.saturating_mul(ADVANCED_FACTOR));
        let is_right = all_ours
            && (progress || executable == 0)
            && self.advanced <= advanced_max
            && self.drift.len() <= DRIFT_MAX
            && !self.is_hit(block.touched);
        if !is_right {
            return self.rebuild(now_ms);
        }
        if executable > 0 {
            return self.ledger.advance(&block.touched.credits);
        }
        self.reset_ledger()
    }

    /// The hashes of all transactions, of each sender in the order of nonces.
    pub(crate) fn hashes(&self) -> Vec<Hash> {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        let mut keys: Vec<(SenderId, u64, Hash)> =
            entries.map(|entry| (entry.sender, entry.tx.nonce(), entry.tx.hash())).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, _, hash)| hash).collect()
    }

    /// Follows many blocks, which hold these transactions of the pool.
    pub(crate) fn chain_moved(&mut self, included: &[Hash], now_ms: u64) -> Result<(), Fault> {
        for hash in included {
            let _was_first: bool = self.take_included(*hash);
        }
        self.dropped.expire(now_ms);
        self.rebuild(now_ms)
    }

    /// Removes a transaction of a block. True if it was executable here and first of its sender.
    fn take_included(&mut self, hash: Hash) -> bool {
        let Some(slot) = self.entries.slot(hash) else { return false };
        let Some(entry) = self.entries.get(slot) else { return false };
        let (id, place, nonce) = (entry.sender, entry.place, entry.tx.nonce());
        let was_first = match place {
            Place::Pending(seq) => {
                self.order.remove(seq);
                self.senders.pop_included(id, slot)
            }
            Place::Queued => {
                self.senders.dequeue(id, nonce);
                false
            }
        };
        self.remove_entry(slot);
        self.tally.included();
        self.senders.close_if_empty(id);
        was_first
    }

    /// Whether an executable transaction is about something that a sweep touched.
    fn is_hit(&self, touched: &Touched) -> bool {
        if !touched.has_subjects() {
            return false;
        }
        let mut entries = self.order.slots().filter_map(|slot| self.entries.get(slot));
        entries.any(|entry| touched.is_subject_of(&entry.tx))
    }

    /// Builds the draft anew: executes what is executable again, in order, drops what is refused
    /// now, and promotes what can be.
    pub(super) fn rebuild(&mut self, now_ms: u64) -> Result<(), Fault> {
        self.reset_ledger()?;
        self.restart_senders()?;
        let executable = self.order.len();
        if executable > 0 {
            self.tally.rebuilt();
        }

        let mut lost: BTreeMap<SenderId, Vec<(CheckedTx, Rejection)>> = BTreeMap::new();
        for (seq, ready) in self.order.take() {
            if let Some(loss) = self.readmit(seq, ready, now_ms)? {
                lost.entry(ready.sender).or_default().push(loss);
            }
        }
        for (id, losses) in lost {
            for (tx, reason) in losses {
                self.drop_dependents(id, &tx, &reason, now_ms);
            }
            self.senders.close_if_empty(id);
        }
        for id in self.senders.with_queue() {
            self.drop_stale(id, now_ms);
            self.senders.close_if_empty(id);
        }
        self.promote_all(now_ms)?;
        let now_executable = self.order.len();
        tracing::debug!(executable, now_executable, "the pool's draft was built anew");
        Ok(())
    }

    /// The draft is the committed state.
    pub(super) fn reset_ledger(&mut self) -> Result<(), Fault> {
        self.drift = Touched::default();
        self.advanced = 0;
        self.ledger.reset()
    }

    fn restart_senders(&mut self) -> Result<(), Fault> {
        let senders: Vec<(SenderId, Address)> =
            self.senders.iter().map(|(id, sender)| (id, sender.address)).collect();
        for (id, address) in senders {
            let next = self.ledger.account(address)?.nonce;
            self.senders.restart(id, next);
        }
        Ok(())
    }

    /// Executes one transaction again. If it is refused: what was dropped, and why.
    fn readmit(
        &mut self,
        seq: Seq,
        ready: Ready,
        now_ms: u64,
    ) -> Result<Option<(CheckedTx, Rejection)>, Fault> {
        let Some(entry) = self.entries.get(ready.slot) else { return Ok(None) };
        let Some(sender) = self.senders.get(ready.sender) else { return Ok(None) };
        let (tx, next) = (entry.tx.clone(), sender.next);
        if tx.nonce() > next {
            self.demote(ready.slot, &tx, ready.sender, now_ms);
            return Ok(None);
        }
        let answer = if tx.nonce() < next {
            Err(AdmitError::Rejected(stale(tx.nonce(), next)))
        } else {
            self.ledger.admit(&tx)
        };
        match answer {
            Ok(()) => {
                self.order.keep(seq, ready);
                self.senders.push_pending(ready.sender, ready.slot);
                Ok(None)
            }
            Err(AdmitError::Fault(fault)) => Err(fault),
            Err(AdmitError::Rejected(reason)) => {
                self.discard(ready.slot, reason.clone(), now_ms);
                Ok(Some((tx, reason)))
            }
        }
    }

    /// An executable transaction whose predecessor was dropped waits from now on.
    fn demote(&mut self, slot: Slot, tx: &CheckedTx, id: SenderId, now_ms: u64) {
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.place = Place::Queued;
            entry.queued_ms = now_ms;
        }
        self.senders.enqueue(id, tx.nonce(), slot);
        self.tally.leave(tx, Half::Pending);
        self.tally.enter(tx, Half::Queued);
        self.events.push(crate::PoolEvent::Demoted(tx.clone()));
    }

    /// Drops the sender's queued transactions whose nonces are used up.
    fn drop_stale(&mut self, id: SenderId, now_ms: u64) {
        while let Some(sender) = self.senders.get(id)
            && let Some((nonce, _)) = sender.queued.first_key_value()
            && *nonce < sender.next
        {
            let (nonce, next) = (*nonce, sender.next);
            self.drop_queued(id, nonce, stale(nonce, next), now_ms);
        }
    }

    /// Drops what has waited for its turn for too long: nobody will send what is before it.
    fn drop_aged(&mut self, now_ms: u64) {
        let age_max_ms = self.config.queued_age_max_ms;
        if now_ms.abs_diff(self.aged_ms) < age_max_ms / AGE_LOOKS {
            return;
        }
        self.aged_ms = now_ms;
        let aged: Vec<(SenderId, u64)> = self
            .entries
            .iter()
            .map(|(_, entry)| entry)
            .filter(|entry| entry.place == Place::Queued)
            .filter(|entry| now_ms.saturating_sub(entry.queued_ms) >= age_max_ms)
            .map(|entry| (entry.sender, entry.tx.nonce()))
            .collect();
        for (id, nonce) in aged {
            let next = self.senders.get(id).map_or(0, |sender| sender.next);
            let reason = Rejection::new(Code::NonceTooHigh, "nonce", nonce, next)
                .with("tx", nonce)
                .with("state", next)
                .with("queuedAgeMaxMs", age_max_ms);
            self.drop_queued(id, nonce, reason, now_ms);
            self.senders.close_if_empty(id);
        }
    }

    /// The account with everything executable applied.
    pub(crate) fn account(&self, address: Address) -> Result<Account, Fault> {
        self.ledger.account(address)
    }
}
