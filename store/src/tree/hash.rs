//! The hashes of the tree, and the bits of a key's hash, which are its path.

use state::table::TableId;
use types::Hash;

/// The root of a tree without leaves.
pub const EMPTY_ROOT: Hash = Hash::new(*b"SPARSE_MERKLE_PLACEHOLDER_HASH__");

/// Where a row stands in the tree; `None` if its table is not authenticated.
#[must_use]
pub fn key_hash(table: TableId, key: &[u8]) -> Option<Hash> {
    let tag = table.tag?;
    let hash = Hash::digest_parts(&[&[tag], key]);
    // To find a hundred thousand keys under one prefix of 16 bits takes 6.5 thousand million hashes.
    #[cfg(test)]
    let hash = super::tests::prefixed(key, hash);
    Some(hash)
}

/// The hash of a leaf.
pub(super) fn leaf(key_hash: &Hash, value_hash: &Hash) -> Hash {
    Hash::digest_parts(&[b"JMT::LeafNode", key_hash.as_bytes(), value_hash.as_bytes()])
}

/// The hash of an inner node.
pub(super) fn inner(left: &Hash, right: &Hash) -> Hash {
    Hash::digest_parts(&[b"JMT::IntrnalNode", left.as_bytes(), right.as_bytes()])
}

/// Nibble `depth` of a hash, the most significant one first.
#[must_use]
pub fn nibble(hash: &Hash, depth: usize) -> u8 {
    let byte = hash.as_bytes().get(depth / 2).copied().unwrap_or(0);
    if depth.is_multiple_of(2) { byte >> 4 } else { byte & 0x0f }
}

/// Bit `at` of a hash, the most significant one first.
#[must_use]
pub fn bit(hash: &Hash, at: usize) -> bool {
    let byte = hash.as_bytes().get(at / 8).copied().unwrap_or(0);
    (byte >> 7_usize.saturating_sub(at % 8)) & 1 == 1
}

/// How many nibbles hold so many bits.
pub(crate) const fn nibbles_above(bits: usize) -> usize {
    bits.div_ceil(4)
}
