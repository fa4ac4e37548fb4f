//! How often each number occurs.

use std::collections::BTreeMap;
use std::ops::Range;

/// How often each number occurs; numbers that do not occur take no memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts(BTreeMap<u64, usize>);

impl Counts {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The number occurs `count` times more.
    pub(super) fn add(&mut self, number: u64, count: usize) {
        let sum = self.0.entry(number).or_default();
        *sum = sum.saturating_add(count);
    }

    /// The number occurs `count` times less. Answers whether it occurred at all.
    pub(super) fn subtract(&mut self, number: u64, count: usize) -> bool {
        let Some(sum) = self.0.get_mut(&number) else { return false };
        *sum = sum.saturating_sub(count);
        if *sum == 0 {
            self.0.remove(&number);
        }
        true
    }

    /// The lowest number that occurs.
    pub(super) fn lowest(&self) -> Option<u64> {
        self.0.first_key_value().map(|(number, _)| *number)
    }

    /// The highest number that occurs.
    pub(super) fn highest(&self) -> Option<u64> {
        self.0.last_key_value().map(|(number, _)| *number)
    }

    /// How often the numbers of a range occur together.
    pub(super) fn sum(&self, range: Range<u64>) -> usize {
        self.0.range(range).map(|(_, count)| *count).fold(0, usize::saturating_add)
    }
}
