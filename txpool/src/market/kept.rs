//! The tenth of the pool that is kept for steps and ends of runs, and who has how much of it.
//!
//! Each sender's places are those of its first transactions, as far as these are steps and ends of runs.
//! While the tenth is full, whoever has the most in it gives way to who has less, one transaction at a
//! time, as long as it has no less than the other afterwards. So of `n` senders in it each one that wants
//! it comes to an `n`th, whoever came first. Nobody can take turns in it with somebody else for nothing:
//! each exchange makes the shares more equal, and the way back would need the opposite.
//!
//! What waits for the base fee to fall cannot be executed now, so it gives way whoever has the most.

use std::collections::{BTreeSet, BinaryHeap};

use super::line::{Line, Part, TenthKeys};
use super::{Market, Offer, move_in};
use crate::senders::SenderId;
use crate::tally::Volume;

/// So many transactions give way for one at most. What they lose for it leaves the pool, at the worst.
const GIVERS_MAX: usize = 64;
/// So many senders that wait for the base fee to fall are passed over in search of one that does not.
const PASSED_MAX: usize = 16;

/// The senders that share the tenth.
#[derive(Debug, Default)]
pub(super) struct Kept {
    tenth: Volume,
    /// As many bytes does a transaction count as at least: a mean one of a pool that is full.
    least: usize,
    used: Volume,
    /// Who has places in the tenth, by how much.
    pub(super) holders: BTreeSet<(usize, SenderId)>,
    /// Who could have one more, by how much that would be then, and since when.
    pub(super) wanting: BTreeSet<(usize, u64, SenderId)>,
    /// Who has nothing else than places in the tenth, by the highest base fee of the last one, if that is
    /// not every one.
    pub(super) floors: BTreeSet<(u64, SenderId)>,
}

impl Kept {
    /// The tenth of a pool of this size.
    pub(super) fn of(pool: Volume) -> Self {
        let tenth = Volume { count: pool.count / 10, bytes: pool.bytes / 10 };
        let least = pool.bytes.checked_div(pool.count).unwrap_or(0).max(1);
        Self { tenth, least, ..Self::default() }
    }

    pub(super) const fn least(&self) -> usize {
        self.least
    }

    pub(super) fn count(&mut self, before: Part, now: Part) {
        let Volume { count, bytes } = self.used;
        self.used = Volume {
            count: count.saturating_sub(before.count).saturating_add(now.count),
            bytes: bytes.saturating_sub(before.bytes).saturating_add(now.bytes),
        };
    }

    fn weight(&self, bytes: usize) -> usize {
        bytes.max(self.least)
    }

    fn fits(&self, bytes: usize, freed: Volume) -> bool {
        let Volume { count, bytes: used } = self.used;
        count.saturating_sub(freed.count) < self.tenth.count
            && used.saturating_sub(freed.bytes).saturating_add(bytes) <= self.tenth.bytes
    }

    fn wants(&self, keys: &TenthKeys) -> Option<(usize, u64)> {
        let (bytes, arrival) = keys.next?;
        Some((keys.weight.saturating_add(self.weight(bytes)), arrival))
    }

    /// A sender stands elsewhere in the orders of the tenth.
    pub(super) fn relist(
        &mut self,
        id: SenderId,
        before: Option<TenthKeys>,
        now: Option<TenthKeys>,
    ) {
        let holder = |keys: TenthKeys| (keys.weight > 0).then_some((keys.weight, id));
        move_in(&mut self.holders, before.and_then(holder), now.and_then(holder));
        let wants = |keys: Option<TenthKeys>| {
            let (weight, arrival) = self.wants(&keys?)?;
            Some((weight, arrival, id))
        };
        let (wanted, wanting) = (wants(before), wants(now));
        move_in(&mut self.wanting, wanted, wanting);
        let floor = |keys: TenthKeys| Some((keys.floor.filter(|floor| *floor < u64::MAX)?, id));
        move_in(&mut self.floors, before.and_then(floor), now.and_then(floor));
    }
}

