//! The Merkle root of a block's transactions.

use crate::Hash;

/// The binary Merkle root of RFC 6962 section 2.1 over 32-byte leaves.
#[must_use]
pub fn merkle_root(leaves: &[Hash]) -> Hash {
    root(leaves, |leaf| leaf.as_bytes())
}

pub(super) fn root<T>(leaves: &[T], bytes: fn(&T) -> &[u8]) -> Hash {
    match leaves {
        [] => Hash::digest(&[]),
        [leaf] => Hash::digest_parts(&[&[0], bytes(leaf)]),
        _ => {
            let half = leaves.len().next_power_of_two() / 2;
            let (left, right) = leaves.split_at(half);
            let (left, right) = (root(left, bytes), root(right, bytes));
            Hash::digest_parts(&[&[1], left.as_bytes(), right.as_bytes()])
        }
    }
}
