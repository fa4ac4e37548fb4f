//! One sender's executable transactions, by nonce, and what they say of its place among others.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::counts::Counts;
use super::offer::{Offer, Rate};
use super::waits::Waits;

/// What blocks could not take rests for 64 reopenings at most.
const REST_SHIFT_MAX: u32 = 6;

/// One sender's executable transactions, by nonce.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) offers: VecDeque<Offer>,
    /// How many offer each rate. Mostly all of a sender offer the same.
    pub(super) rates: Counts,
    /// How many at the beginning are favoured: nothing else of the sender has to come before them.
    pub(super) lead: usize,
    /// How many of these have their place in the tenth that the pool keeps: the first ones.
    pub(super) kept: Part,
    /// The highest base fee at which a block may take each and those before it, in runs of the same.
    pub(super) ceilings: VecDeque<Run>,
    /// From this nonce on nothing is offered: a block could not take what has it.
    pub(super) closed_from: Option<u64>,
    /// Until so many reopenings of all senders, if something is not offered.
    pub(super) closed_until: u64,
    /// How often blocks could not take something while the first one was the first.
    pub(super) refusals: u32,
    /// The keys under which its sender stands in the orders: those of before a change that is going on.
    pub(super) listed: Option<Keys>,
    /// When the first one became the first, counted in such events of all senders: whoever had its turn
    /// longer ago has less.
    pub(super) since: u64,
}

/// Some transactions of a sender, from the first one on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Part {
    pub(super) count: usize,
    pub(super) bytes: usize,
    /// Its bytes, where a small transaction counts as much as a mean one.
    pub(super) weight: usize,
}

/// Some transactions of a sender, one after the other, that the same base fee keeps out of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    /// The nonce of the first one, which is ready to pay less than all before it.
    pub(super) nonce: u64,
    pub(super) highest: u64,
    pub(super) count: usize,
}

/// Where a sender stands in the orders of the market.
#[expect(clippy::struct_excessive_bools, reason = "each says of which orders the sender is in")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Keys {
    /// The best first, the earlier of equals.
    pub(super) head: (Reverse<Rate>, u64),
    /// The highest base fee of the first one.
    pub(super) highest: u64,
    /// Whether nothing of the sender is offered.
    pub(super) is_closed: bool,
    /// How often blocks could not take something of it.
    pub(super) refusals: u32,
    /// The worst first, the later of equals.
    pub(super) tail: (Rate, Reverse<u64>),
    /// Whether the first one is favoured.
    pub(super) leads: bool,
    /// When it became the first one.
    pub(super) since: u64,
    /// The highest base fee of the last one.
    pub(super) floor: u64,
    /// Whether all have their places in the tenth.
    pub(super) is_kept: bool,
    pub(super) tenth: TenthKeys,
}

/// Where a sender stands among those that share the tenth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TenthKeys {
    /// What it has there.
    pub(super) weight: usize,
    /// The bytes and the arrival of the next one that could have a place there.
    pub(super) next: Option<(usize, u64)>,
    /// The highest base fee of the last one, if all have their places there.
    pub(super) floor: Option<u64>,
}

impl Line {
    pub(super) fn keys(&self) -> Option<Keys> {
        let (first, last) = (self.offers.front()?, self.offers.back()?);
        let (floor, is_kept) = (self.floor(), self.is_kept());
        Some(Keys {
            head: (Reverse(first.rate), first.arrival),
            highest: first.highest,
            is_closed: self.is_closed_at(first.nonce),
            refusals: self.refusals,
            tail: (self.lowest()?, Reverse(last.arrival)),
            leads: self.lead > 0,
            since: self.since,
            floor,
            is_kept,
            tenth: TenthKeys {
                weight: self.kept.weight,
                next: self.next_kept().map(|offer| (offer.bytes, offer.arrival)),
                floor: is_kept.then_some(floor),
            },
        })
    }

    /// The lowest rate of all.
    pub(super) fn lowest(&self) -> Option<Rate> {
        self.rates.lowest()
    }

    /// The next one that could have a place in the tenth.
    pub(super) fn next_kept(&self) -> Option<&Offer> {
        self.offers.get(self.kept.count).filter(|_| self.kept.count < self.lead)
    }

