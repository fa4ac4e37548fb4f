//! What of the market goes into a block.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

use types::{Address, CheckedTx, Hash};

use super::line::Line;
use super::lines::Lines;
use super::offer::{Offer, Rate, TIPLESS};
use super::orders::{Head, Heads, Turns};
use crate::order::{BlockLimits, TX_BYTES_MIN, share_of};
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::Volume;

/// What a block has room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) limits: BlockLimits,
    /// One sender gets at most one part in so many before others that offer the same.
    pub(crate) shares: usize,
}

/// What was offered to whoever builds a block, so that it can ask for more.
#[derive(Clone, Debug, Default)]
pub struct Offered {
    /// What was offered of each sender.
    of_sender: BTreeMap<SenderId, Taken>,
    /// What of the block one sender gets before others that offer the same, and what of its tenth.
    shares: Option<[BlockLimits; 2]>,
    left_out: BTreeSet<Address>,
    /// What was not valid in the block, and whose it is.
    refused: Vec<(Address, Hash)>,
    /// How many senders were offered of whom earlier blocks could not take something.
    tried_again: usize,
    /// The last one of the first senders in their order of whom nothing more is offered: in the order of all,
    /// and in that of the tenth.
    passed: [Option<Head>; 2],
    /// Whether the pool has nothing more, whatever room there is.
    pub(crate) is_over: bool,
}

/// What was offered of a sender.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// The nonce after the last one.
    next: u64,
    volume: Volume,
}

impl Offered {
    /// The block has no room for a transaction of this sender, so nothing more of it is offered.
    pub fn leave_out(&mut self, sender: Address) {
        self.left_out.insert(sender);
    }

    /// A transaction is not valid in the block, so nothing more of its sender is offered.
    pub fn refuse(&mut self, tx: &CheckedTx) {
        if self.left_out.insert(tx.from()) {
            self.refused.push((tx.from(), tx.hash()));
        }
    }

    /// Of each sender the first transaction that was offered and was not valid in the block.
    pub(crate) fn refused(&self) -> impl Iterator<Item = Hash> {
        self.refused.iter().map(|(_, hash)| *hash)
    }

    pub(crate) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Of whom nothing more is offered, to be put back by [`Offered::keep_left_out`].
    pub(crate) fn take_left_out(&mut self) -> BTreeSet<Address> {
        std::mem::take(&mut self.left_out)
    }

    pub(crate) fn keep_left_out(&mut self, left_out: BTreeSet<Address>) {
        self.left_out = left_out;
    }
}

/// So many senders that have nothing to choose, or nothing that fits, are passed over for one choice. Those
/// of whom nothing is offered, or nothing more in this block, do not count.
const PASSED_MAX: usize = 32_768;

/// So many senders of whom earlier blocks could not take something are tried again in a block: the others
/// must not wait for them.
const TRIED_AGAIN_MAX: usize = 1_024;

/// A tenth of a block.
pub(super) const fn tenth_of(limits: BlockLimits) -> BlockLimits {
    BlockLimits { bytes: limits.bytes / 10, count: limits.count / 10 }
}

/// Which places of a sender may be chosen; none if nothing of it is offered to this block any more.
pub(super) type Open<'a> = dyn Fn(SenderId) -> Option<Range<usize>> + 'a;

/// The next transaction of a sender: worth, whether it is within the sender's share, arrival or, in the
/// tenth, the sender's last turn (the earlier is greater), and its place. The greatest is chosen first.
type Next = (Rate, bool, Reverse<u64>, SenderId, usize);

/// What came of the next sender's turn.
enum Turn {
    /// This may be chosen.
    Has(Next),
    /// It has nothing.
    HasNothing,
    /// It has no turn in this block any more.
    Over,
}

pub(super) struct Choice<'a> {
    lines: &'a Lines,
    /// What one sender gets before others that offer the same: of the block, and of its tenth.
    shares: [BlockLimits; 2],
    /// Whether this is about the tenth that is kept for what is favoured. Tips do not count there.
    is_tenth: bool,
    offered: &'a mut Offered,
    open: &'a Open<'a>,
    pub(super) chosen: Vec<Slot>,
}

impl<'a> Choice<'a> {
    pub(super) fn new(
        lines: &'a Lines,
        wanted: Wanted,
        offered: &'a mut Offered,
        open: &'a Open<'a>,
    ) -> Self {
        // A share is a part of the block, not of what is left of it.
        let limits = [wanted.limits, tenth_of(wanted.limits)];
        let shares = limits.map(|limits| share_of(limits, wanted.shares));
        let shares = *offered.shares.get_or_insert(shares);
        Self { lines, shares, is_tenth: false, offered, open, chosen: Vec::new() }
    }

    /// Takes what is favoured and fits into a tenth of the limits, whatever it tips: the senders take
    /// turns, and each gets a share of the tenth at its turn. Otherwise whoever tips a little on steps of
    /// runs of its own, or has many of them waiting, would have the tenth for itself. Answers the room
    /// that is left of the tenth.
    pub(super) fn take_tenth(&mut self, leads: &Heads, limits: BlockLimits) -> BlockLimits {
        self.is_tenth = true;
        let left = self.take(leads, tenth_of(limits), |line| line.lead);
        self.is_tenth = false;
        left
    }

