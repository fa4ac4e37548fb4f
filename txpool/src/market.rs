//! What waiting transactions offer for their places, from v7 on: who is chosen for a block, and who
//! makes room in a full pool (docs/protocol.md section 15.6).
//!
//! A transaction is worth the lowest rate among its sender's executable ones up to it, because these
//! have to come first. So of each sender the first one is worth the most and the last one the least, and
//! it is enough to have senders in order: for blocks by what the first one offers, for eviction by the
//! lowest of all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::ops::Range;

use types::{Address, Amount, Body, CheckedTx};

use crate::order::{BlockLimits, TX_BYTES_MIN};
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::Volume;

/// A tip for each KiB, in micro-OMBRA, rounded down.
pub(crate) type Rate = u64;

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

/// The highest base fee at which a block may take the transaction, in micro-OMBRA per KiB. Those that a
/// block may take for nothing are not bound by one.
pub(crate) fn highest(tx: &CheckedTx) -> u64 {
    let may_be_free = matches!(
        tx.body(),
        Body::AgentClaim(_)
            | Body::AgentStep(_)
            | Body::AgentFinish(_)
            | Body::ValidatorVote(_)
            | Body::ForkVote(_)
            | Body::ParamVote(_)
            | Body::Evidence(_)
    );
    let bid = tx.bid().ok().filter(|_| !may_be_free);
    bid.map_or(u64::MAX, |bid| bid.highest().get())
}

/// What a block has room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) limits: BlockLimits,
    /// What is not ready to pay so much waits.
    pub(crate) base_fee: u64,
}

/// An executable transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    pub(crate) slot: Slot,
    pub(crate) nonce: u64,
    pub(crate) arrival: u64,
    pub(crate) bytes: usize,
    pub(crate) rate: Rate,
    pub(crate) highest: u64,
    pub(crate) is_favoured: bool,
}

/// One sender's executable transactions, by nonce.
#[derive(Debug, Default)]
struct Line {
    offers: VecDeque<Offer>,
    /// (rate, nonce) of each.
    rates: BTreeSet<(Rate, u64)>,
    /// How many at the beginning are favoured: nothing else of the sender has to come before them.
    lead: usize,
    lead_bytes: usize,
}

/// Where a sender stands in the orders of the market.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Keys {
    /// The best first, the earlier of equals.
    head: (Reverse<Rate>, u64),
    /// The worst first, the later of equals.
    tail: (Rate, Reverse<u64>),
    /// Whether the first one is favoured.
    leads: bool,
    /// Whether all are.
    is_spared: bool,
}

type Heads = BTreeSet<(Reverse<Rate>, u64, SenderId)>;
type Tails = BTreeSet<(Rate, Reverse<u64>, SenderId)>;

impl Line {
    fn keys(&self) -> Option<Keys> {
        let (first, last) = (self.offers.front()?, self.offers.back()?);
        Some(Keys {
            head: (Reverse(first.rate), first.arrival),
            tail: (self.rates.first()?.0, Reverse(last.arrival)),
            leads: self.lead > 0,
            is_spared: self.lead == self.offers.len(),
        })
    }

    const fn lead(&self) -> Volume {
        Volume { count: self.lead, bytes: self.lead_bytes }
    }

    fn push(&mut self, offer: Offer) {
        self.rates.insert((offer.rate, offer.nonce));
        self.offers.push_back(offer);
        self.extend_lead();
    }

    fn extend_lead(&mut self) {
        while let Some(offer) = self.offers.get(self.lead).filter(|offer| offer.is_favoured) {
            self.lead_bytes = self.lead_bytes.saturating_add(offer.bytes);
            self.lead = self.lead.saturating_add(1);
        }
    }