impl Market {
    /// What has its place in the tenth.
    pub(crate) const fn kept(&self) -> Volume {
        self.kept.used
    }

    /// Whether a step or an end of a run has a place in the tenth, after the others of its sender.
    pub(crate) fn fits_tenth(&self, id: Option<SenderId>, bytes: usize) -> bool {
        self.is_kept(id) && self.kept.fits(bytes, Volume::default())
    }

    /// Whether all that the sender has is in the tenth.
    pub(crate) fn is_kept(&self, id: Option<SenderId>) -> bool {
        id.and_then(|id| self.lines.get(&id)).is_none_or(Line::is_kept)
    }

    /// Who gives way to a step or an end of a run in the full tenth, once for each transaction. None if
    /// nobody has to, or not for so much.
    pub(crate) fn givers(&self, id: Option<SenderId>, bytes: usize) -> Option<Vec<SenderId>> {
        let own = id.and_then(|id| self.lines.get(&id)).map_or(0, |line| line.kept.weight);
        let own = own.saturating_add(self.kept.weight(bytes));
        if self.kept.fits(bytes, Volume::default()) {
            return Some(Vec::new());
        }
        let (base_fee, seen) = (self.waits.base_fee(), GIVERS_MAX.saturating_add(1));
        let waiting = self.kept.floors.iter().take_while(|(floor, _)| *floor < base_fee);
        let waiting: BTreeSet<SenderId> = waiting.take(seen).map(|(_, id)| *id).collect();
        let most = self.kept.holders.iter().rev().take(seen);
        // Mostly nobody has to.
        let most = most.filter(|(weight, _)| *weight > own).map(|(_, id)| *id);
        let most = most.filter(|id| !waiting.contains(id));
        let all = waiting.iter().copied().chain(most).filter(|other| Some(*other) != id);
        let mut next: BinaryHeap<_> = all
            .filter_map(|id| {
                let kept = self.lines.get(&id)?.kept;
                Some((self.waits_at(id, kept.count), kept.weight, id, kept.count))
            })
            .collect();
        let (mut givers, mut freed) = (Vec::new(), Volume::default());
        while !self.kept.fits(bytes, freed) {
            let (waits, weight, giver, left) = next.pop()?;
            let offer = self.kept_offer(giver, left)?;
            let rest = weight.saturating_sub(self.kept.weight(offer.bytes));
            if givers.len() == GIVERS_MAX || (!waits && rest < own) {
                return None;
            }
            givers.push(giver);
            freed.count = freed.count.saturating_add(1);
            freed.bytes = freed.bytes.saturating_add(offer.bytes);
            let left = left.saturating_sub(1);
            if left > 0 {
                next.push((self.waits_at(giver, left), rest, giver, left));
            }
        }
        Some(givers)
    }

    /// The last of the first `count` transactions of a sender.
    fn kept_offer(&self, id: SenderId, count: usize) -> Option<&Offer> {
        self.lines.get(&id)?.offers.get(count.checked_sub(1)?)
    }

    /// Whether the last of the first `count` transactions of a sender waits for the base fee to fall.
    fn waits_at(&self, id: SenderId, count: usize) -> bool {
        self.lines.get(&id).is_some_and(|line| line.floor_of(count) < self.waits.base_fee())
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
                let line = self.lines.get(id)?;
                let place = line.kept.count.saturating_add(1);
                let next = line.next_kept().filter(|_| !self.waits_at(*id, place))?;
                Some((*id, next.bytes))
            });
            let Some((id, bytes)) = next else { return };
            let Some(givers) = self.givers(Some(id), bytes) else { return };
            let before = self.kept.used;
            self.give_way(&givers);
            let given = before.bytes.saturating_sub(self.kept.used.bytes);
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
}
