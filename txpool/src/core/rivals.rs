//! What keeps a newcomer out of the pool although no block takes it (from v7 on).
//!
//! Some things only one of several senders can have ([`Contested`]): a run is claimed once, a call is
//! appealed once. Whoever has it on the draft keeps all others out of the pool. If that one never gets into
//! a block, nobody would get what is contested, and whoever sent it would pay nothing for that. So it gives
//! way to a newcomer that the next block could take: one that is valid in the committed state after what its
//! sender has before it, of which nothing waits.
//!
//! What gives way is *stuck*: it is not offered for blocks; or blocks with room for more came without it; or
//! it is not valid in the committed state after what its sender has before it, as if its sender pays for it
//! with what others pay it that wait themselves.
//!
//! It goes at once with what its sender has after it and what builds on these, and comes back if the
//! newcomer is refused all the same. If that is too much to go while others wait for the pool, the newcomer
//! is queued, and all of that goes bit by bit ([`crate::Pool::settle`]). What cannot be taken off the draft
//! goes with the next block, which has the draft built anew.

use std::collections::BTreeSet;

use types::{Address, CheckedTx, Code, Hash, Rejection};

use super::evict::{Eviction, Gone, TAKEN_BACK_MAX};
use crate::entries::{Entry, EntryPlace};
use crate::error::PoolFault;
use crate::slab::Slot;
use crate::subject::Contested;

/// So many transactions at most have to go bit by bit.
const DOOMED_MAX: usize = 64;
/// So many transactions before another one of its sender are executed to see whether a block could take it. What
/// has more before it displaces nobody.
const LINE_MAX: usize = 16;

/// What has to go, and for whom nothing goes any more before the next block.
#[derive(Debug, Default)]
pub(super) struct Contests {
    /// Who was refused although what had kept it out was gone: what came back is executed again, which nobody
    /// can ask for as often as they like.
    failed: BTreeSet<Address>,
    /// What was found to be valid in the committed state after what its sender has before it.
    sound: BTreeSet<Hash>,
    /// What goes bit by bit.
    doomed: Vec<Hash>,
    /// What goes when the draft is built anew.
    doomed_next: Vec<Hash>,
}

/// What came of making way for a newcomer.
pub(super) enum Way {
    /// Nothing has changed: what keeps it out stays.
    Barred,
    /// What kept it out is taken out of the pool, to be dropped or put back.
    Open(Vec<Gone>),
    /// What keeps it out goes bit by bit.
    Opening,
}

impl Contests {
    /// Whether something goes bit by bit.
    pub(super) const fn has_doomed(&self) -> bool {
        !self.doomed.is_empty()
    }

    /// The draft has followed a block, or is built anew.
    pub(super) fn next_block(&mut self) {
        self.failed.clear();
        self.sound.clear();
        self.doomed.append(&mut self.doomed_next);
    }

    /// The sender's newcomer was refused although what had kept it out was gone.
    pub(super) fn fail(&mut self, sender: Address) {
        self.failed.insert(sender);
    }

    /// Answers whether it goes.
    fn doom(&mut self, hash: Hash) -> bool {
        if self.doomed.contains(&hash) || self.doomed_next.contains(&hash) {
            return true;
        }
        let has_room = self.doomed.len().saturating_add(self.doomed_next.len()) < DOOMED_MAX;
        if has_room {
            self.doomed.push(hash);
        }
        has_room
    }
}

