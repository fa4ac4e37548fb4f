//! Merkle proofs that clients can check without the node.

use schemars::JsonSchema;
use serde::Serialize;
use types::Hash;

use super::{Commit, HashText, HeaderView};

/// A proof that a key has a certain value, or none, in the state whose root is in the header of a
/// final block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProofView {
    /// The hashed key, which is the path in the state tree.
    #[schemars(with = "HashText")]
    pub key: Hash,
    /// The bytes of the authenticated record at the key, in hex. `null` if the proof shows that
    /// there is no record.
    pub value: Option<String>,
    /// The leaf at the end of the path. Absent if the path ends in an empty subtree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf: Option<ProofLeaf>,
    /// The hashes of the siblings along the path, from the leaf to the root.
    #[schemars(with = "Vec<HashText>")]
    pub siblings: Vec<Hash>,
    /// The state root to which the path leads.
    #[schemars(with = "HashText")]
    pub state_root: Hash,
    /// The header that contains the state root.
    pub header: HeaderView,
    /// The hash of that header.
    #[schemars(with = "HashText")]
    pub block_hash: Hash,
    /// The commit certificate of that header.
    pub commit: Commit,
}

/// A leaf of the state tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProofLeaf {
    /// The hashed key of the leaf.
    #[schemars(with = "HashText")]
    pub key: Hash,
    /// The SHA-256 of the leaf's value.
    #[schemars(with = "HashText")]
    pub value_hash: Hash,
}

impl From<crate::ports::Proof> for ProofView {
    fn from(proof: crate::ports::Proof) -> Self {
        let crate::ports::Proof { key, value, leaf, siblings, state_root, header, certificate } =
            proof;
        Self {
            key,
            value: value.map(|bytes| hex(&bytes)),
            leaf: leaf.map(|(key, value_hash)| ProofLeaf { key, value_hash }),
            siblings,
            state_root,
            block_hash: header.hash(),
            header: HeaderView::from(&header),
            commit: certificate.into(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes every write");
    }
    text
}
