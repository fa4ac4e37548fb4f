//! The authenticated state: a Jellyfish Merkle tree over the rows of the tagged tables.
//!
//! Everything that a wallet or another node needs in order to check a proof without this program:
//!
//! ```text
//! key hash       = sha256(tag ‖ row key)            tag: one byte, see state::tables
//! value hash     = sha256(row value)                the stored bytes, version byte included
//! leaf           = sha256("JMT::LeafNode" ‖ key hash ‖ value hash)
//! inner node     = sha256("JMT::IntrnalNode" ‖ left ‖ right)
//! empty subtree  = the 32 characters "SPARSE_MERKLE_PLACEHOLDER_HASH__", not hashed
//! ```
//!
//! The tree is a binary tree over the 256 bits of the key hash, most significant bit first; 0 goes
//! left. A subtree with one leaf is that leaf; a subtree with none is the placeholder. So the root
//! depends on the rows alone, never on the order in which they came. (The odd spelling in the
//! domain separator is that of the crate `jmt`, version 0.12.)
//!
//! Versions of the tree are heights: version `h` is the state after block `h`, and its root stands
//! in the header of block `h + 1`. Nodes are kept by `(version, path)`, four binary levels in one
//! row. A leaf's row holds the value itself, so that a proof for an earlier height carries the
//! value of that height.

pub(crate) mod build;
pub mod cover;
mod hash;
mod hasher;
mod node;
mod proof;
pub mod subtree;
#[cfg(test)]
pub(crate) mod tests;
mod update;

pub(crate) use hash::nibbles_above;
pub use hash::{EMPTY_ROOT, key_hash};
pub(crate) use proof::prove;
pub use proof::{Proof, ProofError, ProofLeaf};
pub(crate) use update::{NodeSource, TreeUpdate, update};
