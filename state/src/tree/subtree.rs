//! Parts of the tree: the root of a subtree from its leaves, the root of a tree from its subtrees,
//! and the stored nodes of a tree whose leaves are all known, without `jmt` and without a database.
//!
//! A subtree is named by its hash and its number of leaves. The number is part of the name because a
//! subtree with one leaf *is* that leaf, whatever its depth: two subtrees are joined as an inner
//! node, unless one of them is empty and the other is empty or a single leaf.

use types::Hash;

use super::node;
use super::{EMPTY_ROOT, ProofLeaf};

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

/// The children of a node that covers four binary levels.
const WIDTH: usize = 16;

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
            _ => {
                let parts = [left.hash, right.hash];
                let [left, right] = parts.each_ref().map(Hash::as_bytes);
                Self { hash: Hash::digest_parts(&[b"JMT::IntrnalNode", left, right]), leaves }
            }
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

    fn of_leaf(leaf: &Leaf<'_>) -> Self {
        let hash = ProofLeaf { key_hash: leaf.key_hash, value_hash: Hash::digest(leaf.value) };
        Self { hash: hash.hash(), leaves: 1 }
    }
}

/// Nibble `depth` of a hash, the most significant one first.
#[must_use]
pub fn nibble(hash: &Hash, depth: usize) -> u8 {
    let byte = hash.as_bytes().get(depth / 2).copied().unwrap_or(0);
    if depth.is_multiple_of(2) { byte >> 4 } else { byte & 0x0f }
}

/// The subtree of leaves whose key hashes have the same first `depth` nibbles and ascend. `emit` gets
/// the stored nodes of version `version`, key and bytes; the place of a single leaf depends on its
/// neighbours, so its path is cut to `single` nibbles.
pub(crate) fn build(
    version: u64,
    (depth, single): (usize, usize),
    leaves: &[Leaf<'_>],
    emit: &mut dyn FnMut(Vec<u8>, Vec<u8>),
) -> Subtree {
    let leaf = match leaves {
        [] => return Subtree::EMPTY,
        [leaf] => leaf,
        [first, ..] => {
            let mut rest = leaves;
            let mut children = [Subtree::EMPTY; WIDTH];
            let below = depth.saturating_add(1);
            for (child, wanted) in children.iter_mut().zip(0_u8..) {
                let end = rest.partition_point(|leaf| nibble(&leaf.key_hash, depth) <= wanted);
                let (here, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
                *child = build(version, (below, below), here, emit);
                rest = after;
            }
            emit(
                node::path_key(version, &first.key_hash, depth),
                node::encode_children(version, &children),
            );
            return Subtree::join_all(children.to_vec());
        }
    };
    let bytes = node::encode_leaf(leaf.key_hash.as_bytes(), leaf.value);
    emit(node::path_key(version, &leaf.key_hash, single), bytes);
    Subtree::of_leaf(leaf)
}

/// The subtree of leaves as `build` has it, without nodes.
#[must_use]
pub fn of_leaves(depth: usize, leaves: &[Leaf<'_>]) -> Subtree {
    build(0, (depth, depth), leaves, &mut |_, _| ())
}

/// The nodes above the subtrees of `depth` nibbles, of which there are 16^depth. Answers the whole
/// tree.
pub(crate) fn build_top(
    version: u64,
    depth: usize,
    parts: &[Subtree],
    emit: &mut dyn FnMut(Vec<u8>, Vec<u8>),
) -> Subtree {
    let mut level: Vec<Subtree> = parts.to_vec();
    for depth in (0..depth).rev() {
        level = level
            .chunks(WIDTH)
            .zip(0_u64..)
            .map(|(children, place)| {
                let subtree = Subtree::join_all(children.to_vec());
                if subtree.leaves > 1 {
                    let key = node::path_key(version, &place_hash(place, depth), depth);
                    emit(key, node::encode_children(version, children));
                }
                subtree
            })
            .collect();
    }
    level.first().copied().unwrap_or(Subtree::EMPTY)
}

/// At which depth the leaf of a subtree with one leaf stands: below the deepest node that has others
/// too.
pub(crate) fn single_depth(depth: usize, parts: &[Subtree], place: usize) -> usize {
    let mut width = WIDTH;
    for up in (0..depth).rev() {
        let first = place.checked_div(width).and_then(|at| at.checked_mul(width)).unwrap_or(0);
        let group = parts.get(first..first.saturating_add(width)).unwrap_or(parts);
        let leaves = group.iter().map(|part| part.leaves).fold(0, u64::saturating_add);
        if leaves > 1 {
            return up.saturating_add(1);
        }
        width = width.saturating_mul(WIDTH);
    }
    0
}

/// A hash whose first `depth` nibbles are the number `place`; at most 16 of them.
fn place_hash(place: u64, depth: usize) -> Hash {
    let bits = u32::try_from(depth.saturating_mul(4)).unwrap_or(64);
    let top = 64_u32.checked_sub(bits).and_then(|shift| place.checked_shl(shift)).unwrap_or(0);
    let mut bytes = [0; 32];
    for (byte, part) in bytes.iter_mut().zip(top.to_be_bytes()) {
        *byte = part;
    }
    Hash::new(bytes)
}

#[cfg(test)]
mod tests;
