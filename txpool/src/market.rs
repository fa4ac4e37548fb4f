//! What waiting transactions offer for their places, from v7 on: who is chosen for a block, and who
//! makes room in a full pool (docs/protocol.md section 15.6).
//!
//! A transaction is worth the lowest rate among its sender's executable ones up to it, because these
//! have to come first. So of each sender the first one is worth the most and the last one the least, and
//! it is enough to have senders in order: for blocks by what the first one offers, for eviction by the
//! lowest of all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::order::BlockLimits;
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::Volume;

mod choice;
mod counts;
mod kept;
mod line;
mod lines;
mod offer;
mod orders;
mod waits;

pub use choice::Offered;
pub(crate) use choice::Wanted;
pub(crate) use offer::{Least, Offer, Rate, is_favoured, is_outbid, rate};

use choice::{Choice, Open};
use kept::Kept;
use line::Line;
use lines::{Lines, Moved};
use orders::Orders;
use waits::Waits;

/// So many senders that wait for the base fee to fall are passed over in search of one that does not.
const PASSED_MAX: usize = 16;

/// A transaction that may leave: the order in which they do, and how many its sender has up to it.
type Leaving = (Least, (u64, Rate), Reverse<u64>, SenderId, usize);

/// All executable transactions by what they offer.
#[derive(Debug, Default)]
pub(crate) struct Market {
    lines: Lines,
    orders: Orders,
    /// What has its place in the tenth.
    kept: Kept,
    /// Senders of whom something is not offered, because a block could not take it, by the reopening that ends
    /// that.
    closed: BTreeSet<(u64, SenderId)>,
    /// How often what was missing may have come.
    reopenings: u64,
    /// By arrival, so the oldest first.
    ages: BTreeMap<u64, Slot>,
}

impl Market {
    /// An empty market at this base fee, of a pool of this size.
    pub(crate) fn at(base_fee: u64, pool: Volume) -> Self {
        Self { lines: Lines::at(base_fee), kept: Kept::of(pool), ..Self::default() }
    }

    /// The base fee of the next block. What comes back because it has fallen may be what others need.
    pub(crate) fn follow(&mut self, base_fee: u64) {
        if self.lines.follow(base_fee) > 0 {
            self.reopen();
        }
    }

    /// How many transactions wait for the base fee to fall: those that are not ready to pay it, and those
    /// of their senders after them.
    pub(crate) const fn waiting(&self) -> usize {
        self.lines.waiting()
    }

    /// The nonce of the first transaction of the sender that waits for the base fee to fall, and where
    /// it is. Those after it wait, too.
    pub(crate) fn first_waiting(&self, id: SenderId) -> Option<(u64, Slot)> {
        let offer = self.lines.first_waiting(id)?;
        Some((offer.nonce, offer.slot))
    }

    /// The base fee of the next block.
    pub(crate) const fn base_fee(&self) -> u64 {
        self.lines.base_fee()
    }

    /// Whether the sender's transactions up to this nonce are offered: none of them waits for the base fee to
    /// fall, or is one that a block could not take.
    pub(crate) fn offers_up_to(&self, id: SenderId, nonce: u64) -> bool {
        let waits = self.lines.first_waiting(id).is_some_and(|first| first.nonce <= nonce);
        !waits && self.lines.get(id).is_none_or(|line| !line.is_closed_at(nonce))
    }

    /// Whether there is something to offer for the next block.
    pub(crate) fn has_offers(&self) -> bool {
        let highest = self.orders.highest_offering();
        highest.is_some_and(|highest| highest >= self.lines.base_fee())
    }

    /// A block could not take the transaction: it needs something that is not in the block. It and those
    /// after it are not offered until one of the next times that [`Market::reopen`] is called: the more
    /// often blocks could not take something of the sender, the later.
    pub(crate) fn close(&mut self, id: SenderId, nonce: u64) {
        let reopenings = self.reopenings;
        self.change(id, |line, _| line.close(nonce, reopenings));
        if let Some(line) = self.lines.get(id) {
            self.closed.insert((line.closed_until, id));
        }
    }

    /// What was missing may be there now: those that have rested for long enough are offered again.
    pub(crate) fn reopen(&mut self) {
        self.reopenings = self.reopenings.saturating_add(1);
        let later = self.closed.split_off(&(self.reopenings.saturating_add(1), 0));
        for (_, id) in std::mem::replace(&mut self.closed, later) {
            // The number may be another sender's now, or the sender was refused once more.
            if self.lines.get(id).is_some_and(|line| line.closed_until <= self.reopenings) {
                self.open(id);
            }
        }
    }

    /// What is missing may have come for everybody.
    pub(crate) fn reopen_all(&mut self) {
        for (_, id) in std::mem::take(&mut self.closed) {
            self.open(id);
        }
    }

    /// Whether something is not offered because a block could not take it.
    pub(crate) fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// What was missing for the sender may have come.
    pub(crate) fn open(&mut self, id: SenderId) {
        if self.lines.get(id).is_some_and(|line| line.closed_from.is_some()) {
            self.change(id, |line, _| line.closed_from = None);
        }
    }

