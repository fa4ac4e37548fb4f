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

use super::admission::stale;
use super::{Core, DOUBTFUL_MAX};
use crate::entries::{Entry, Place};
use crate::error::Fault;
use crate::market::{Offered, Wanted};
use crate::order::{BlockLimits, Ready, Seq};
use crate::ports::{AdmitError, TakenBack};
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::Half;

impl Core {
    /// How many transactions are executed again at a time, while others wait for the pool: with a block as
    /// in between, so that consensus waits no longer than anybody else.
    pub(crate) fn slice(&self) -> usize {
        (self.config.rebuild_slice / 4).max(1)
    }

    /// The draft is the committed state, and what was executed on it is to be executed again.
    pub(super) fn rebuild(&mut self) -> Result<(), Fault> {
        self.reset_ledger()?;
        let executable = self.order.len();
        if executable > 0 {
            self.tally.rebuilt();
            tracing::debug!(executable, "the pool's draft is built anew");
        }
        self.order.unsettle();
        self.senders.unsettle();
        Ok(())
    }

    /// The draft is the committed state.
    pub(super) fn reset_ledger(&mut self) -> Result<(), Fault> {
        self.advanced = 0;
        (self.has_taken_back, self.wants_rebuild) = (false, false);
        self.doubtful.clear();
        self.ledger.reset()
    }

    /// Executes the first slice after [`Core::rebuild`]: everything, or what the next block wants.
    pub(super) fn settle_first(&mut self, most: usize, now_ms: u64) -> Result<(), Fault> {
        if self.order.unsettled_len() <= most {
            return self.settle(most, now_ms).map(drop);
        }
        let limits = BlockLimits { bytes: usize::MAX, count: most };
        for (seq, ready) in self.choose_unsettled(limits) {
            self.settle_one(seq, ready, now_ms)?;
        }
        Ok(())
    }

    /// What would be chosen for a block of those that are to be executed again.
    fn choose_unsettled(&self, limits: BlockLimits) -> Vec<(Seq, Ready)> {
        let Some(market) = &self.market else {
            let (shares, bound) = (self.config.block_share, self.senders.bound());
            return self.order.choose_unsettled(limits, shares, bound);
        };
        let open =
            |id| self.senders.get(id).map_or(0..0, |sender| sender.settled..sender.pending.len());
        let wanted = Wanted { limits, shares: self.config.block_share };
        let slots = market.choose(wanted, &mut Offered::default(), &open);
        let mut chosen: Vec<_> = slots
            .into_iter()
            .filter_map(|slot| self.seq(slot))
            .filter_map(|seq| Some((seq, self.order.unsettled(seq)?)))
            .collect();
        chosen.sort_unstable_by_key(|(seq, _)| *seq);
        chosen
    }

    /// Executes at most so many of the transactions that are to be executed again, in their order, and
    /// then what queues have become executable. Answers whether there are more. A fault leaves what
    /// was not executed for the next time.
    pub(crate) fn settle(&mut self, most: usize, now_ms: u64) -> Result<bool, Fault> {
        let mut left = self.doubt(most)?;
        while left > 0
            && let Some((seq, ready)) = self.order.first_unsettled()
        {
            self.settle_one(seq, ready, now_ms)?;
            left = left.saturating_sub(1);
        }
        if left > 0 {
            self.calm(left, now_ms)?;
        }
        Ok(self.has_unsettled())
    }

    /// Takes what is doubtful off the draft, so that it is executed again, and before it what builds on
    /// it: at most so many transactions. Answers how many more it could have been.
    fn doubt(&mut self, most: usize) -> Result<usize, Fault> {
        let mut left = most;
        while left > 0
            && let Some(hash) = self.doubtful.last().copied()
        {
            left = left.saturating_sub(1);
            match self.unsettle_for(hash)? {
                Some(TakenBack::Yes) => {}
                None => drop(self.doubtful.pop()),
                Some(TakenBack::After(first)) if self.is_settled(first) => {
                    self.doubtful.push(first);
                }
                Some(TakenBack::Spent(address)) => {
                    let spender = self.senders.find(address).map(|(id, _)| id);
                    let spent = spender.and_then(|id| self.last_settled(id));
                    let spent = spent.and_then(|slot| self.entries.get(slot));
                    match spent.map(|entry| entry.tx.hash()) {
                        Some(first) if first != hash => self.doubtful.push(first),
                        Some(_) | None => self.give_up_doubt(),
                    }
                }
                Some(TakenBack::After(_) | TakenBack::Unknown) => self.give_up_doubt(),
            }
            if self.doubtful.len() > 2 * DOUBTFUL_MAX {
                self.give_up_doubt();
            }
        }
        Ok(left)
    }

