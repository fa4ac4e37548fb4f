//! What waiting transactions offer for their places, from v7 on: who is chosen for a block, and who
//! makes room in a full pool (docs/protocol.md section 15.6).
//!
//! A transaction is worth the lowest rate among its sender's executable ones up to it, because these
//! have to come first. So of each sender the first one is worth the most and the last one the least, and
//! it is enough to have senders in order: for blocks by what the first one offers, for eviction by the
//! lowest of all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

use types::{Amount, Body, CheckedTx};

use crate::order::BlockLimits;
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::Volume;

mod choice;
mod kept;
mod line;
mod waits;

pub use choice::Offered;
pub(crate) use choice::Wanted;

use choice::Choice;
use kept::Kept;
use line::{Keys, Line};
use waits::Waits;

/// A tip for each KiB, in micro-OMBRA, rounded down.
pub(crate) type Rate = u64;

/// What everything is worth where tips do not count.
const TIPLESS: Rate = 0;

/// What the transaction offers, whatever comes before it.
pub(crate) fn rate(tx: &CheckedTx) -> Rate {
    let tip = if let Body::Transfer(transfer) = tx.body() {
        transfer.fee
    } else {
        tx.bid().ok().and_then(|bid| bid.tip).unwrap_or(Amount::ZERO)
    };
    let bytes = u64::try_from(tx.content_bytes()).unwrap_or(u64::MAX).max(1);
    let rate = u128::from(tip.get()).saturating_mul(1_024).checked_div(u128::from(bytes));
    rate.and_then(|rate| u64::try_from(rate).ok()).unwrap_or(u64::MAX)
}

/// The least that a newcomer must be worth to take the place of what is worth `lowest`: an eighth more.
/// Otherwise one could outbid others by a micro again and again.
pub(crate) fn price_over(lowest: Rate) -> Rate {
    lowest.saturating_add(lowest.div_ceil(8).max(1))
}

/// What has to go first for a newcomer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Least {
    /// It waits for the base fee to fall: it pays nothing now, whatever it offers.
    Waits,
    /// It is worth so much.
    Pays(Rate),
}

/// Whether the least makes room for a newcomer that is worth so much; a newcomer without a worth would
/// wait itself.
pub(crate) fn is_outbid(least: Least, worth: Option<Rate>) -> bool {
    match (worth, least) {
        (None, _) => false,
        (Some(_), Least::Waits) => true,
        (Some(worth), Least::Pays(lowest)) => worth >= price_over(lowest),
    }
}

/// Whether a tenth of the pool and of each block is kept for such transactions: a miner gets no tip for
/// the work that it has done.
pub(crate) fn is_favoured(tx: &CheckedTx) -> bool {
    matches!(tx.body(), Body::AgentStep(_) | Body::AgentFinish(_))
}

/// An executable transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    pub(crate) slot: Slot,
    pub(crate) nonce: u64,
    pub(crate) arrival: u64,
    pub(crate) bytes: usize,
    pub(crate) rate: Rate,
    /// The highest base fee at which a block may take it, in micro-OMBRA per KiB.
    pub(crate) highest: u64,
    pub(crate) is_favoured: bool,
}

/// The rate and arrival of a sender's first transaction, and the highest base fee for it.
type Head = (Reverse<Rate>, u64, SenderId, u64);
type Heads = BTreeSet<Head>;
type Tails = BTreeSet<(Rate, Reverse<u64>, SenderId)>;
/// The highest base fee for a sender's last transaction, and its place in the order of tails.
type Floors = BTreeSet<(u64, Rate, Reverse<u64>, SenderId)>;

/// A transaction that may leave: the order in which they do, and how many its sender has up to it.
type Leaving = (Least, (u64, Rate), Reverse<u64>, SenderId, usize);

/// All executable transactions by what they offer.
#[derive(Debug, Default)]
pub(crate) struct Market {
    lines: BTreeMap<SenderId, Line>,
    heads: Heads,
    /// Senders whose first transaction is favoured. Tips and arrival do not count among them.
    leads: Heads,
    /// How often a sender got another first transaction.
    turns: u64,
    /// Senders with something that has no place in the tenth that is kept for steps.
    tails: Tails,
    /// The same senders by what they are ready to pay at most, if that is not everything: whoever is
    /// ready to pay less than the base fee comes before it.
    floors: Floors,
    /// What has its place in the tenth.
    kept: Kept,
    /// The highest base fee for the first transaction of each sender of whom something is offered.
    offering: BTreeSet<(u64, SenderId)>,
    /// Senders of whom something is not offered, because a block could not take it.
    closed: BTreeSet<SenderId>,
    waits: Waits,
    /// By arrival, so the oldest first.
    ages: BTreeMap<u64, Slot>,
}