    /// A transaction has become executable, after the others of its sender. It has a place in the tenth if
    /// it may and there is one.
    pub(crate) fn push(&mut self, id: SenderId, offer: Offer) {
        self.ages.insert(offer.arrival, offer.slot);
        let is_kept = offer.is_favoured && self.fits_tenth(Some(id), offer.bytes);
        let least = self.kept.least();
        self.change(id, |line, waits| {
            line.push(offer, waits);
            if is_kept {
                line.keep_next(least);
            }
        });
    }

    /// A transaction is not executable any more.
    pub(crate) fn remove(&mut self, id: SenderId, nonce: u64, arrival: u64) {
        self.remove_all(id, std::iter::once((nonce, arrival)));
    }

    /// These transactions of a sender, by nonce and arrival, are not executable any more. The sender is put
    /// into its new places once.
    pub(crate) fn remove_all(
        &mut self,
        id: SenderId,
        removed: impl Iterator<Item = (u64, u64)> + Clone,
    ) {
        for (_, arrival) in removed.clone() {
            self.ages.remove(&arrival);
        }
        let least = self.kept.least();
        self.change(id, |line, waits| {
            line.remove_all(removed.map(|(nonce, _)| nonce), least, waits);
        });
    }

    fn change(&mut self, id: SenderId, change: impl FnOnce(&mut Line, &mut Waits)) {
        let Moved { before, now, kept_before, kept } = self.lines.change(id, change);
        self.kept.count(kept_before, kept);
        if before != now {
            self.orders.relist(id, before, now);
            self.kept.relist(id, before.map(|keys| keys.tenth), now.map(|keys| keys.tenth));
        }
    }

    /// What a transaction that offers `rate` and is ready to pay so much at `most` would be worth after
    /// the others of its sender; none if it would wait for the base fee to fall.
    pub(crate) fn worth(&self, id: Option<SenderId>, rate: Rate, most: u64) -> Option<Rate> {
        self.lines.worth(id, rate, most)
    }

    /// Who has what goes first, without what has a place in the tenth: always the last one of its sender.
    /// That is what waits for the base fee to fall, and of that what is ready to pay the least; if
    /// nothing does, what is worth the least, and of equals the latest.
    pub(crate) fn lowest(&self, skipped: &BTreeSet<SenderId>) -> Option<(Least, SenderId)> {
        let waiting = self.waiting_floors().find(|(_, _, _, id)| !skipped.contains(id));
        if let Some((_, _, _, id)) = waiting {
            return Some((Least::Waits, *id));
        }
        let lowest = self.orders.tails.iter().find(|(_, _, id)| !skipped.contains(id));
        lowest.map(|(rate, _, id)| (Least::Pays(*rate), *id))
    }

    /// The senders whose last one waits for the base fee to fall.
    fn waiting_floors(&self) -> impl Iterator<Item = &(u64, Rate, Reverse<u64>, SenderId)> {
        self.orders.floors_below(self.lines.base_fee())
    }

    /// Whether so much can be freed for a newcomer of this worth by evicting at most `most` transactions,
    /// in the order in which [`Market::lowest`] names them.
    pub(crate) fn can_free(&self, worth: Option<Rate>, wanted: Volume, most: usize) -> bool {
        // Mostly the first one is worth too much already.
        let first = self.lowest(&BTreeSet::new());
        if wanted == Volume::default() || first.is_none_or(|(least, _)| !is_outbid(least, worth)) {
            return wanted == Volume::default();
        }
        let waiting: Vec<SenderId> =
            self.waiting_floors().take(most).map(|(_, _, _, id)| *id).collect();
        // What waits is among the tails as well, and comes before all others of them.
        let more = most.saturating_sub(waiting.len());
        let paying =
            self.orders.tails.iter().map(|(_, _, id)| *id).filter(|id| !self.waits_last(*id));
        let count = |id| self.lines.get(id).map_or(0, |line| line.offers.len());
        let all = waiting.iter().copied().chain(paying.take(more));
        // How many the sender has left goes with it.
        let mut next: BinaryHeap<_> =
            all.filter_map(|id| Some(Reverse(self.leaves(id, count(id))?))).collect();
        let mut freed = Volume::default();
        for _ in 0..most {
            if freed.count >= wanted.count && freed.bytes >= wanted.bytes {
                return true;
            }
            let Some(Reverse((least, _, _, id, left))) = next.pop() else { return false };
            if !is_outbid(least, worth) {
                return false;
            }
            let left = left.saturating_sub(1);
            let bytes = self.lines.get(id).and_then(|line| line.offers.get(left));
            freed.count = freed.count.saturating_add(1);
            freed.bytes = freed.bytes.saturating_add(bytes.map_or(0, |offer| offer.bytes));
            next.extend(self.leaves(id, left).map(Reverse));
        }
        freed.count >= wanted.count && freed.bytes >= wanted.bytes
    }