impl Eviction<'_> {
    /// Takes out what keeps a newcomer out that the draft has refused, if it gives way.
    pub(super) fn make_way(
        &mut self,
        tx: &CheckedTx,
        reason: &Rejection,
        now_ms: u64,
    ) -> Result<Way, PoolFault> {
        let Some(contested) = Contested::missed_by(tx, reason.code()) else {
            return Ok(Way::Barred);
        };
        let rivals = self.contents.takers(contested, tx.from());
        let Some(last) = rivals.first().copied() else { return Ok(Way::Barred) };
        if self.contests.failed.contains(&tx.from()) || !self.is_stuck(last)? {
            return Ok(Way::Barred);
        }
        if !self.could_be_next(tx)? {
            return Ok(Way::Barred);
        }
        let (mut gone, mut budget) = (Vec::new(), TAKEN_BACK_MAX);
        for slot in rivals {
            let Some(Entry { tx: rival, .. }) = self.contents.entries().get(slot) else { continue };
            let rival = rival.hash();
            // It stands behind the others, so they cannot go without it.
            if !self.is_stuck(slot)? {
                break;
            }
            match self.evict_from(slot, &displaced(), &mut budget, &mut gone) {
                Ok(true) => {}
                Ok(false) if self.contests.doom(rival) => {
                    // It cannot stay without what it builds on.
                    self.bury_all(gone, now_ms);
                    return Ok(Way::Opening);
                }
                Ok(false) => {
                    self.put_back(gone);
                    return Ok(Way::Barred);
                }
                Err(fault) => {
                    self.put_back(gone);
                    return Err(fault);
                }
            }
        }
        Ok(if gone.is_empty() { Way::Barred } else { Way::Open(gone) })
    }

    /// Goes on with what goes bit by bit: at most so many transactions. Answers how many more it could have
    /// been.
    pub(super) fn drop_doomed(&mut self, most: usize, now_ms: u64) -> Result<usize, PoolFault> {
        let mut budget = most;
        while budget > 0
            && let Some(hash) = self.contests.doomed.last().copied()
        {
            let slot = self.contents.entries().slot(hash);
            let slot = slot.filter(|slot| self.contents.seq(*slot).is_some());
            let goes = match slot {
                Some(slot) if self.contents.is_settled(hash) => {
                    self.is_stuck(slot)?.then_some(slot)
                }
                Some(slot) => Some(slot),
                None => None,
            };
            let Some(slot) = goes else {
                self.contests.doomed.pop();
                continue;
            };
            let mut gone = Vec::new();
            let answer = self.evict_from(slot, &displaced(), &mut budget, &mut gone);
            self.bury_all(gone, now_ms);
            if !answer? {
                if budget == 0 {
                    break;
                }
                self.contests.doomed_next.push(hash);
            }
            self.contests.doomed.pop();
        }
        Ok(budget)
    }

    /// Whether the next block could take a newcomer with its sender's next nonce. One that it could not take
    /// because of what its sender has before it is not looked at again before the next block.
    fn could_be_next(&mut self, tx: &CheckedTx) -> Result<bool, PoolFault> {
        let Some(market) = self.contents.market() else { return Ok(false) };
        if self.draft.check_base_fee(tx).is_err() {
            return Ok(false);
        }
        let Some((id, sender)) = self.contents.senders().find(tx.from()) else {
            return self.draft.stands_alone(tx, &[]);
        };
        let first = sender.pending.front().and_then(|slot| self.contents.entries().get(*slot));
        let is_left_out = first.is_some_and(|entry| self.contents.is_left_out(entry));
        let is_long = sender.pending.len() > LINE_MAX;
        if is_left_out || is_long || !market.offers_up_to(id, tx.nonce()) {
            return Ok(false);
        }
        let line = self.contents.line_before(id, tx.nonce(), LINE_MAX);
        let stands = self.draft.stands_alone(tx, &line)?;
        if !stands && !line.is_empty() {
            self.contests.fail(tx.from());
        }
        Ok(stands)
    }

    /// Whether something keeps an executable transaction out of blocks.
    fn is_stuck(&mut self, slot: Slot) -> Result<bool, PoolFault> {
        let Some(entry) = self.contents.entries().get(slot) else { return Ok(false) };
        let Entry { tx, sender: id, place: EntryPlace::Pending(_), .. } = entry else {
            return Ok(false);
        };
        let market = self.contents.market();
        let is_offered = market.is_some_and(|market| market.offers_up_to(*id, tx.nonce()));
        if !is_offered || self.contents.is_left_out(entry) {
            return Ok(true);
        }
        if self.contests.sound.contains(&tx.hash()) {
            return Ok(false);
        }
        let line = self.contents.line_before(*id, tx.nonce(), LINE_MAX.saturating_add(1));
        // What comes after many others shows in the next blocks.
        let is_sound = line.len() > LINE_MAX || self.draft.stands_alone(tx, &line)?;
        if is_sound {
            self.contests.sound.insert(tx.hash());
        }
        Ok(!is_sound)
    }
}

/// The rejection of what kept another one out.
fn displaced() -> Rejection {
    let got = "displaced by a transaction that a block can take, while no block took it";
    let expected = "the transaction to be sent again when nothing of its sender waits before it";
    Rejection::new(Code::Evicted, "pool", got, expected)
}
