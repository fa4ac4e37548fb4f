//! The stored nodes of a tree whose leaves are all known, without `jmt` and without a database.

use types::Hash;

use super::hash::{nibble, nibbles_above};
use super::node;
use super::subtree::{Leaf, Subtree};

/// The children of a node that covers four binary levels.
const WIDTH: usize = 16;
/// The nibbles of a key hash.
const NIBBLES: usize = 64;

/// Takes the stored nodes, key and bytes.
pub(crate) type Emit<'a> = &'a mut dyn FnMut(Vec<u8>, Vec<u8>);

/// The subtree of leaves whose key hashes have the same first `depth` nibbles and ascend. `emit` gets
/// the stored nodes of version `version`, key and bytes; the place of a single leaf depends on its
/// neighbours, so its path is cut to `single` nibbles.
pub(crate) fn build(
    version: u64,
    (depth, single): (usize, usize),
    leaves: &[Leaf<'_>],
    emit: Emit<'_>,
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

/// The subtree of leaves whose key hashes have the same first `bits` bits and ascend, and the stored
/// nodes of version `version` as [`build`] has them. Stored nodes stand at whole nibbles, so what is
/// cut between two of them comes apart: the answer has the 1, 2, 4 or 8 subtrees at the next nibble
/// from which the nodes above are made.
pub(crate) fn build_cut(
    version: u64,
    (bits, single): (usize, usize),
    leaves: &[Leaf<'_>],
    emit: Emit<'_>,
) -> Vec<Subtree> {
    let depth = nibbles_above(bits);
    let missing = depth.saturating_mul(4).saturating_sub(bits);
    let mut parts = vec![Subtree::EMPTY; 1_usize << missing.min(3)];
    let Some(above) = depth.checked_sub(1).filter(|_| missing > 0) else {
        return vec![build(version, (depth, single), leaves, emit)];
    };
    let single = if leaves.len() == 1 { single } else { depth };
    let mask = 0x0f_u8.checked_shr(4_u32.saturating_sub(u32::try_from(missing).unwrap_or(4)));
    let place = |leaf: &Leaf<'_>| nibble(&leaf.key_hash, above) & mask.unwrap_or(0);
    let mut rest = leaves;
    for (part, wanted) in parts.iter_mut().zip(0_u8..) {
        let end = rest.partition_point(|leaf| place(leaf) <= wanted);
        let (here, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        *part = build(version, (depth, single), here, &mut *emit);
        rest = after;
    }
    parts
}

/// The nodes above subtrees at whole nibbles, which come in the order of their keys and are all there
/// are. Answers the whole tree.
pub(crate) fn build_top(
    version: u64,
    parts: impl IntoIterator<Item = (usize, Subtree)>,
    emit: Emit<'_>,
) -> Subtree {
    let mut parts = parts.into_iter().peekable();
    top(version, (0, [0; 32]), &mut parts, emit)
}

/// The subtree at the first `depth` nibbles of `path`.
fn top(
    version: u64,
    (depth, path): (usize, [u8; 32]),
    parts: &mut std::iter::Peekable<impl Iterator<Item = (usize, Subtree)>>,
    emit: Emit<'_>,
) -> Subtree {
    let is_below = |(part, _): &(usize, Subtree)| *part > depth;
    if depth >= NIBBLES || !parts.peek().is_some_and(is_below) {
        return parts.next().map_or(Subtree::EMPTY, |(_, subtree)| subtree);
    }
    let mut children = [Subtree::EMPTY; WIDTH];
    for (child, nibble) in children.iter_mut().zip(0_u8..) {
        let mut path = path;
        if let Some(byte) = path.get_mut(depth / 2) {
            *byte |= if depth.is_multiple_of(2) { nibble << 4 } else { nibble };
        }
        *child = top(version, (depth.saturating_add(1), path), parts, &mut *emit);
    }
    let subtree = Subtree::join_all(children.to_vec());
    if subtree.leaves > 1 {
        let key = node::path_key(version, &Hash::new(path), depth);
        emit(key, node::encode_children(version, &children));
    }
    subtree
}

#[cfg(test)]
mod tests;
