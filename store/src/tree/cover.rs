//! The whole tree cut into subtrees, each where its key range ends.
//!
//! A subtree of `bits` bits is a range of key hashes: all that begin with the same `bits` bits. A
//! cover is a list of such ranges in the order of their keys that has every key hash once. Joined they
//! are the root, so one list proves all its ranges, and at both ends: no row can be left out or added
//! anywhere. Where many rows share a prefix the ranges are narrower, and nothing else changes.

use types::Hash;

use super::hash::nibbles_above;
use super::subtree::Subtree;

/// The bits of a key hash.
pub const BITS_MAX: usize = 256;

/// A subtree and where it stands: the key hashes after those of the cut before it that share the same
/// first `bits` bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// How many bits its key hashes have in common.
    pub bits: usize,
    /// Root and number of leaves.
    pub subtree: Subtree,
    /// What its rows weigh, for [`Cover::least`].
    pub weight: u64,
}

/// Cuts that have every key hash once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cover {
    /// The first key hash of each cut.
    starts: Vec<Hash>,
    bits: Vec<usize>,
    /// The leaves before each cut, and after the last.
    leaves: Vec<u64>,
    /// The whole tree.
    pub root: Subtree,
    /// The lightest subtree that was cut into two; none if the tree is whole.
    pub least: Option<u64>,
}

impl Cover {
    /// Joins cuts in the order of their keys. None if a key hash is missing, comes twice, or stands
    /// elsewhere.
    #[must_use]
    pub fn new(cuts: &[Cut]) -> Option<Self> {
        let mut cover = Self {
            starts: Vec::with_capacity(cuts.len()),
            bits: Vec::with_capacity(cuts.len()),
            leaves: vec![0],
            root: Subtree::EMPTY,
            least: None,
        };
        // Neighbours on the left that wait for what they are joined with; their bits ascend.
        let mut open: Vec<Cut> = Vec::new();
        let (mut start, mut count) = (Some([0_u8; 32]), 0_u64);
        for cut in cuts {
            let is_aligned = open.last().is_none_or(|last| cut.bits >= last.bits);
            let here = start.filter(|_| is_aligned && cut.bits <= BITS_MAX)?;
            cover.starts.push(Hash::new(here));
            cover.bits.push(cut.bits);
            count = count.checked_add(cut.subtree.leaves)?;
            cover.leaves.push(count);
            start = after(here, cut.bits);
            let mut cut = *cut;
            while let Some(left) = open.pop_if(|left| left.bits == cut.bits) {
                cut = cover.join(left, cut)?;
            }
            open.push(cut);
        }
        match open.as_slice() {
            [whole] if whole.bits == 0 => cover.root = whole.subtree,
            _ => return None,
        }
        Some(cover)
    }

    fn join(&mut self, left: Cut, right: Cut) -> Option<Cut> {
        let weight = left.weight.saturating_add(right.weight);
        self.least = Some(self.least.map_or(weight, |least| least.min(weight)));
        let bits = left.bits.checked_sub(1)?;
        Some(Cut { bits, subtree: Subtree::join(left.subtree, right.subtree), weight })
    }

    /// At how many nibbles the stored leaf of a cut with one leaf stands: below the deepest node that
    /// has others too.
    pub(crate) fn single_depth(&self, at: usize) -> usize {
        let (Some(start), Some(bits)) = (self.starts.get(at), self.bits.get(at)) else { return 0 };
        let deepest = nibbles_above(*bits);
        let shares = (0..deepest).rev().find(|nibbles| self.leaves_at(start, *nibbles) > 1);
        shares.map_or(0, |nibbles| nibbles.saturating_add(1))
    }

    /// The leaves whose key hashes have the same first `nibbles` nibbles. No cut is wider than that.
    fn leaves_at(&self, hash: &Hash, nibbles: usize) -> u64 {
        let bits = nibbles.saturating_mul(4);
        let first = first_of(hash, bits);
        let from = self.starts.partition_point(|start| start.as_bytes() < &first);
        let to = after(first, bits).map_or(self.starts.len(), |next| {
            self.starts.partition_point(|start| start.as_bytes() < &next)
        });
        let before = |at: usize| self.leaves.get(at).copied().unwrap_or(0);
        before(to).saturating_sub(before(from))
    }
}

/// The first hash with the same first `bits` bits.
fn first_of(hash: &Hash, bits: usize) -> [u8; 32] {
    let mut bytes = *hash.as_bytes();
    for (byte, at) in bytes.iter_mut().zip((0_usize..).step_by(8)) {
        let kept = u32::try_from(bits.saturating_sub(at).min(8)).unwrap_or(8);
        *byte &= !0xff_u8.checked_shr(kept).unwrap_or(0);
    }
    bytes
}

/// The first hash after those that share the first `bits` bits with `first`; none after the last.
fn after(mut first: [u8; 32], bits: usize) -> Option<[u8; 32]> {
    let last = bits.checked_sub(1)?;
    let mut added = 0x80_u8.checked_shr(u32::try_from(last % 8).unwrap_or(0))?;
    for byte in first.get_mut(..=last / 8)?.iter_mut().rev() {
        let (sum, overflows) = byte.overflowing_add(added);
        *byte = sum;
        if !overflows {
            return Some(first);
        }
        added = 1;
    }
    None
}

#[cfg(test)]
mod tests;