    /// Whether all have their places in the tenth.
    pub(super) fn is_kept(&self) -> bool {
        self.kept.count == self.offers.len()
    }

    /// The next one has its place in the tenth. A transaction counts `least` bytes at least.
    pub(super) fn keep_next(&mut self, least: usize) {
        let Some(bytes) = self.next_kept().map(|offer| offer.bytes) else { return };
        let Part { count, bytes: sum, weight } = self.kept;
        self.kept = Part {
            count: count.saturating_add(1),
            bytes: sum.saturating_add(bytes),
            weight: weight.saturating_add(bytes.max(least)),
        };
    }

    /// The last one that has its place in the tenth has none any more.
    pub(super) fn give_way(&mut self, least: usize) {
        let last = self.kept.count.checked_sub(1).and_then(|place| self.offers.get(place));
        if let Some(bytes) = last.map(|offer| offer.bytes) {
            self.lose_kept(bytes, least);
        }
    }

    fn lose_kept(&mut self, bytes: usize, least: usize) {
        let Part { count, bytes: sum, weight } = self.kept;
        self.kept = Part {
            count: count.saturating_sub(1),
            bytes: sum.saturating_sub(bytes),
            weight: weight.saturating_sub(bytes.max(least)),
        };
    }

    /// A block could not take the transaction with this nonce, after so many reopenings. What fails again and
    /// again is offered ever more rarely.
    pub(super) fn close(&mut self, nonce: u64, reopenings: u64) {
        self.closed_from = Some(self.closed_from.map_or(nonce, |from| from.min(nonce)));
        let rest = 1_u64 << self.refusals.min(REST_SHIFT_MAX);
        self.refusals = self.refusals.saturating_add(1);
        self.closed_until = self.closed_until.max(reopenings.saturating_add(rest));
    }

    pub(super) fn is_closed_at(&self, nonce: u64) -> bool {
        self.closed_from.is_some_and(|from| nonce >= from)
    }

    pub(super) fn push(&mut self, offer: Offer, waits: &mut Waits) {
        self.rates.add(offer.rate, 1);
        self.offers.push_back(offer);
        self.extend_lead();
        self.append_ceiling(self.ceilings.len(), &offer, waits);
    }

    fn extend_lead(&mut self) {
        while self.offers.get(self.lead).is_some_and(|offer| offer.is_favoured) {
            self.lead = self.lead.saturating_add(1);
        }
    }

    /// Removes transactions by nonce. As far as these are the first ones, as those of a block mostly are,
    /// this takes no longer than to go through the line once.
    pub(super) fn remove_all(
        &mut self,
        nonces: impl Iterator<Item = u64> + Clone,
        least: usize,
        waits: &mut Waits,
    ) {
        let first = nonces.clone().zip(&self.offers);
        let count = first.take_while(|(nonce, offer)| *nonce == offer.nonce).count();
        self.remove_first(count, least, waits);
        for nonce in nonces.skip(count) {
            self.remove(nonce, least, waits);
        }
    }

    fn remove_first(&mut self, count: usize, least: usize, waits: &mut Waits) {
        for _ in 0..count {
            let Some(offer) = self.offers.pop_front() else { return };
            self.rates.subtract(offer.rate, 1);
            self.lead = self.lead.saturating_sub(1);
            if self.kept.count > 0 {
                self.lose_kept(offer.bytes, least);
            }
            if self.closed_from == Some(offer.nonce) {
                self.closed_from = None;
            }
        }
        self.extend_lead();
        self.remove_first_ceilings(count, waits);
    }

    /// So many transactions were removed from the front. Of the run in which they ended, the rest may wait
    /// for less.
    fn remove_first_ceilings(&mut self, mut count: usize, waits: &mut Waits) {
        while let Some(run) = self.ceilings.front_mut() {
            if count < run.count {
                break;
            }
            count = count.saturating_sub(run.count);
            waits.subtract(run.highest, run.count);
            self.ceilings.pop_front();
        }
        let Some(run) = self.ceilings.front_mut().filter(|_| count > 0) else { return };
        waits.subtract(run.highest, count);
        run.count = run.count.saturating_sub(count);
        let Some(first) = self.offers.front() else { return };
        if first.highest == run.highest {
            // Mostly all of a sender are ready to pay the same.
            run.nonce = first.nonce;
            return;
        }
        let Run { highest, count: rest, .. } = *run;
        waits.subtract(highest, rest);
        self.ceilings.pop_front();
        let mut runs = 0;
        for next in 0..rest {
            let Some(offer) = self.offers.get(next).copied() else { return };
            runs = self.append_ceiling(runs, &offer, waits);
        }
    }

