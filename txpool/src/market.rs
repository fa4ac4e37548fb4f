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
mod line;
mod waits;

pub use choice::Offered;
pub(crate) use choice::Wanted;

use choice::Choice;
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

/// All executable transactions by what they offer.
#[derive(Debug, Default)]
pub(crate) struct Market {
    lines: BTreeMap<SenderId, Line>,
    heads: Heads,
    /// Senders whose first transaction is favoured. Tips and arrival do not count among them.
    leads: Heads,
    /// How often a sender got another first transaction.
    turns: u64,
    /// Senders with something that is not spared.
    tails: Tails,
    /// Senders with nothing else.
    spared_tails: Tails,
    /// The highest base fee for the first transaction of each sender of whom something is offered.
    offering: BTreeSet<(u64, SenderId)>,
    /// Senders of whom something is not offered, because a block could not take it.
    closed: BTreeSet<SenderId>,
    waits: Waits,
    lead: Volume,
    /// By arrival, so the oldest first.
    ages: BTreeMap<u64, Slot>,
}

/// Where a sender stands where tips do not count: whoever had its turn longest ago comes first.
const fn tipless((_, _, id, highest): Head, since: u64) -> Head {
    (Reverse(TIPLESS), since, id, highest)
}

impl Market {
    /// An empty market at this base fee.
    pub(crate) fn at(base_fee: u64) -> Self {
        Self { waits: Waits::at(base_fee), ..Self::default() }
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

    /// A transaction has become executable, after the others of its sender.
    pub(crate) fn push(&mut self, id: SenderId, offer: Offer) {
        self.ages.insert(offer.arrival, offer.slot);
        self.change(id, |line, waits| line.push(offer, waits));
    }

    /// A transaction is not executable any more.
    pub(crate) fn remove(&mut self, id: SenderId, nonce: u64, arrival: u64) {
        self.ages.remove(&arrival);
        self.change(id, |line, waits| line.remove(nonce, waits));
    }

    fn change(&mut self, id: SenderId, change: impl FnOnce(&mut Line, &mut Waits)) {
        let line = self.lines.entry(id).or_default();
        let (keys, lead) = (line.keys(), line.lead());
        let first = |line: &Line| line.offers.front().map(|offer| offer.nonce);
        let first_before = first(line);
        change(line, &mut self.waits);
        if first(line) != first_before {
            line.since = self.turns;
            self.turns = self.turns.saturating_add(1);
        }
        let (new_keys, new_lead, is_empty) = (line.keys(), line.lead(), line.offers.is_empty());
        self.lead = Volume {
            count: self.lead.count.saturating_sub(lead.count).saturating_add(new_lead.count),
            bytes: self.lead.bytes.saturating_sub(lead.bytes).saturating_add(new_lead.bytes),
        };
        if is_empty {
            self.lines.remove(&id);
        }
        if keys == new_keys {
            return;
        }
        if let Some(Keys { head, highest, is_closed, tail, leads, since, is_spared }) = keys {
            let head = (head.0, head.1, id, highest);
            self.heads.remove(&head);
            if leads {
                self.leads.remove(&tipless(head, since));
            }
            if !is_closed {
                self.offering.remove(&(highest, id));
            }
            self.tails_of(is_spared).remove(&(tail.0, tail.1, id));
        }
        if let Some(Keys { head, highest, is_closed, tail, leads, since, is_spared }) = new_keys {
            let head = (head.0, head.1, id, highest);
            self.heads.insert(head);
            if leads {
                self.leads.insert(tipless(head, since));
            }
            if !is_closed {
                self.offering.insert((highest, id));
            }
            self.tails_of(is_spared).insert((tail.0, tail.1, id));
        }
    }

    const fn tails_of(&mut self, is_spared: bool) -> &mut Tails {
        if is_spared { &mut self.spared_tails } else { &mut self.tails }
    }

    /// What is favoured and executable now: nothing else of its sender has to come before it.
    pub(crate) const fn lead(&self) -> Volume {
        self.lead
    }

    /// Whether all that the sender has would be favoured with one more that is.
    pub(crate) fn is_in_lead(&self, id: SenderId) -> bool {
        self.lines.get(&id).is_none_or(|line| line.lead == line.offers.len())
    }

    /// What a transaction that offers `rate` would be worth after the others of its sender.
    pub(crate) fn worth(&self, id: Option<SenderId>, rate: Rate) -> Rate {
        let line = id.and_then(|id| self.lines.get(&id));
        let lowest = line.and_then(|line| line.rates.first());
        lowest.map_or(rate, |(lowest, _)| rate.min(*lowest))
    }

    /// Who has the transaction that is worth the least, and how much that is: always the last one of its
    /// sender, and of equals the latest. Those of `with_spared` count with the others.
    pub(crate) fn lowest(
        &self,
        with_spared: bool,
        skipped: &BTreeSet<SenderId>,
    ) -> Option<(Rate, SenderId)> {
        let first = |tails: &Tails| tails.iter().find(|(_, _, id)| !skipped.contains(id)).copied();
        let spared = if with_spared { first(&self.spared_tails) } else { None };
        first(&self.tails).into_iter().chain(spared).min().map(|(rate, _, id)| (rate, id))
    }

    /// Whether so much can be freed for a newcomer of this worth by evicting at most `most` transactions,
    /// in the order in which [`Market::lowest`] names them.
    pub(crate) fn can_free(
        &self,
        worth: Rate,
        wanted: Volume,
        with_spared: bool,
        most: usize,
    ) -> bool {
        let spared = if with_spared { Some(&self.spared_tails) } else { None };
        let tails = [Some(&self.tails), spared].into_iter().flatten();
        let tails = tails.flat_map(|tails| tails.iter().take(most));
        let count = |id| self.lines.get(id).map_or(0, |line| line.offers.len());
        // How many the sender has left goes with it.
        let mut next: BinaryHeap<_> =
            tails.map(|(rate, arrival, id)| Reverse((*rate, *arrival, *id, count(id)))).collect();
        let mut freed = Volume::default();
        for _ in 0..most {
            if freed.count >= wanted.count && freed.bytes >= wanted.bytes {
                return true;
            }
            let Some(Reverse((lowest, _, id, left))) = next.pop() else { return false };
            if worth < price_over(lowest) {
                return false;
            }
            let Some(line) = self.lines.get(&id) else { continue };
            let left = left.saturating_sub(1);
            freed.count = freed.count.saturating_add(1);
            freed.bytes =
                freed.bytes.saturating_add(line.offers.get(left).map_or(0, |offer| offer.bytes));
            let Some(last) = left.checked_sub(1).and_then(|place| line.offers.get(place)) else {
                continue;
            };
            if with_spared || left > line.lead {
                next.push(Reverse((line.lowest_before(left), Reverse(last.arrival), id, left)));
            }
        }
        freed.count >= wanted.count && freed.bytes >= wanted.bytes
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
