//! Executable transactions that leave before a block has them (from v7 on): those that are worth less
//! than a newcomer when the pool is full, and those that have waited for too long.
//!
//! What leaves for a newcomer is what waits for the base fee to fall, before everything else: it pays
//! nothing now. What leaves is the last one of its sender. If another transaction builds on it, that one and what
//! comes after it goes first. The draft does without them at once where that can be told from what they
//! wrote; otherwise they stay, and the next block has the draft built anew: what is to be executed again
//! can leave at any time.
//!
//! Nothing is lost before the newcomer is in: if it turns out that it builds on what had to go for it,
//! that comes back, and is executed again.

use std::collections::BTreeSet;

use types::{CheckedTx, Code, Rejection};

use super::contents::Contents;
use super::draft::Draft;
use super::history::History;
use super::limits::{Capacity, Limits, Newcomer, Room, VICTIMS_MAX};
use super::rivals::Contests;
use crate::entries::{Entry, EntryPlace};
use crate::error::PoolFault;
use crate::market::{Least, Market, is_outbid};
use crate::ports::{AdmitError, TakenBack};
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::Volume;

/// How often the draft is asked for one newcomer to do without a transaction: those that make room, and
/// those that go because they build on them.
pub(super) const TAKEN_BACK_MAX: usize = 128;
/// How many senders are passed over because something else builds on what they have.
const PASSED_MAX: usize = 16;

/// What was taken out of the pool, to be dropped or put back.
#[derive(Debug)]
pub(super) struct Gone {
    entry: Entry,
    reason: Rejection,
}

/// Makes room in the pool.
pub(super) struct Eviction<'a> {
    pub(super) limits: &'a Limits,
    pub(super) contents: &'a mut Contents,
    pub(super) draft: &'a mut Draft,
    pub(super) history: &'a mut History,
    pub(super) contests: &'a mut Contests,
}

