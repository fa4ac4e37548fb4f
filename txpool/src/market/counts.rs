//! How many there are of each of some numbers.

use std::collections::BTreeMap;
use std::ops::Range;

/// A count for each number that there is at least once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts(BTreeMap<u64, usize>);

impl Counts {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn add(&mut self, number: u64, count: usize) {
        let sum = self.0.entry(number).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Counts so many fewer. Answers whether there was one.
    pub(super) fn subtract(&mut self, number: u64, count: usize) -> bool {
        let Some(sum) = self.0.get_mut(&number) else { return false };
        *sum = sum.saturating_sub(count);
        if *sum == 0 {
            self.0.remove(&number);
        }
        true
    }

    /// The lowest number.
    pub(super) fn lowest(&self) -> Option<u64> {
        self.0.first_key_value().map(|(number, _)| *number)
    }

    /// The highest number.
    pub(super) fn highest(&self) -> Option<u64> {
        self.0.last_key_value().map(|(number, _)| *number)
    }

    /// How many there are of the numbers of a range.
    pub(super) fn sum(&self, range: Range<u64>) -> usize {
        self.0.range(range).map(|(_, count)| *count).fold(0, usize::saturating_add)
    }
}
