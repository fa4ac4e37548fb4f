//! How many executable transactions wait for the base fee to fall.

use std::collections::BTreeMap;

/// The ceilings of all executable transactions, and how many of these are below the base fee. A change of
/// the base fee costs what lies between the old one and the new one, which is a 64th at most from block
/// to block, however many transactions wait.
#[derive(Debug, Default)]
pub(super) struct Waits {
    base_fee: u64,
    /// How many have each ceiling. Without those that any base fee suits.
    ceilings: BTreeMap<u64, usize>,
    waiting: usize,
}

impl Waits {
    /// A market that opens at this base fee.
    pub(super) const fn at(base_fee: u64) -> Self {
        Self { base_fee, ceilings: BTreeMap::new(), waiting: 0 }
    }

    pub(super) const fn base_fee(&self) -> u64 {
        self.base_fee
    }

    /// How many wait.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn add(&mut self, ceiling: u64, count: usize) {
        if ceiling == u64::MAX {
            return;
        }
        let sum = self.ceilings.entry(ceiling).or_default();
        *sum = sum.saturating_add(count);
        if ceiling < self.base_fee {
            self.waiting = self.waiting.saturating_add(count);
        }
    }

    pub(super) fn subtract(&mut self, ceiling: u64, count: usize) {
        let Some(sum) = self.ceilings.get_mut(&ceiling) else { return };
        *sum = sum.saturating_sub(count);
        if *sum == 0 {
            self.ceilings.remove(&ceiling);
        }
        if ceiling < self.base_fee {
            self.waiting = self.waiting.saturating_sub(count);
        }
    }

    /// The base fee has changed. Answers how many wait no more.
    pub(super) fn change(&mut self, base_fee: u64) -> usize {
        let before = std::mem::replace(&mut self.base_fee, base_fee);
        let between = |from: u64, to: u64| {
            self.ceilings.range(from..to).map(|(_, count)| *count).fold(0, usize::saturating_add)
        };
        if base_fee >= before {
            self.waiting = self.waiting.saturating_add(between(before, base_fee));
            return 0;
        }
        let freed = between(base_fee, before);
        self.waiting = self.waiting.saturating_sub(freed);
        freed
    }
}
