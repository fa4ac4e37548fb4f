//! Parts of the tree: the root of a subtree from its leaves, and the root of a tree from its subtrees,
//! without `jmt` and without a database.
//!
//! A subtree is named by its hash and its number of leaves. The number is part of the name because a
//! subtree with one leaf *is* that leaf, whatever its depth: two subtrees are joined as an inner
//! node, unless one of them is empty and the other is empty or a single leaf.

use types::Hash;

use super::hash::{self, EMPTY_ROOT, inner};

pub use super::hash::{bit, nibble};

/// A part of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subtree {
    /// Its root.
    pub hash: Hash,
    /// How many leaves it has.
    pub leaves: u64,
}

/// A row as the tree sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf<'a> {
    /// [`super::key_hash`].
    pub key_hash: Hash,
    /// The stored bytes.
    pub value: &'a [u8],
}

impl Subtree {
    /// The subtree without leaves.
    pub const EMPTY: Self = Self { hash: EMPTY_ROOT, leaves: 0 };

    /// The subtree above two.
    #[must_use]
    pub fn join(left: Self, right: Self) -> Self {
        let leaves = left.leaves.saturating_add(right.leaves);
        match (left.leaves, right.leaves) {
            (0, 0 | 1) => right,
            (1, 0) => left,
            _ => Self { hash: inner(&left.hash, &right.hash), leaves },
        }
    }

    /// The subtree above many neighbours of one depth; their number is a power of two.
    #[must_use]
    pub fn join_all(mut parts: Vec<Self>) -> Self {
        while parts.len() > 1 {
            parts = parts
                .chunks(2)
                .map(|pair| match *pair {
                    [left, right] => Self::join(left, right),
                    [one] => one,
                    _ => Self::EMPTY,
                })
                .collect();
        }
        parts.first().copied().unwrap_or(Self::EMPTY)
    }

    /// That of a single leaf.
    pub(super) fn of_leaf(leaf: &Leaf<'_>) -> Self {
        Self { hash: hash::leaf(&leaf.key_hash, &Hash::digest(leaf.value)), leaves: 1 }
    }
}

/// The subtree of leaves whose key hashes have the same first `bits` bits and ascend.
#[must_use]
pub fn of_leaves(bits: usize, leaves: &[Leaf<'_>]) -> Subtree {
    match leaves {
        [] => Subtree::EMPTY,
        [leaf] => Subtree::of_leaf(leaf),
        _ => {
            let end = leaves.partition_point(|leaf| !bit(&leaf.key_hash, bits));
            let (left, right) = leaves.split_at_checked(end).unwrap_or((leaves, &[]));
            let below = bits.saturating_add(1);
            Subtree::join(of_leaves(below, left), of_leaves(below, right))
        }
    }
}
