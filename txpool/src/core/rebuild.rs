//! Building the draft anew, a slice at a time.
//!
//! When the draft cannot follow a block (`commit` says when), it begins again with the committed state,
//! and everything executable becomes *unsettled*: it is executed again, in its order, so many
//! transactions at a time. The first slice is executed while the block is committed, and if that is
//! not all, it has what would be chosen for the next block, so that there is something to propose and
//! nobody's share is lost; the rest follows between blocks ([`crate::Pool::settle`]).
//!
//! Meanwhile the pool answers like this:
//!
//! - An unsettled transaction is pending as before, and its sender's next nonce is the one after it.
//!   Candidates for a block are settled ones alone.
//! - A new transaction is executed on the draft, unless its sender has unsettled ones: then it is
//!   taken unseen and executed after them. One that builds on what somebody else has unsettled is
//!   refused as if that were not there.
//! - An unsettled transaction is dropped only when everything before it has been executed, because
//!   it may build on that.

use std::collections::BTreeSet;

use types::{Address, CheckedTx, Code, Hash, Rejection};

use super::candidates::unsettled_candidates;
use super::contents::Contents;
use super::draft::Draft;
use super::history::History;
use super::promotion::Promotion;
use super::rejection::stale;
use crate::entries::{Entry, EntryPlace};
use crate::error::PoolFault;
use crate::order::{BlockLimits, Ready, Seq};
use crate::ports::{AdmitError, TakenBack};
use crate::senders::SenderId;
use crate::slab::Slot;

/// Executes transactions again.
pub(super) struct Rebuild<'a> {
    pub(super) contents: &'a mut Contents,
    pub(super) draft: &'a mut Draft,
    pub(super) history: &'a mut History,
    /// Whose queue may have something executable since a block or a rebuild.
    pub(super) restless: &'a mut BTreeSet<Address>,
    /// One sender gets at most one part in so many of a block, while others wait.
    pub(super) block_share: usize,
}

/// Whether there is something for [`Rebuild::settle`] to do.
pub(super) fn has_unsettled(
    contents: &Contents,
    draft: &Draft,
    restless: &BTreeSet<Address>,
) -> bool {
    contents.order().unsettled_len() > 0 || !restless.is_empty() || draft.has_doubts()
}

