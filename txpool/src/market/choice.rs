//! What of the market goes into a block.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

use types::{Address, CheckedTx, Hash};

use super::line::Line;
use super::lines::Lines;
use super::offer::{Offer, Rate, TIPLESS};
use super::orders::Heads;
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

    pub(crate) fn clone_left_out(&self) -> BTreeSet<Address> {
        self.left_out.clone()
    }
}

/// So many senders that have nothing to choose, or nothing that fits, are passed over for one choice.
const PASSED_MAX: usize = 32_768;

/// A tenth of a block.
pub(super) const fn tenth_of(limits: BlockLimits) -> BlockLimits {
    BlockLimits { bytes: limits.bytes / 10, count: limits.count / 10 }
}

/// The next transaction of a sender: worth, whether it is within the sender's share, arrival or, in the
/// tenth, the sender's last turn (the earlier is greater), and its place. The greatest is chosen first.
type Next = (Rate, bool, Reverse<u64>, SenderId, usize);

pub(super) struct Choice<'a> {
    lines: &'a Lines,
    /// What one sender gets before others that offer the same: of the block, and of its tenth.
    shares: [BlockLimits; 2],
    /// Whether this is about the tenth that is kept for what is favoured. Tips do not count there.
    is_tenth: bool,
    offered: &'a mut Offered,
    open: &'a dyn Fn(SenderId) -> Range<usize>,
    pub(super) chosen: Vec<Slot>,
}

impl<'a> Choice<'a> {
    pub(super) fn new(
        lines: &'a Lines,
        wanted: Wanted,
        offered: &'a mut Offered,
        open: &'a dyn Fn(SenderId) -> Range<usize>,
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
        // Whoever waits costs no more than a look.
        let mut senders = senders.iter().filter(|head| head.3 >= base_fee).peekable();
        while room.count > 0 && room.bytes >= TX_BYTES_MIN && passed < PASSED_MAX {
            let first = senders.peek().map(|head| (head.0.0, true, Reverse(head.1)));
            let next = begun.peek().map(|next| (next.0, next.1, next.2));
            let (worth, _, _, id, place) = match (first, next) {
                (None, None) => break,
                (first, next) if next >= first => {
                    let Some(next) = begun.pop() else { break };
                    next
                }
                (first, _) => {
                    let Some((_, _, id, _)) = senders.next() else { break };
                    match self.first_of(*id) {
                        // Others may be before it: the sender has had its share, or what is left of it
                        // is worth less than its first one.
                        Some(next) if Some((next.0, next.1, next.2)) != first => {
                            begun.push(next);
                            continue;
                        }
                        Some(next) => next,
                        None => {
                            passed = passed.saturating_add(1);
                            continue;
                        }
                    }
                }
            };
            let Some(line) = self.lines.get(id) else { continue };
            let last = end(line).min((self.open)(id).end);
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

    /// What of a sender may be chosen first, if there is something.
    fn first_of(&self, id: SenderId) -> Option<Next> {
        let line = self.lines.get(id)?;
        let open = (self.open)(id);
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