    fn remove(&mut self, nonce: u64, least: usize, waits: &mut Waits) {
        let Ok(place) = self.offers.binary_search_by_key(&nonce, |offer| offer.nonce) else {
            return;
        };
        let Some(offer) = self.offers.remove(place) else { return };
        self.rates.subtract(offer.rate, 1);
        if place < self.lead {
            self.lead = self.lead.saturating_sub(1);
        }
        if place < self.kept.count {
            self.lose_kept(offer.bytes, least);
        }
        self.extend_lead();
        self.remove_ceiling(place, nonce, waits);
        if self.closed_from == Some(nonce) {
            self.closed_from = None;
        }
    }

    /// The lowest rate of those before a place.
    pub(super) fn lowest_before(&self, place: usize) -> Rate {
        let before = self.offers.iter().take(place).map(|offer| offer.rate);
        before.min().unwrap_or(Rate::MAX)
    }

    /// The highest base fee at which a block may take all transactions.
    pub(super) fn floor(&self) -> u64 {
        // The ceilings descend.
        self.ceilings.back().map_or(u64::MAX, |run| run.highest)
    }

    /// The highest base fee at which a block may take the first `count` transactions.
    pub(super) fn floor_of(&self, count: usize) -> u64 {
        let last = count.checked_sub(1).and_then(|place| self.offers.get(place));
        let Some(last) = last else { return u64::MAX };
        let runs = self.ceilings.partition_point(|run| run.nonce <= last.nonce);
        let run = runs.checked_sub(1).and_then(|run| self.ceilings.get(run));
        run.map_or(u64::MAX, |run| run.highest)
    }

    /// Adds a transaction to the first `runs` runs of ceilings. Answers how many these are then.
    fn append_ceiling(&mut self, runs: usize, offer: &Offer, waits: &mut Waits) -> usize {
        let last = runs.checked_sub(1).and_then(|last| self.ceilings.get_mut(last));
        if let Some(run) = last.filter(|run| offer.highest >= run.highest) {
            run.count = run.count.saturating_add(1);
            waits.add(run.highest, 1);
            return runs;
        }
        let (nonce, highest) = (offer.nonce, offer.highest);
        self.ceilings.insert(runs, Run { nonce, highest, count: 1 });
        waits.add(highest, 1);
        runs.saturating_add(1)
    }

    /// A transaction was removed from this place. If it began a run, the rest of that may wait for less.
    fn remove_ceiling(&mut self, place: usize, nonce: u64, waits: &mut Waits) {
        let after = self.ceilings.partition_point(|run| run.nonce <= nonce);
        let Some(at) = after.checked_sub(1) else { return };
        let Some(run) = self.ceilings.get_mut(at) else { return };
        if run.nonce != nonce {
            run.count = run.count.saturating_sub(1);
            waits.subtract(run.highest, 1);
            return;
        }
        let Some(run) = self.ceilings.remove(at) else { return };
        waits.subtract(run.highest, run.count);
        let mut runs = at;
        for next in place..place.saturating_add(run.count.saturating_sub(1)) {
            let Some(offer) = self.offers.get(next).copied() else { return };
            runs = self.append_ceiling(runs, &offer, waits);
        }
    }

    /// The first transaction that a block with this base fee may not take.
    pub(super) fn first_waiting(&self, base_fee: u64) -> Option<&Offer> {
        // The ceilings descend.
        let at = self.ceilings.partition_point(|run| run.highest >= base_fee);
        let nonce = self.ceilings.get(at)?.nonce;
        let place = self.offers.binary_search_by_key(&nonce, |offer| offer.nonce).ok()?;
        self.offers.get(place)
    }
}