impl Rebuild<'_> {
    const fn promotion(&mut self) -> Promotion<'_> {
        let Self { contents, draft, history, .. } = self;
        Promotion { contents, draft, history }
    }

    /// The draft is the committed state, and what was executed on it is to be executed again.
    pub(super) fn begin(&mut self) -> Result<(), PoolFault> {
        self.draft.reset()?;
        let executable = self.contents.order().len();
        if executable > 0 {
            self.history.rebuilt();
            tracing::debug!(executable, "the pool's draft is built anew");
        }
        self.contents.unsettle_all();
        Ok(())
    }

    /// Executes the first slice after [`Rebuild::begin`]: everything, or what the next block wants.
    pub(super) fn settle_first(&mut self, most: usize, now_ms: u64) -> Result<(), PoolFault> {
        if self.contents.order().unsettled_len() <= most {
            return self.settle(most, now_ms).map(drop);
        }
        let limits = BlockLimits { bytes: usize::MAX, count: most };
        for (seq, ready) in unsettled_candidates(self.contents, limits, self.block_share) {
            self.settle_one(seq, ready, now_ms)?;
        }
        Ok(())
    }

    /// Executes at most so many of the transactions that are to be executed again, in their order, and
    /// then what queues have become executable. Answers whether there are more. A fault leaves what
    /// was not executed for the next time.
    pub(super) fn settle(&mut self, most: usize, now_ms: u64) -> Result<bool, PoolFault> {
        let mut left = self.doubt(most)?;
        while left > 0
            && let Some((seq, ready)) = self.contents.order().first_unsettled()
        {
            self.settle_one(seq, ready, now_ms)?;
            left = left.saturating_sub(1);
        }
        if left > 0 {
            self.calm(left, now_ms)?;
        }
        Ok(has_unsettled(self.contents, self.draft, self.restless))
    }

    /// Takes what is doubtful off the draft, so that it is executed again, and before it what builds on
    /// it: at most so many transactions. Answers how many more it could have been.
    fn doubt(&mut self, most: usize) -> Result<usize, PoolFault> {
        let mut left = most;
        while left > 0
            && let Some(hash) = self.draft.next_doubt()
        {
            left = left.saturating_sub(1);
            match self.unsettle_for(hash)? {
                Some(TakenBack::Yes) => {}
                None => self.draft.settle_doubt(),
                Some(TakenBack::After(first)) if self.contents.is_settled(first) => {
                    self.draft.doubt_before(first);
                }
                Some(TakenBack::Spent(address)) => match self.last_spent(address) {
                    Some(first) if first != hash => self.draft.doubt_before(first),
                    Some(_) | None => self.draft.give_up_doubts(),
                },
                Some(TakenBack::After(_) | TakenBack::Unknown) => self.draft.give_up_doubts(),
            }
        }
        Ok(left)
    }

    /// The last transaction of an account that the draft has.
    fn last_spent(&self, address: Address) -> Option<Hash> {
        let (id, _) = self.contents.senders().find(address)?;
        let entry = self.contents.entries().get(self.contents.last_settled(id)?)?;
        Some(entry.tx.hash())
    }

    /// Takes the last settled transaction of the sender off the draft, until the named one is. None if it
    /// is not on the draft.
    fn unsettle_for(&mut self, hash: Hash) -> Result<Option<TakenBack>, PoolFault> {
        if !self.contents.is_settled(hash) {
            return Ok(None);
        }
        let Some(id) = self.contents.entries().by_hash(hash).map(|entry| entry.sender) else {
            return Ok(None);
        };
        let Some(last) = self.contents.last_settled(id) else { return Ok(None) };
        let last = self.contents.entries().get(last);
        let Some(Entry { tx, place: EntryPlace::Pending(seq), .. }) = last else {
            return Ok(None);
        };
        let (tx, seq) = (tx.clone(), *seq);
        let answer = self.draft.take_back(&tx)?;
        if answer == TakenBack::Yes {
            self.contents.unsettle_last(id, seq);
        }
        Ok(Some(answer))
    }

    /// Executes a transaction again, if the one of its sender before it has been.
    fn settle_one(&mut self, seq: Seq, ready: Ready, now_ms: u64) -> Result<(), PoolFault> {
        let Ready { slot, sender: id, bytes: _ } = ready;
        let entry = self.contents.entries().get(slot);
        let Some(tx) = entry.map(|entry| entry.tx.clone()) else {
            self.contents.forget_place(seq);
            return Ok(());
        };
        let is_next = self
            .contents
            .senders()
            .get(id)
            .is_some_and(|sender| sender.pending.get(sender.settled) == Some(&slot));
        if !is_next {
            return Ok(());
        }
        match self.draft.admit(&tx) {
            Ok(()) => {
                self.contents.settle(seq, ready);
                Ok(())
            }
            Err(AdmitError::Fault(fault)) => Err(fault),
            Err(AdmitError::Rejected(reason)) => {
                let first = self.contents.order().first_unsettled();
                let is_first = first.is_some_and(|(first, _)| first == seq);
                if is_first || reason.code() == Code::NonceStale {
                    self.lose(id, slot, &tx, reason, now_ms)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// An executable transaction is refused now. Those after it wait for another one in its place,
    /// unless a block has filled it.
    fn lose(
        &mut self,
        id: SenderId,
        slot: Slot,
        tx: &CheckedTx,
        reason: Rejection,
        now_ms: u64,
    ) -> Result<(), PoolFault> {
        let next = self.draft.account(tx.from())?.nonce;
        let is_stale = reason.code() == Code::NonceStale;
        let waits = reason.code() == Code::NonceTooHigh || self.draft.is_early(tx, &reason)?;
        let reason = if is_stale { stale(tx.nonce(), next) } else { reason };
        if !waits && let Some(entry) = self.contents.take_pending(id, slot) {
            self.history.bury(entry, reason.clone(), now_ms);
        }
        if !is_stale || self.contents.is_sender_settled(id) {
            let history = &mut *self.history;
            self.contents.demote_unsettled(id, next, now_ms, |tx| history.demoted(tx));
        }
        if !waits {
            self.promotion().drop_dependents(id, tx, &reason, now_ms);
        }
        self.restless.insert(tx.from());
        self.contents.close_if_empty(id);
        Ok(())
    }

    /// Looks at queues of senders of whom a block had something, or who lost something: at most so
    /// many senders, and as many transactions.
    fn calm(&mut self, most: usize, now_ms: u64) -> Result<(), PoolFault> {
        let some: BTreeSet<Address> = self.restless.iter().take(most).copied().collect();
        for address in &some {
            let Some((id, sender)) = self.contents.senders().find(*address) else { continue };
            if sender.is_settled() {
                let next = self.draft.account(*address)?.nonce;
                self.contents.set_next(id, next);
            }
            self.drop_stale(id, now_ms);
            self.contents.close_if_empty(id);
        }
        if self.promotion().promote_all(&some, most, now_ms)? < most {
            self.restless.retain(|address| !some.contains(address));
        }
        for address in some {
            if let Some((id, _)) = self.contents.senders().find(address) {
                self.contents.close_if_empty(id);
            }
        }
        Ok(())
    }

    /// Drops the sender's queued transactions whose nonces are used up.
    fn drop_stale(&mut self, id: SenderId, now_ms: u64) {
        while let Some(sender) = self.contents.senders().get(id)
            && let Some((nonce, _)) = sender.queued.first_key_value()
            && *nonce < sender.next
        {
            let (nonce, next) = (*nonce, sender.next);
            self.history.drop_queued(self.contents, (id, nonce), stale(nonce, next), now_ms);
        }
    }
}