    fn remove(&mut self, nonce: u64) {
        let Ok(place) = self.offers.binary_search_by_key(&nonce, |offer| offer.nonce) else {
            return;
        };
        let Some(offer) = self.offers.remove(place) else { return };
        self.rates.remove(&(offer.rate, nonce));
        if place < self.lead {
            self.lead = self.lead.saturating_sub(1);
            self.lead_bytes = self.lead_bytes.saturating_sub(offer.bytes);
        }
        self.extend_lead();
    }

    /// The lowest rate of those before a place.
    fn lowest_before(&self, place: usize) -> Rate {
        let before = self.offers.iter().take(place).map(|offer| offer.rate);
        before.min().unwrap_or(Rate::MAX)
    }
}

/// What was offered to whoever builds a block, so that it can ask for more.
#[derive(Clone, Debug, Default)]
pub struct Offered {
    /// The nonce after the last one offered of each sender.
    next: BTreeMap<SenderId, u64>,
    left_out: BTreeSet<Address>,
    has_refused: bool,
    /// Whether the pool has nothing more, whatever room there is.
    pub(crate) is_over: bool,
}

impl Offered {
    /// The block has no room for a transaction of this sender, so nothing more of it is offered.
    pub fn leave_out(&mut self, sender: Address) {
        self.left_out.insert(sender);
    }

    /// A transaction of this sender is not valid in the block, so nothing more of it is offered.
    pub fn refuse(&mut self, sender: Address) {
        self.has_refused = true;
        self.leave_out(sender);
    }

    /// Whether something that was offered was not valid in the block.
    #[must_use]
    pub const fn has_refused(&self) -> bool {
        self.has_refused
    }

    pub(crate) fn clone_left_out(&self) -> BTreeSet<Address> {
        self.left_out.clone()
    }
}

/// All executable transactions by what they offer.
#[derive(Debug, Default)]
pub(crate) struct Market {
    lines: BTreeMap<SenderId, Line>,
    heads: Heads,
    /// Senders whose first transaction is favoured.
    leads: Heads,
    /// Senders with something that is not spared.
    tails: Tails,
    /// Senders with nothing else.
    spared_tails: Tails,
    lead: Volume,
    /// By arrival, so the oldest first.
    ages: BTreeMap<u64, Slot>,
}

impl Market {
    /// A transaction has become executable, after the others of its sender.
    pub(crate) fn push(&mut self, id: SenderId, offer: Offer) {
        self.ages.insert(offer.arrival, offer.slot);
        self.change(id, |line| line.push(offer));
    }

    /// A transaction is not executable any more.
    pub(crate) fn remove(&mut self, id: SenderId, nonce: u64, arrival: u64) {
        self.ages.remove(&arrival);
        self.change(id, |line| line.remove(nonce));
    }