impl Eviction<'_> {
    const fn capacity(&self) -> Capacity<'_> {
        Capacity { limits: self.limits, contents: self.contents, draft: self.draft }
    }

    /// Evicts queued transactions until the transaction, for which there was room by
    /// [`Capacity::room_for`], fits.
    pub(super) fn make_room(&mut self, tx: &CheckedTx, newcomer: Newcomer, now_ms: u64) {
        while self.capacity().lack(tx, newcomer) != Volume::default() {
            let Some((_, id)) = self.contents.senders().longest_queue() else { return };
            let Some((_, victim)) = self.capacity().victim() else { return };
            let (place, reason) = ((id, victim.nonce()), self.capacity().pool_full());
            self.history.drop_queued(self.contents, place, reason, now_ms);
            self.contents.close_if_empty(id);
            self.history.evicted();
        }
    }

    /// Takes out what has to go for the transaction to fit in the place of that and of everything queued.
    /// If that cannot be done, nothing has changed but what is to be executed again.
    pub(super) fn clear_for(
        &mut self,
        tx: &CheckedTx,
        room: Room,
    ) -> Result<Vec<Gone>, AdmitError> {
        let mut gone = Vec::new();
        let answer = match room {
            Room::Free => Ok(true),
            Room::Shared => self.take_from_givers(tx, &mut gone),
            Room::Dearer => self
                .take_lowest(tx, &mut gone)
                .map(|()| self.capacity().lack_beyond_queue(tx) == Volume::default()),
        };
        match answer {
            Ok(true) => return Ok(gone),
            Ok(false) => self.put_back(gone),
            Err(fault) => {
                self.put_back(gone);
                return Err(fault.into());
            }
        }
        Err(self.capacity().pool_full().into())
    }

    /// Takes out what is worth the least. A fault leaves what was taken out in `gone`.
    fn take_lowest(&mut self, tx: &CheckedTx, gone: &mut Vec<Gone>) -> Result<(), PoolFault> {
        let (mut passed, mut budget) = (BTreeSet::new(), TAKEN_BACK_MAX);
        for _ in 0..VICTIMS_MAX {
            if self.capacity().lack_beyond_queue(tx) == Volume::default() {
                return Ok(());
            }
            let worth = self.capacity().worth(tx);
            let lowest = self.contents.market().and_then(|market| market.lowest(&passed));
            let Some((least, id)) = lowest.filter(|(least, _)| is_outbid(*least, worth)) else {
                break;
            };
            if !self.evict_last(id, &evicted(least), &mut budget, gone)? {
                passed.insert(id);
            }
            if passed.len() > PASSED_MAX || budget == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Those with the most in the tenth give way to the transaction. What they had there counts with all
    /// others, and as much of what they sent last goes as has no room with these. Answers whether there is
    /// room for the transaction then.
    fn take_from_givers(
        &mut self,
        tx: &CheckedTx,
        gone: &mut Vec<Gone>,
    ) -> Result<bool, PoolFault> {
        let Some(givers) = self.capacity().givers(tx) else { return Ok(false) };
        let (_, limit) = self.capacity().used_and_limit(self.contents.halves().total());
        self.contents.give_way(&givers);
        let mut budget = TAKEN_BACK_MAX;
        for giver in givers.iter().cycle().take(VICTIMS_MAX) {
            if budget == 0 || gone.len() >= VICTIMS_MAX || !self.capacity().exceeds(limit, tx) {
                break;
            }
            self.evict_last(*giver, &shared(), &mut budget, gone)?;
        }
        Ok(!self.capacity().exceeds(limit, tx))
    }

    /// What was taken out is dropped.
    pub(super) fn bury_all(&mut self, gone: Vec<Gone>, now_ms: u64) {
        for Gone { entry, reason } in gone {
            self.history.bury(entry, reason, now_ms);
            self.history.evicted();
        }
    }

    /// What was taken out is in the pool again, to be executed again.
    pub(super) fn put_back(&mut self, gone: Vec<Gone>) {
        // Each was the last one of its sender when it went.
        for Gone { entry, reason: _ } in gone.into_iter().rev() {
            let slot = self.contents.put_back(entry, self.draft);
            self.history.came_back(slot, self.contents);
        }
    }

    /// Takes the sender's last executable transaction out, and before it what builds on it. False if that
    /// cannot be done before the next block, or not within the `budget`.
    fn evict_last(
        &mut self,
        id: SenderId,
        reason: &Rejection,
        budget: &mut usize,
        gone: &mut Vec<Gone>,
    ) -> Result<bool, PoolFault> {
        let Some(slot) = self.last_pending(id) else { return Ok(false) };
        self.evict_from(slot, reason, budget, gone)
    }

    /// Takes an executable transaction out, and before it those of its sender after it and what builds on any
    /// of these. False if that cannot be done before the next block, or not within the `budget`.
    pub(super) fn evict_from(
        &mut self,
        slot: Slot,
        reason: &Rejection,
        budget: &mut usize,
        gone: &mut Vec<Gone>,
    ) -> Result<bool, PoolFault> {
        let Some((_, first)) = self.pending_at(slot) else { return Ok(false) };
        let mut goals = vec![slot];
        while let Some(left) = budget.checked_sub(1) {
            let Some(goal) = goals.last().copied() else { return Ok(true) };
            let Some((id, _)) = self.pending_at(goal) else {
                goals.pop();
                continue;
            };
            let Some(last) = self.last_pending(id) else { break };
            let Some((_, tx)) = self.pending_at(last) else { break };
            *budget = left;
            match self.take_back(id, &tx)? {
                TakenBack::Yes => {
                    let reason = reason.clone();
                    let is_first = last == slot;
                    let reason = if is_first { reason } else { reason.with("after", first.hash()) };
                    if let Some(entry) = self.contents.take_last_pending(id, last) {
                        gone.push(Gone { entry, reason });
                    }
                }
                TakenBack::After(hash) => {
                    let Some(dependent) = self.contents.entries().slot(hash) else { break };
                    goals.push(dependent);
                }
                TakenBack::Spent(address) => {
                    let spender = self.contents.senders().find(address).map(|(id, _)| id);
                    let spent = spender.and_then(|id| self.contents.last_settled(id));
                    let Some(spent) = spent else { break };
                    goals.push(spent);
                }
                TakenBack::Unknown => break,
            }
        }
        let is_done = self.pending_at(slot).is_none();
        // What stays because the budget was spent can go for the next newcomer.
        if !is_done && *budget > 0 {
            self.draft.want_rebuild();
        }
        Ok(is_done)
    }

    fn take_back(&mut self, id: SenderId, tx: &CheckedTx) -> Result<TakenBack, PoolFault> {
        if !self.contents.is_sender_settled(id) {
            // The draft does not have it.
            return Ok(TakenBack::Yes);
        }
        self.draft.evict(tx)
    }

    fn last_pending(&self, id: SenderId) -> Option<Slot> {
        self.contents.senders().get(id)?.pending.back().copied()
    }

    fn pending_at(&self, slot: Slot) -> Option<(SenderId, CheckedTx)> {
        let Entry { tx, sender, place, .. } = self.contents.entries().get(slot)?;
        matches!(place, EntryPlace::Pending(_)).then(|| (*sender, tx.clone()))
    }

    /// Drops executable transactions that have waited for too long, each with those of its sender after
    /// it: at most so many.
    pub(super) fn drop_expired(
        &mut self,
        age_max_ms: u64,
        mut budget: usize,
        now_ms: u64,
    ) -> Result<(), PoolFault> {
        while budget > 0 {
            let Some(slot) = self.contents.market().and_then(Market::oldest) else {
                return Ok(());
            };
            let Some(Entry { sender, accepted_ms, .. }) = self.contents.entries().get(slot) else {
                break;
            };
            if now_ms.saturating_sub(*accepted_ms) < age_max_ms {
                return Ok(());
            }
            let id = *sender;
            let mut gone = Vec::new();
            let answer = self.evict_last(id, &expired(age_max_ms), &mut budget, &mut gone);
            self.bury_all(gone, now_ms);
            if !answer? {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn evicted(least: Least) -> Rejection {
    match least {
        Least::Pays(_) => {
            let got = "evicted by transactions that offer more";
            let expected = "the transaction to be sent again with a higher tip";
            Rejection::new(Code::Evicted, "tip", got, expected)
        }
        Least::Waits => {
            let got = "evicted by transactions that pay the base fee, which it waited for to fall";
            let expected = "the transaction to be sent again with a higher maxBaseFee";
            Rejection::new(Code::Evicted, "maxBaseFee", got, expected)
        }
    }
}

fn shared() -> Rejection {
    let got = "evicted by a step or an end of a run of a sender with fewer of them in the pool";
    let expected = "the transaction to be sent again later, or with a higher tip";
    Rejection::new(Code::Evicted, "tip", got, expected)
}

fn expired(age_max_ms: u64) -> Rejection {
    let got = format_args!("no place in a block within {age_max_ms} ms");
    let expected = "the transaction to be sent again, with a higher tip";
    Rejection::new(Code::Evicted, "tip", got, expected).with("ageMaxMs", age_max_ms)
}