/// Where a sender stands where tips do not count: whoever had its turn longest ago comes first.
const fn tipless((_, _, id, highest): Head, since: u64) -> Head {
    (Reverse(TIPLESS), since, id, highest)
}

/// Moves an entry of an order to another place, into it, or out of it.
fn move_in<T: Ord>(order: &mut BTreeSet<T>, before: Option<T>, now: Option<T>) {
    if before == now {
        return;
    }
    if let Some(before) = before {
        order.remove(&before);
    }
    order.extend(now);
}

impl Market {
    /// An empty market at this base fee, of a pool of this size.
    pub(crate) fn at(base_fee: u64, pool: Volume) -> Self {
        Self { waits: Waits::at(base_fee), kept: Kept::of(pool), ..Self::default() }
    }

    /// The base fee of the next block. What comes back because it has fallen may be what others need.
    pub(crate) fn follow(&mut self, base_fee: u64) {
        if self.waits.change(base_fee) > 0 {
            self.reopen();
        }
    }

    /// How many transactions wait for the base fee to fall: those that are not ready to pay it, and those
    /// of their senders after them.
    pub(crate) const fn waiting(&self) -> usize {
        self.waits.waiting()
    }

    /// The nonce of the first transaction of the sender that waits for the base fee to fall, and where
    /// it is. Those after it wait, too.
    pub(crate) fn first_waiting(&self, id: SenderId) -> Option<(u64, Slot)> {
        let offer = self.lines.get(&id)?.first_waiting(self.waits.base_fee())?;
        Some((offer.nonce, offer.slot))
    }

    /// Whether there is something to offer for the next block.
    pub(crate) fn has_offers(&self) -> bool {
        self.offering.last().is_some_and(|(highest, _)| *highest >= self.waits.base_fee())
    }

    /// A block could not take the transaction: it needs something that is not in the block. It and those
    /// after it are not offered until [`Market::reopen`].
    pub(crate) fn close(&mut self, id: SenderId, nonce: u64) {
        self.closed.insert(id);
        self.change(id, |line, _| {
            line.closed_from = Some(line.closed_from.map_or(nonce, |from| from.min(nonce)));
        });
    }

    /// What was missing may be there now.
    pub(crate) fn reopen(&mut self) {
        for id in std::mem::take(&mut self.closed) {
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
        self.ages.remove(&arrival);
        let least = self.kept.least();
        self.change(id, |line, waits| line.remove(nonce, least, waits));
    }

    fn change(&mut self, id: SenderId, change: impl FnOnce(&mut Line, &mut Waits)) {
        let line = self.lines.entry(id).or_default();
        let (keys, kept) = (line.keys(), line.kept);
        let first = |line: &Line| line.offers.front().map(|offer| offer.nonce);
        let first_before = first(line);
        change(line, &mut self.waits);
        if first(line) != first_before {
            line.since = self.turns;
            self.turns = self.turns.saturating_add(1);
        }
        let (new_keys, new_kept, is_empty) = (line.keys(), line.kept, line.offers.is_empty());
        self.kept.count(kept, new_kept);
        if is_empty {
            self.lines.remove(&id);
        }
        if keys != new_keys {
            self.relist(id, keys, new_keys);
        }
    }

    /// A sender stands elsewhere. An order in which it stands where it stood is left alone: a transaction
    /// that joins others of its sender moves the sender in one or two of them.
    fn relist(&mut self, id: SenderId, before: Option<Keys>, now: Option<Keys>) {
        let head = |keys: Keys| (keys.head.0, keys.head.1, id, keys.highest);
        move_in(&mut self.heads, before.map(head), now.map(head));
        let lead = |keys: Keys| keys.leads.then(|| tipless(head(keys), keys.since));
        move_in(&mut self.leads, before.and_then(lead), now.and_then(lead));
        let offered = |keys: Keys| (!keys.is_closed).then_some((keys.highest, id));
        move_in(&mut self.offering, before.and_then(offered), now.and_then(offered));
        let tail = |keys: Keys| (!keys.is_kept).then_some((keys.tail.0, keys.tail.1, id));
        move_in(&mut self.tails, before.and_then(tail), now.and_then(tail));
        let floor = |keys: Keys| {
            let (rate, arrival, id) = tail(keys).filter(|_| keys.floor < u64::MAX)?;
            Some((keys.floor, rate, arrival, id))
        };
        move_in(&mut self.floors, before.and_then(floor), now.and_then(floor));
        self.kept.relist(id, before.map(|keys| keys.tenth), now.map(|keys| keys.tenth));
    }

    /// What a transaction that offers `rate` and is ready to pay so much at `most` would be worth after
    /// the others of its sender; none if it would wait for the base fee to fall.
    pub(crate) fn worth(&self, id: Option<SenderId>, rate: Rate, most: u64) -> Option<Rate> {
        let line = id.and_then(|id| self.lines.get(&id));
        let base_fee = self.waits.base_fee();
        if most < base_fee || line.is_some_and(|line| line.first_waiting(base_fee).is_some()) {
            return None;
        }
        let lowest = line.and_then(|line| line.rates.first());
        Some(lowest.map_or(rate, |(lowest, _)| rate.min(*lowest)))
    }

    /// Who has what goes first, without what has a place in the tenth: always the last one of its sender.
    /// That is what waits for the base fee to fall, and of that what is ready to pay the least; if
    /// nothing does, what is worth the least, and of equals the latest.
    pub(crate) fn lowest(&self, skipped: &BTreeSet<SenderId>) -> Option<(Least, SenderId)> {
        let waiting = self.waiting_floors().find(|(_, _, _, id)| !skipped.contains(id));
        if let Some((_, _, _, id)) = waiting {
            return Some((Least::Waits, *id));
        }
        let lowest = self.tails.iter().find(|(_, _, id)| !skipped.contains(id));
        lowest.map(|(rate, _, id)| (Least::Pays(*rate), *id))
    }

    /// The senders whose last one waits for the base fee to fall.
    fn waiting_floors(&self) -> impl Iterator<Item = &(u64, Rate, Reverse<u64>, SenderId)> {
        let base_fee = self.waits.base_fee();
        self.floors.iter().take_while(move |(floor, ..)| *floor < base_fee)
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
        let paying = self.tails.iter().map(|(_, _, id)| *id).filter(|id| !self.waits_last(*id));
        let count = |id| self.lines.get(&id).map_or(0, |line| line.offers.len());
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
            let bytes = self.lines.get(&id).and_then(|line| line.offers.get(left));
            freed.count = freed.count.saturating_add(1);
            freed.bytes = freed.bytes.saturating_add(bytes.map_or(0, |offer| offer.bytes));
            next.extend(self.leaves(id, left).map(Reverse));
        }
        freed.count >= wanted.count && freed.bytes >= wanted.bytes
    }

