//! The orders in which senders stand by what they offer.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::collections::btree_set::{Iter, Range};
use std::iter::Peekable;
use std::ops::Bound;

use super::counts::Counts;
use super::line::Keys;
use super::offer::{Rate, TIPLESS};
use crate::senders::SenderId;

/// The rate and arrival of a sender's first transaction, and the highest base fee for it.
pub(super) type Head = (Reverse<Rate>, u64, SenderId, u64);
pub(super) type Tails = BTreeSet<(Rate, Reverse<u64>, SenderId)>;
/// The highest base fee for a sender's last transaction, and its place in the order of tails.
pub(super) type Floors = BTreeSet<(u64, Rate, Reverse<u64>, SenderId)>;

/// The senders of whom something is offered.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// Those of whom blocks could take everything so far, the best first.
    pub(super) fresh: BTreeSet<Head>,
    /// Those of whom blocks could not take something, the least often refused first.
    pub(super) refused: BTreeSet<(u32, Head)>,
}

impl Heads {
    fn relist(&mut self, before: Option<(u32, Head)>, now: Option<(u32, Head)>) {
        if before == now {
            return;
        }
        match before {
            Some((0, head)) => drop(self.fresh.remove(&head)),
            Some(refused) => drop(self.refused.remove(&refused)),
            None => {}
        }
        match now {
            Some((0, head)) => drop(self.fresh.insert(head)),
            Some(refused) => drop(self.refused.insert(refused)),
            None => {}
        }
    }

    /// The senders that do not wait at this base fee, and of the fresh ones those after `after`.
    pub(super) fn turns(&self, base_fee: u64, after: Option<Head>) -> Turns<'_> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let fresh = self.fresh.range((from, Bound::Unbounded)).peekable();
        Turns { base_fee, fresh, refused: Some(self.refused.iter().peekable()) }
    }
}

/// Goes through the senders of whom something is offered: of the next fresh one and the next one that was
/// refused the better one first.
pub(super) struct Turns<'a> {
    base_fee: u64,
    fresh: Peekable<Range<'a, Head>>,
    refused: Option<Peekable<Iter<'a, (u32, Head)>>>,
}

impl Turns<'_> {
    /// The next sender, and whether it was refused. Whoever waits costs no more than a look.
    pub(super) fn peek(&mut self) -> Option<(Head, bool)> {
        let base_fee = self.base_fee;
        while self.fresh.next_if(|head| head.3 < base_fee).is_some() {}
        let fresh = self.fresh.peek().map(|head| **head);
        let Some(again) = &mut self.refused else { return Some((fresh?, false)) };
        while again.next_if(|(_, head)| head.3 < base_fee).is_some() {}
        let refused = again.peek().map(|(_, head)| *head);
        match (fresh, refused) {
            (Some(fresh), Some(refused)) if fresh > refused => Some((refused, true)),
            (Some(fresh), _) => Some((fresh, false)),
            (None, refused) => Some((refused?, true)),
        }
    }

    /// Goes past the next sender.
    pub(super) fn pop(&mut self) -> Option<(Head, bool)> {
        let (head, was_refused) = self.peek()?;
        if !was_refused {
            self.fresh.next();
        } else if let Some(again) = &mut self.refused {
            again.next();
        }
        Some((head, was_refused))
    }

    /// Nobody that was refused has a turn any more.
    pub(super) fn pass_refused(&mut self) {
        self.refused = None;
    }
}

/// The senders with something executable, by what they offer.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) heads: Heads,
    /// Senders whose first transaction is favoured. Tips and arrival do not count among them.
    pub(super) leads: Heads,
    /// Senders with something that has no place in the tenth that is kept for steps.
    pub(super) tails: Tails,
    /// The same senders by what they are ready to pay at most, if that is not everything: whoever is
    /// ready to pay less than the base fee comes before it.
    pub(super) floors: Floors,
    /// The highest base fees for the first transactions of those of whom something is offered.
    pub(super) offering: Counts,
}

/// Where a sender stands where tips do not count: whoever had its turn longest ago comes first.
pub(super) const fn tipless((_, _, id, highest): Head, since: u64) -> Head {
    (Reverse(TIPLESS), since, id, highest)
}

/// Moves an entry of an order to another place, into it, or out of it.
pub(super) fn move_in<T: Ord>(order: &mut BTreeSet<T>, before: Option<T>, now: Option<T>) {
    if before == now {
        return;
    }
    if let Some(before) = before {
        order.remove(&before);
    }
    order.extend(now);
}

impl Orders {
    /// The senders whose last one is not ready to pay this base fee.
    pub(super) fn floors_below(
        &self,
        base_fee: u64,
    ) -> impl Iterator<Item = &(u64, Rate, Reverse<u64>, SenderId)> {
        self.floors.iter().take_while(move |(floor, ..)| *floor < base_fee)
    }

    /// The highest base fee at which something is offered.
    pub(super) fn highest_offering(&self) -> Option<u64> {
        self.offering.highest()
    }

    /// A sender stands elsewhere. An order in which it stands where it stood is left alone: a transaction
    /// that joins others of its sender moves the sender in one or two of them.
    pub(super) fn relist(&mut self, id: SenderId, before: Option<Keys>, now: Option<Keys>) {
        let head = |keys: Keys| (keys.head.0, keys.head.1, id, keys.highest);
        // What is closed is not looked at.
        let open = |keys: Keys| (!keys.is_closed).then(|| (keys.refusals, head(keys)));
        self.heads.relist(before.and_then(open), now.and_then(open));
        let lead = |keys: Keys| {
            let (refusals, head) = open(keys).filter(|_| keys.leads)?;
            Some((refusals, tipless(head, keys.since)))
        };
        self.leads.relist(before.and_then(lead), now.and_then(lead));
        let offered = |keys: Keys| (!keys.is_closed).then_some(keys.highest);
        self.count_offering(before.and_then(offered), now.and_then(offered));
        let tail = |keys: Keys| (!keys.is_kept).then_some((keys.tail.0, keys.tail.1, id));
        move_in(&mut self.tails, before.and_then(tail), now.and_then(tail));
        let floor = |keys: Keys| {
            let (rate, arrival, id) = tail(keys).filter(|_| keys.floor < u64::MAX)?;
            Some((keys.floor, rate, arrival, id))
        };
        move_in(&mut self.floors, before.and_then(floor), now.and_then(floor));
    }

    fn count_offering(&mut self, before: Option<u64>, now: Option<u64>) {
        if before == now {
            return;
        }
        if let Some(before) = before {
            self.offering.subtract(before, 1);
        }
        if let Some(now) = now {
            self.offering.add(now, 1);
        }
    }
}
