//! A set of indexes of chunks, one bit each.

use serde::{Deserialize, Serialize};

/// Indexes of chunks. The bit of index `i` is bit `i % 8` of byte `i / 8`; the last byte is not zero,
/// so that equal sets are equal bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pieces(Vec<u8>);

/// The place of a bit.
fn place(index: u32) -> Option<(usize, u8)> {
    let byte = usize::try_from(index / 8).ok()?;
    Some((byte, 1_u8.checked_shl(index % 8)?))
}

impl Pieces {
    /// Every index below `total`.
    #[must_use]
    pub fn all(total: u64) -> Self {
        let whole = usize::try_from(total / 8).unwrap_or(usize::MAX);
        let mut bits = vec![0xff; whole];
        let rest = u32::try_from(total % 8).unwrap_or(0);
        if rest > 0 {
            bits.push(0xff_u8.wrapping_shr(8_u32.saturating_sub(rest)));
        }
        Self(bits)
    }

    /// Whether the index is among them.
    #[must_use]
    pub fn has(&self, index: u32) -> bool {
        let found = place(index).and_then(|(byte, bit)| Some(self.0.get(byte)? & bit != 0));
        found.unwrap_or(false)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|byte| u64::from(byte.count_ones())).fold(0, u64::saturating_add)
    }

    /// The indexes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let bytes = (0_u32..).step_by(8).zip(&self.0);
        bytes.flat_map(|(first, byte)| {
            let bits = (0..8_u32).filter(move |bit| byte.wrapping_shr(*bit) & 1 == 1);
            bits.map(move |bit| first.saturating_add(bit))
        })
    }

    /// Adds an index.
    pub fn insert(&mut self, index: u32) {
        let Some((byte, bit)) = place(index) else { return };
        if self.0.len() <= byte {
            self.0.resize(byte.saturating_add(1), 0);
        }
        if let Some(bits) = self.0.get_mut(byte) {
            *bits |= bit;
        }
    }

    /// Takes an index out; whether it was there.
    pub fn remove(&mut self, index: u32) -> bool {
        let had = self.has(index);
        if let Some((byte, bit)) = place(index)
            && let Some(bits) = self.0.get_mut(byte)
        {
            *bits &= !bit;
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        had
    }

    /// Adds all of the other.
    pub fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (ours, theirs) in self.0.iter_mut().zip(&other.0) {
            *ours |= theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of(indexes: &BTreeSet<u32>) -> Pieces {
        let mut pieces = Pieces::default();
        indexes.iter().for_each(|index| pieces.insert(*index));
        pieces
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_are_a_set_of_indexes(
            one in prop::collection::btree_set(0..70_u32, 0..40),
            other in prop::collection::btree_set(0..70_u32, 0..40),
        ) {
            let mut pieces = of(&one);
            prop_assert_eq!(one.iter().copied().collect::<Vec<_>>(), pieces.iter().collect::<Vec<_>>());
            pieces.join(&of(&other));
            prop_assert_eq!(&pieces, &of(&one.union(&other).copied().collect()));
            for index in &one {
                prop_assert!(pieces.remove(*index));
                prop_assert!(!pieces.remove(*index));
            }
            let left: BTreeSet<u32> = other.difference(&one).copied().collect();
            prop_assert_eq!(&pieces, &of(&left));
            prop_assert_eq!(pieces.count(), u64::try_from(left.len()).unwrap());
            prop_assert_eq!(pieces.is_empty(), left.is_empty());
        }
    }

    #[test]
    fn all_pieces_are_those_below_the_total() {
        for total in 0..40 {
            let indexes = (0..u32::try_from(total).expect("small")).collect();
            assert_eq!(Pieces::all(total), of(&indexes), "{total}");
        }
    }
}