    /// The next block has everything executed again.
    pub(super) fn give_up_doubt(&mut self) {
        self.wants_rebuild = true;
        self.doubtful.clear();
    }

    /// Takes the last settled transaction of the sender off the draft, until the named one is. None if it
    /// is not on the draft.
    fn unsettle_for(&mut self, hash: Hash) -> Result<Option<TakenBack>, Fault> {
        if !self.is_settled(hash) {
            return Ok(None);
        }
        let Some(id) = self.entries.by_hash(hash).map(|entry| entry.sender) else {
            return Ok(None);
        };
        let Some(last) = self.last_settled(id) else { return Ok(None) };
        let Some(Entry { tx, place: Place::Pending(seq), .. }) = self.entries.get(last) else {
            return Ok(None);
        };
        let (tx, seq) = (tx.clone(), *seq);
        let answer = self.ledger.take_back(&tx)?;
        if answer == TakenBack::Yes {
            self.order.unsettle_one(seq);
            self.senders.unsettle_last(id);
        }
        Ok(Some(answer))
    }

    /// Executes a transaction again, if the one of its sender before it has been.
    fn settle_one(&mut self, seq: Seq, ready: Ready, now_ms: u64) -> Result<(), Fault> {
        let Ready { slot, sender: id, bytes: _ } = ready;
        let Some(tx) = self.entries.get(slot).map(|entry| entry.tx.clone()) else {
            self.order.remove(seq);
            return Ok(());
        };
        let is_next = self
            .senders
            .get(id)
            .is_some_and(|sender| sender.pending.get(sender.settled) == Some(&slot));
        if !is_next {
            return Ok(());
        }
        match self.ledger.admit(&tx) {
            Ok(()) => {
                let seq = self.order.settle(seq, ready);
                self.set_place(slot, Place::Pending(seq));
                self.senders.settle_next(id);
                Ok(())
            }
            Err(AdmitError::Fault(fault)) => Err(fault),
            Err(AdmitError::Rejected(reason)) => {
                let is_first = self.order.first_unsettled().is_some_and(|(first, _)| first == seq);
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
    ) -> Result<(), Fault> {
        let next = self.ledger.account(tx.from())?.nonce;
        let is_stale = reason.code() == Code::NonceStale;
        let waits = reason.code() == Code::NonceTooHigh || self.is_early(tx, &reason)?;
        let reason = if is_stale { stale(tx.nonce(), next) } else { reason };
        if !waits {
            if let Some(Place::Pending(seq)) = self.entries.get(slot).map(|entry| entry.place) {
                self.order.remove(seq);
            }
            self.withdraw(id, slot);
            self.senders.remove_pending(id, slot);
            self.discard(slot, reason.clone(), now_ms);
        }
        let is_settled = self.senders.get(id).is_some_and(crate::senders::Sender::is_settled);
        if !is_stale || is_settled {
            for slot in self.senders.cut(id, next) {
                self.demote(slot, id, now_ms);
            }
        }
        if !waits {
            self.drop_dependents(id, tx, &reason, now_ms);
        }
        self.restless.insert(tx.from());
        self.senders.close_if_empty(id);
        Ok(())
    }

    /// An executable transaction whose predecessor was dropped waits from now on.
    fn demote(&mut self, slot: Slot, id: SenderId, now_ms: u64) {
        self.withdraw(id, slot);
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let (tx, place) = (entry.tx.clone(), entry.place);
        entry.place = Place::Queued;
        entry.queued_ms = now_ms;
        if let Place::Pending(seq) = place {
            self.order.remove(seq);
        }
        self.senders.enqueue(id, tx.nonce(), slot);
        self.leave(&tx, Half::Pending);
        self.enter(&tx, Half::Queued);
        self.events.push(crate::PoolEvent::Demoted(tx));
    }

    /// Looks at queues of senders of whom a block had something, or who lost something: at most so
    /// many senders, and as many transactions.
    fn calm(&mut self, most: usize, now_ms: u64) -> Result<(), Fault> {
        let some: BTreeSet<Address> = self.restless.iter().take(most).copied().collect();
        for address in &some {
            let Some((id, sender)) = self.senders.find(*address) else { continue };
            if sender.is_settled() {
                let next = self.ledger.account(*address)?.nonce;
                self.senders.cut(id, next);
            }
            self.drop_stale(id, now_ms);
            self.senders.close_if_empty(id);
        }
        if self.promote_all(&some, most, now_ms)? < most {
            self.restless.retain(|address| !some.contains(address));
        }
        for address in some {
            if let Some((id, _)) = self.senders.find(address) {
                self.senders.close_if_empty(id);
            }
        }
        Ok(())
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
}
