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

use super::Core;
use super::limits::{Newcomer, Room};
use crate::entries::{Entry, Place};
use crate::error::Fault;
use crate::market::{Least, Rate, is_outbid, rate};
use crate::order::Ready;
use crate::ports::{AdmitError, TakenBack};
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::{Half, Volume};

/// How many transactions make room for one newcomer. All of this happens under the pool's lock, and a
/// newcomer need not get into a block, so it costs its sender nothing.
const VICTIMS_MAX: usize = 64;
/// How often the draft is asked for one newcomer to do without a transaction: those that make room, and
/// those that go because they build on them.
const TAKEN_BACK_MAX: usize = 128;
/// How many senders are passed over because something else builds on what they have.
const PASSED_MAX: usize = 16;

/// What was taken out of the pool, to be dropped or put back.
#[derive(Debug)]
pub(super) struct Gone {
    entry: Entry,
    reason: Rejection,
}

impl Core {
    /// Whether enough is worth less than the transaction would be for it to fit.
    pub(super) fn is_dearer(&self, tx: &CheckedTx) -> bool {
        let Some(market) = &self.market else { return false };
        market.can_free(self.worth(tx), self.lack_beyond_queue(tx), VICTIMS_MAX)
    }

    /// What the transaction would be worth; none if it would wait for the base fee to fall.
    fn worth(&self, tx: &CheckedTx) -> Option<Rate> {
        let id = self.senders.find(tx.from()).map(|(id, _)| id);
        let most = self.ledger.highest_base_fee(tx).unwrap_or(u64::MAX);
        self.market.as_ref()?.worth(id, rate(tx), most)
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
                .map(|()| self.lack_beyond_queue(tx) == Volume::default()),
        };
        match answer {
            Ok(true) => return Ok(gone),
            Ok(false) => self.put_back(gone),
            Err(fault) => {
                self.put_back(gone);
                return Err(fault.into());
            }
        }
        Err(self.pool_full().into())
    }

    /// Takes out what is worth the least. A fault leaves what was taken out in `gone`.
    fn take_lowest(&mut self, tx: &CheckedTx, gone: &mut Vec<Gone>) -> Result<(), Fault> {
        let (mut passed, mut budget) = (BTreeSet::new(), TAKEN_BACK_MAX);
        for _ in 0..VICTIMS_MAX {
            if self.lack_beyond_queue(tx) == Volume::default() {
                return Ok(());
            }
            let worth = self.worth(tx);
            let lowest = self.market.as_ref().and_then(|market| market.lowest(&passed));
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
    fn take_from_givers(&mut self, tx: &CheckedTx, gone: &mut Vec<Gone>) -> Result<bool, Fault> {
        let Some(givers) = self.givers(tx) else { return Ok(false) };
        let (_, limit) = self.used_and_limit(self.tally.halves().total());
        if let Some(market) = &mut self.market {
            market.give_way(&givers);
        }
        let mut budget = TAKEN_BACK_MAX;
        for giver in givers.iter().cycle().take(VICTIMS_MAX) {
            if budget == 0 || gone.len() >= VICTIMS_MAX || !self.exceeds(limit, tx) {
                break;
            }
            self.evict_last(*giver, &shared(), &mut budget, gone)?;
        }
        Ok(!self.exceeds(limit, tx))
    }

    /// Whether there is more beside the tenth than there may be, or more in all with the transaction, even
    /// when nothing is queued any more.
    fn exceeds(&self, limit: Volume, tx: &CheckedTx) -> bool {
        let queued = self.tally.halves().queued;
        let (used, _) = self.used_and_limit(self.tally.halves().total());
        let lack = self.lack_beyond_queue(tx);
        used.count.saturating_sub(queued.count) > limit.count
            || used.bytes.saturating_sub(queued.bytes) > limit.bytes
            || lack != Volume::default()
    }

    /// What has to go for the transaction when nothing is queued any more.
    fn lack_beyond_queue(&self, tx: &CheckedTx) -> Volume {
        let lack = self.lack(tx, Newcomer::Executable);
        let queued = self.tally.halves().queued;
        Volume {
            count: lack.count.saturating_sub(queued.count),
            bytes: lack.bytes.saturating_sub(queued.bytes),
        }
    }

    /// What was taken out is dropped.
    pub(super) fn bury_all(&mut self, gone: Vec<Gone>, now_ms: u64) {
        for Gone { entry, reason } in gone {
            self.bury(entry, reason, now_ms);
            self.tally.evicted();
        }
    }

    /// What was taken out is in the pool again, to be executed again.
    pub(super) fn put_back(&mut self, gone: Vec<Gone>) {
        // Each was the last one of its sender when it went.
        for Gone { entry, reason: _ } in gone.into_iter().rev() {
            let (tx, arrival, is_journalled) =
                (entry.tx.clone(), entry.arrival, entry.is_journalled);
            let sender = self.senders.open(tx.from(), tx.nonce());
            let slot = self.entries.put_back(Entry { sender, ..entry });
            let ready = Ready { slot, sender, bytes: tx.encoded_bytes() };
            let seq = self.order.append_unsettled(ready);
            self.set_place(slot, Place::Pending(seq));
            self.senders.push_unsettled(sender, slot);
            self.offer(sender, slot);
            self.enter(&tx, Half::Pending);
            if !is_journalled {
                self.written.expect(slot, arrival);
            }
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
    ) -> Result<bool, Fault> {
        let Some(slot) = self.last_pending(id) else { return Ok(false) };
        let mut goals = vec![slot];
        let mut lost = None;
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
                    let reason = match lost {
                        Some(first) => reason.clone().with("after", first),
                        None => reason.clone(),
                    };
                    if let Some(entry) = self.remove_last(id, last) {
                        gone.push(Gone { entry, reason });
                    }
                }
                TakenBack::After(hash) => {
                    let Some(dependent) = self.entries.slot(hash) else { break };
                    lost.get_or_insert_with(|| tx.hash());
                    goals.push(dependent);
                }
                TakenBack::Spent(address) => {
                    let spender = self.senders.find(address).map(|(id, _)| id);
                    let Some(spent) = spender.and_then(|id| self.last_settled(id)) else { break };
                    lost.get_or_insert_with(|| tx.hash());
                    goals.push(spent);
                }
                TakenBack::Unknown => break,
            }
        }
        let is_done = self.pending_at(slot).is_none();
        // What stays because the budget was spent can go for the next newcomer.
        self.wants_rebuild |= !is_done && *budget > 0;
        Ok(is_done)
    }

    fn take_back(&mut self, id: SenderId, tx: &CheckedTx) -> Result<TakenBack, Fault> {
        let is_settled = self.senders.get(id).is_some_and(crate::senders::Sender::is_settled);
        if !is_settled {
            // The draft does not have it.
            return Ok(TakenBack::Yes);
        }
        let answer = self.ledger.take_back(tx)?;
        self.has_taken_back |= answer == TakenBack::Yes;
        Ok(answer)
    }

    /// Takes out the last executable transaction of a sender, which is on the draft no more.
    fn remove_last(&mut self, id: SenderId, slot: Slot) -> Option<Entry> {
        if let Some(Place::Pending(seq)) = self.entries.get(slot).map(|entry| entry.place) {
            self.order.remove(seq);
        }
        self.withdraw(id, slot);
        self.senders.pop_pending(id);
        let entry = self.lift(slot);
        self.senders.close_if_empty(id);
        entry
    }

    fn last_pending(&self, id: SenderId) -> Option<Slot> {
        self.senders.get(id)?.pending.back().copied()
    }

    /// The sender's last transaction that the draft has.
    pub(super) fn last_settled(&self, id: SenderId) -> Option<Slot> {
        let sender = self.senders.get(id)?;
        sender.pending.get(sender.settled.checked_sub(1)?).copied()
    }

    fn pending_at(&self, slot: Slot) -> Option<(SenderId, CheckedTx)> {
        let Entry { tx, sender, place, .. } = self.entries.get(slot)?;
        matches!(place, Place::Pending(_)).then(|| (*sender, tx.clone()))
    }

    /// Drops executable transactions that have waited for too long, each with those of its sender after
    /// it. No more at a time than are executed again at a time.
    pub(super) fn drop_expired(&mut self, now_ms: u64) -> Result<(), Fault> {
        let age_max_ms = self.config.age_max_ms;
        let mut budget = self.slice();
        while budget > 0 {
            let Some(slot) = self.market.as_ref().and_then(crate::market::Market::oldest) else {
                return Ok(());
            };
            let Some(Entry { sender, accepted_ms, .. }) = self.entries.get(slot) else { break };
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