    /// Takes of these senders what fits into the room, of each one no more than the places below `end`.
    /// Answers the room that is left.
    pub(super) fn take(
        &mut self,
        senders: &Heads,
        mut room: BlockLimits,
        end: impl Fn(&Line) -> usize,
    ) -> BlockLimits {
        let base_fee = self.lines.base_fee();
        let mut passed = 0_usize;
        let mut begun: BinaryHeap<Next> = BinaryHeap::new();
        let mut turns = senders.turns(base_fee, self.passed());
        let mut is_front = true;
        while room.count > 0 && room.bytes >= TX_BYTES_MIN && passed < PASSED_MAX {
            let first = turns.peek().map(|(head, _)| (head.0.0, true, Reverse(head.1)));
            let next = begun.peek().map(|next| (next.0, next.1, next.2));
            let (worth, _, _, id, place) = match (first, next) {
                (None, None) => break,
                (first, next) if next >= first => {
                    let Some(next) = begun.pop() else { break };
                    next
                }
                (first, _) => match self.turn(&mut turns, &mut is_front) {
                    // Others may be before it: the sender has had its share, or what is left of it
                    // is worth less than its first one.
                    Turn::Has(next) if Some((next.0, next.1, next.2)) != first => {
                        begun.push(next);
                        continue;
                    }
                    Turn::Has(next) => next,
                    Turn::HasNothing => {
                        passed = passed.saturating_add(1);
                        continue;
                    }
                    Turn::Over => continue,
                },
            };
            let Some(line) = self.lines.get(id) else { continue };
            let last = end(line).min((self.open)(id).map_or(0, |open| open.end));
            let Some(offer) = line.offers.get(place).filter(|_| place < last) else { continue };
            if offer.bytes > room.bytes
                || offer.highest < base_fee
                || line.is_closed_at(offer.nonce)
            {
                passed = passed.saturating_add(1);
                continue;
            }
            room.bytes = room.bytes.saturating_sub(offer.bytes);
            room.count = room.count.saturating_sub(1);
            let used = self.choose(id, offer);
            let place = place.saturating_add(1);
            if let Some(after) = line.offers.get(place).filter(|_| place < last) {
                begun.push(self.next((line, used), (id, place), after, worth));
            }
        }
        room
    }

    /// Answers how much of the sender is chosen with this one.
    fn choose(&mut self, id: SenderId, offer: &Offer) -> Volume {
        self.chosen.push(offer.slot);
        let Taken { next, volume } = self.offered.of_sender.entry(id).or_default();
        *next = offer.nonce.saturating_add(1);
        volume.count = volume.count.saturating_add(1);
        volume.bytes = volume.bytes.saturating_add(offer.bytes);
        *volume
    }

    /// What the transaction at a place would be chosen by, after others of its sender of this worth, so much
    /// of which is chosen.
    fn next(
        &self,
        (line, used): (&Line, Volume),
        (id, place): (SenderId, usize),
        offer: &Offer,
        worth: Rate,
    ) -> Next {
        let bytes = used.bytes.saturating_add(offer.bytes);
        let [of_block, of_tenth] = self.shares;
        let share = if self.is_tenth { of_tenth } else { of_block };
        let is_within = used.count == 0 || (used.count < share.count && bytes <= share.bytes);
        let (worth, at) = if self.is_tenth {
            (TIPLESS, line.since)
        } else {
            (worth.min(offer.rate), offer.arrival)
        };
        (worth, is_within, Reverse(at), id, place)
    }

    /// Up to which sender nothing more is offered.
    fn passed(&self) -> Option<Head> {
        let [of_block, of_tenth] = self.offered.passed;
        if self.is_tenth { of_tenth } else { of_block }
    }

    /// The next sender has its turn. While it is at the front, nobody before it has anything more.
    fn turn(&mut self, turns: &mut Turns<'_>, is_front: &mut bool) -> Turn {
        let Some((head, was_refused)) = turns.pop() else { return Turn::Over };
        let id = head.2;
        let Some(open) = (self.open)(id) else {
            if *is_front && !was_refused {
                let [of_block, of_tenth] = &mut self.offered.passed;
                *(if self.is_tenth { of_tenth } else { of_block }) = Some(head);
            }
            return Turn::Over;
        };
        *is_front &= was_refused;
        if was_refused && !self.offered.of_sender.contains_key(&id) {
            if self.offered.tried_again >= TRIED_AGAIN_MAX {
                turns.pass_refused();
                return Turn::Over;
            }
            self.offered.tried_again = self.offered.tried_again.saturating_add(1);
        }
        self.first_of(id, open).map_or(Turn::HasNothing, Turn::Has)
    }

    /// What of a sender may be chosen first, if there is something.
    fn first_of(&self, id: SenderId, open: Range<usize>) -> Option<Next> {
        let line = self.lines.get(id)?;
        let taken = self.offered.of_sender.get(&id);
        let place = match taken {
            Some(Taken { next, .. }) => {
                let first = line.offers.front()?.nonce;
                let offered = usize::try_from(next.saturating_sub(first)).ok()?;
                offered.max(open.start)
            }
            None => open.start,
        };
        let offer = line.offers.get(place).filter(|_| place < open.end)?;
        let used = taken.map(|taken| taken.volume).unwrap_or_default();
        Some(self.next((line, used), (id, place), offer, line.lowest_before(place)))
    }
}