    fn change(&mut self, id: SenderId, change: impl FnOnce(&mut Line)) {
        let line = self.lines.entry(id).or_default();
        let (keys, lead) = (line.keys(), line.lead());
        change(line);
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
        if let Some(Keys { head, tail, leads, is_spared }) = keys {
            self.heads.remove(&(head.0, head.1, id));
            if leads {
                self.leads.remove(&(head.0, head.1, id));
            }
            self.tails_of(is_spared).remove(&(tail.0, tail.1, id));
        }
        if let Some(Keys { head, tail, leads, is_spared }) = new_keys {
            self.heads.insert((head.0, head.1, id));
            if leads {
                self.leads.insert((head.0, head.1, id));
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

    /// Chooses for a block: those that are worth the most, of equals the earlier ones; but a tenth is
    /// for what is favoured and executable now. Of each sender only the places of `open` may be chosen,
    /// from the first on. Not in order.
    pub(crate) fn choose(
        &self,
        wanted: Wanted,
        offered: &mut Offered,
        open: &dyn Fn(SenderId) -> Range<usize>,
    ) -> Vec<Slot> {
        let Wanted { limits, base_fee } = wanted;
        let mut choice = Choice { market: self, base_fee, offered, open, chosen: Vec::new() };
        let tenth = BlockLimits { bytes: limits.bytes / 10, count: limits.count / 10 };
        let left = choice.take(&self.leads, tenth, |line| line.lead);
        let used = (tenth.bytes.saturating_sub(left.bytes), tenth.count.saturating_sub(left.count));
        let room = BlockLimits {
            bytes: limits.bytes.saturating_sub(used.0),
            count: limits.count.saturating_sub(used.1),
        };
        choice.take(&self.heads, room, |line| line.offers.len());
        choice.chosen
    }
}

/// So many senders that have nothing to choose, or nothing that fits, are passed over for one choice.
const PASSED_MAX: usize = 32_768;

/// The next transaction of a sender of which one was chosen: worth, arrival (the earlier is greater), and
/// its place.
type Next = (Rate, Reverse<u64>, SenderId, usize);

struct Choice<'a> {
    market: &'a Market,
    base_fee: u64,
    offered: &'a mut Offered,
    open: &'a dyn Fn(SenderId) -> Range<usize>,
    chosen: Vec<Slot>,
}

impl Choice<'_> {
    /// Takes of these senders what fits into the room, of each one no more than the places below `end`.
    /// Answers the room that is left.
    fn take(
        &mut self,
        senders: &Heads,
        mut room: BlockLimits,
        end: impl Fn(&Line) -> usize,
    ) -> BlockLimits {
        let mut passed = 0_usize;
        let mut begun: BinaryHeap<Next> = BinaryHeap::new();
        let mut senders = senders.iter().peekable();
        while room.count > 0 && room.bytes >= TX_BYTES_MIN && passed < PASSED_MAX {
            let first = senders.peek().map(|(rate, arrival, _)| (rate.0, Reverse(*arrival)));
            let next = begun.peek().map(|(rate, arrival, ..)| (*rate, *arrival));
            let (id, place, worth) = match (first, next) {
                (None, None) => break,
                (first, next) if next >= first => {
                    let Some((rate, _, id, place)) = begun.pop() else { break };
                    (id, place, rate)
                }
                _ => {
                    let Some((_, _, id)) = senders.next() else { break };
                    match self.first_of(*id) {
                        // It is worth less than the first one of its sender: others may be before it.
                        Some(next) if next.3 > 0 => {
                            begun.push(next);
                            continue;
                        }
                        Some((worth, _, _, place)) => (*id, place, worth),
                        None => {
                            passed = passed.saturating_add(1);
                            continue;
                        }
                    }
                }
            };
            let Some(line) = self.market.lines.get(&id) else { continue };
            let last = end(line).min((self.open)(id).end);
            let Some(offer) = line.offers.get(place).filter(|_| place < last) else { continue };
            if offer.bytes > room.bytes || offer.highest < self.base_fee {
                passed = passed.saturating_add(1);
                continue;
            }
            room.bytes = room.bytes.saturating_sub(offer.bytes);
            room.count = room.count.saturating_sub(1);
            self.chosen.push(offer.slot);
            self.offered.next.insert(id, offer.nonce.saturating_add(1));
            let place = place.saturating_add(1);
            if let Some(after) = line.offers.get(place).filter(|_| place < last) {
                begun.push((worth.min(after.rate), Reverse(after.arrival), id, place));
            }
        }
        room
    }

    /// What of a sender may be chosen first, if there is something.
    fn first_of(&self, id: SenderId) -> Option<Next> {
        let line = self.market.lines.get(&id)?;
        let open = (self.open)(id);
        let place = match self.offered.next.get(&id) {
            Some(next) => {
                let first = line.offers.front()?.nonce;
                let offered = usize::try_from(next.saturating_sub(first)).ok()?;
                offered.max(open.start)
            }
            None => open.start,
        };
        let offer = line.offers.get(place).filter(|_| place < open.end)?;
        let worth = line.lowest_before(place).min(offer.rate);
        Some((worth, Reverse(offer.arrival), id, place))
    }
}

#[cfg(test)]
mod tests;
