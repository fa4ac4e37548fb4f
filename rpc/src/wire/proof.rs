//! Merkle proofs that can be checked without the node.

use schemars::JsonSchema;
use serde::Serialize;
use types::Hash;

use super::{Commit, HashText, HeaderView};

/// That a key has a value, or none, in the state whose root a final header carries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProofView {
    /// The key in the tree.
    #[schemars(with = "HashText")]
    pub key: Hash,
    /// The authenticated bytes at the key in hex; null proves that there are none.
    pub value: Option<String>,
    /// The leaf that the path ends in, if it ends in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf: Option<ProofLeaf>,
    /// Hashes of the siblings on the path, from the leaf to the root.
    #[schemars(with = "Vec<HashText>")]
    pub siblings: Vec<Hash>,
    /// The root that the path leads to.
    #[schemars(with = "HashText")]
    pub state_root: Hash,
    /// The header that carries the root.
    pub header: HeaderView,
    /// The hash of that header.
    #[schemars(with = "HashText")]
    pub block_hash: Hash,
    /// The certificate of that header.
    pub commit: Commit,
}

/// A leaf of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProofLeaf {
    /// Its key.
    #[schemars(with = "HashText")]
    pub key: Hash,
    /// The hash of its value.
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