    /// Whether the sender's last transaction waits for the base fee to fall.
    fn waits_last(&self, id: SenderId) -> bool {
        let line = self.lines.get(&id);
        line.is_some_and(|line| line.floor_of(line.offers.len()) < self.waits.base_fee())
    }

    /// When the last of the sender's first `left` transactions would leave: the least comes first. None if
    /// it has its place in the tenth.
    fn leaves(&self, id: SenderId, left: usize) -> Option<Leaving> {
        let line = self.lines.get(&id).filter(|line| left > line.kept.count)?;
        let last = line.offers.get(left.checked_sub(1)?)?;
        let floor = line.floor_of(left);
        let lowest = if left == line.offers.len() {
            line.rates.first().map_or(Rate::MAX, |(lowest, _)| *lowest)
        } else {
            line.lowest_before(left)
        };
        let (least, order) = if floor < self.waits.base_fee() {
            (Least::Waits, (floor, lowest))
        } else {
            (Least::Pays(lowest), (0, 0))
        };
        Some((least, order, Reverse(last.arrival), id, left))
    }

    /// The executable transaction that was accepted first.
    pub(crate) fn oldest(&self) -> Option<Slot> {
        self.ages.first_key_value().map(|(_, slot)| *slot)
    }

    /// Chooses for a block: those that are worth the most, of equals the earlier ones, but no sender gets
    /// more than its share of it before others that offer the same; and a tenth is for what is favoured
    /// and executable now, whatever it offers. Of each sender only the places of `open` may be chosen, from the first on.
    /// Not in order.
    pub(crate) fn choose(
        &self,
        wanted: Wanted,
        offered: &mut Offered,
        open: &dyn Fn(SenderId) -> Range<usize>,
    ) -> Vec<Slot> {
        let limits = wanted.limits;
        let mut choice = Choice::new(self, wanted, offered, open);
        let tenth = choice::tenth_of(limits);
        let left = choice.take_tenth(limits);
        let used = (tenth.bytes.saturating_sub(left.bytes), tenth.count.saturating_sub(left.count));
        let room = BlockLimits {
            bytes: limits.bytes.saturating_sub(used.0),
            count: limits.count.saturating_sub(used.1),
        };
        choice.take(&self.heads, room, |line| line.offers.len());
        choice.chosen
    }
}

#[cfg(test)]
mod tests;
