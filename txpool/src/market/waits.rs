//! How many executable transactions wait for the base fee to fall.

use super::counts::Counts;

/// The ceilings of all executable transactions, and how many of these are below the base fee. A change of
/// the base fee costs what lies between the old one and the new one, which is a 64th at most from block
/// to block, however many transactions wait.
#[derive(Debug, Default)]
pub(super) struct Waits {
    base_fee: u64,
    /// How many have each ceiling. Without those that any base fee suits.
    ceilings: Counts,
    waiting: usize,
}

impl Waits {
    /// A market that opens at this base fee.
    pub(super) const fn at(base_fee: u64) -> Self {
        Self { base_fee, ceilings: Counts::new(), waiting: 0 }
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
        self.ceilings.add(ceiling, count);
        if ceiling < self.base_fee {
            self.waiting = self.waiting.saturating_add(count);
        }
    }

    pub(super) fn subtract(&mut self, ceiling: u64, count: usize) {
        if self.ceilings.subtract(ceiling, count) && ceiling < self.base_fee {
            self.waiting = self.waiting.saturating_sub(count);
        }
    }

    /// The base fee has changed. Answers how many wait no more.
    pub(super) fn change(&mut self, base_fee: u64) -> usize {
        let before = std::mem::replace(&mut self.base_fee, base_fee);
        if base_fee >= before {
            self.waiting = self.waiting.saturating_add(self.ceilings.sum(before..base_fee));
            return 0;
        }
        let freed = self.ceilings.sum(base_fee..before);
        self.waiting = self.waiting.saturating_sub(freed);
        freed
    }
}