    /// Whether the sender's last transaction waits for the base fee to fall.
    fn waits_last(&self, id: SenderId) -> bool {
        let line = self.lines.get(id);
        line.is_some_and(|line| line.floor() < self.lines.base_fee())
    }

    /// When the last of the sender's first `left` transactions would leave: the least comes first. None if
    /// it has its place in the tenth.
    fn leaves(&self, id: SenderId, left: usize) -> Option<Leaving> {
        let line = self.lines.get(id).filter(|line| left > line.kept.count)?;
        let last = line.offers.get(left.checked_sub(1)?)?;
        let floor = line.floor_of(left);
        let lowest = if left == line.offers.len() {
            line.lowest().unwrap_or(Rate::MAX)
        } else {
            line.lowest_before(left)
        };
        let (least, order) = if floor < self.lines.base_fee() {
            (Least::Waits, (floor, lowest))
        } else {
            (Least::Pays(lowest), (0, 0))
        };
        Some((least, order, Reverse(last.arrival), id, left))
    }

    /// What has its place in the tenth.
    pub(crate) const fn kept(&self) -> Volume {
        self.kept.used()
    }

    /// Whether a step or an end of a run has a place in the tenth, after the others of its sender.
    pub(crate) fn fits_tenth(&self, id: Option<SenderId>, bytes: usize) -> bool {
        self.lines.is_kept(id) && self.kept.has_place_for(bytes)
    }

    /// Whether all that the sender has is in the tenth.
    pub(crate) fn is_kept(&self, id: Option<SenderId>) -> bool {
        self.lines.is_kept(id)
    }

    /// Who gives way to a step or an end of a run in the full tenth, once for each transaction. None if
    /// nobody has to, or not for so much.
    pub(crate) fn givers(&self, id: Option<SenderId>, bytes: usize) -> Option<Vec<SenderId>> {
        self.kept.givers(&self.lines, id, bytes)
    }

    /// The last one that each of these has in the tenth counts with all others from now on.
    pub(crate) fn give_way(&mut self, givers: &[SenderId]) {
        let least = self.kept.least();
        for giver in givers {
            self.change(*giver, |line, _| line.give_way(least));
        }
    }

    fn keep_next(&mut self, id: SenderId) {
        let least = self.kept.least();
        self.change(id, |line, _| line.keep_next(least));
    }

    /// Gives places that have become free, and shares in the tenth, to those who could have one more: at
    /// most so many. What has to leave the tenth for it must find room with all others, of which there is
    /// so much.
    pub(crate) fn share(&mut self, mut room: Volume, most: usize) {
        for _ in 0..most {
            let mut wanting = self.kept.wanting.iter().take(PASSED_MAX);
            let next = wanting.find_map(|(_, _, id)| {
                let line = self.lines.get(*id)?;
                let place = line.kept.count.saturating_add(1);
                let next = line.next_kept().filter(|_| !self.lines.waits_at(*id, place))?;
                Some((*id, next.bytes))
            });
            let Some((id, bytes)) = next else { return };
            let Some(givers) = self.givers(Some(id), bytes) else { return };
            let before = self.kept.used();
            self.give_way(&givers);
            let given = before.bytes.saturating_sub(self.kept.used().bytes);
            self.keep_next(id);
            let has_room = given <= room.bytes.saturating_add(bytes)
                && givers.len() <= room.count.saturating_add(1);
            if !has_room {
                self.give_way(&[id]);
                for giver in givers.into_iter().rev() {
                    self.keep_next(giver);
                }
                return;
            }
            room = Volume {
                count: room.count.saturating_add(1).saturating_sub(givers.len()),
                bytes: room.bytes.saturating_add(bytes).saturating_sub(given),
            };
        }
    }

    /// The executable transaction that was accepted first.
    pub(crate) fn oldest(&self) -> Option<Slot> {
        self.ages.first_key_value().map(|(_, slot)| *slot)
    }

    /// Chooses for a block: those that are worth the most, of equals the earlier ones, but no sender gets
    /// more than its share of it before others that offer the same; and a tenth is for what is favoured
    /// and executable now, whatever it offers. Of each sender only the places of `open` may be chosen, from the
    /// first on; of senders of whom earlier blocks could not take something, only some have a turn in a block.
    /// Not in order.
    pub(crate) fn choose(
        &self,
        wanted: Wanted,
        offered: &mut Offered,
        open: &Open<'_>,
    ) -> Vec<Slot> {
        let limits = wanted.limits;
        let mut choice = Choice::new(&self.lines, wanted, offered, open);
        let tenth = choice::tenth_of(limits);
        let left = choice.take_tenth(&self.orders.leads, limits);
        let used = (tenth.bytes.saturating_sub(left.bytes), tenth.count.saturating_sub(left.count));
        let room = BlockLimits {
            bytes: limits.bytes.saturating_sub(used.0),
            count: limits.count.saturating_sub(used.1),
        };
        choice.take(&self.orders.heads, room, |line| line.offers.len());
        choice.chosen
    }
}

#[cfg(test)]
mod tests;
