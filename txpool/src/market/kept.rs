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

use super::line::{Part, TenthKeys};
use super::lines::Lines;
use super::orders::move_in;
use crate::senders::SenderId;
use crate::tally::Volume;

/// So many transactions give way for one at most. What they lose for it leaves the pool, at the worst.
const GIVERS_MAX: usize = 64;

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

    /// What has its place in the tenth.
    pub(super) const fn used(&self) -> Volume {
        self.used
    }

    /// Whether there is a place for so many bytes.
    pub(super) fn has_place_for(&self, bytes: usize) -> bool {
        self.fits(bytes, Volume::default())
    }

    /// Who gives way to a step or an end of a run in the full tenth, once for each transaction. None if
    /// nobody has to, or not for so much.
    pub(super) fn givers(
        &self,
        lines: &Lines,
        id: Option<SenderId>,
        bytes: usize,
    ) -> Option<Vec<SenderId>> {
        let own = id.and_then(|id| lines.get(id)).map_or(0, |line| line.kept.weight);
        let own = own.saturating_add(self.weight(bytes));
        if self.has_place_for(bytes) {
            return Some(Vec::new());
        }
        let (base_fee, seen) = (lines.base_fee(), GIVERS_MAX.saturating_add(1));
        let waiting = self.floors.iter().take_while(|(floor, _)| *floor < base_fee);
        let waiting: BTreeSet<SenderId> = waiting.take(seen).map(|(_, id)| *id).collect();
        let most = self.holders.iter().rev().take(seen);
        // Mostly nobody has to.
        let most = most.filter(|(weight, _)| *weight > own).map(|(_, id)| *id);
        let most = most.filter(|id| !waiting.contains(id));
        let all = waiting.iter().copied().chain(most).filter(|other| Some(*other) != id);
        let mut next: BinaryHeap<_> = all
            .filter_map(|id| {
                let kept = lines.get(id)?.kept;
                Some((lines.waits_at(id, kept.count), kept.weight, id, kept.count))
            })
            .collect();
        let (mut givers, mut freed) = (Vec::new(), Volume::default());
        while !self.fits(bytes, freed) {
            let (waits, weight, giver, left) = next.pop()?;
            let offer = lines.get(giver)?.offers.get(left.checked_sub(1)?)?;
            let rest = weight.saturating_sub(self.weight(offer.bytes));
            if givers.len() == GIVERS_MAX || (!waits && rest < own) {
                return None;
            }
            givers.push(giver);
            freed.count = freed.count.saturating_add(1);
            freed.bytes = freed.bytes.saturating_add(offer.bytes);
            let left = left.saturating_sub(1);
            if left > 0 {
                next.push((lines.waits_at(giver, left), rest, giver, left));
            }
        }
        Some(givers)
    }
}
