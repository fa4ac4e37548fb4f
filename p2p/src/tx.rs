//! A signed transaction as it travels: the signer's exact text and the signature.

use std::sync::Arc;

use types::transaction::seal;
use types::{CheckedTx, Hash, Signature};

/// A signed transaction that nobody looked at yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedTx {
    /// Shared by copies.
    payload: Arc<str>,
    signature: Signature,
    hash: Hash,
}

impl SignedTx {
    /// A payload and the signature that is said to belong to it.
    #[must_use]
    pub fn new(payload: &str, signature: Signature) -> Self {
        let hash = Hash::digest(payload.as_bytes());
        Self { payload: payload.into(), signature, hash }
    }

    /// The content address: SHA-256 of the payload, which is the transaction's name on the chain.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// The signer's text.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// The signature over the hash's characters, if it is a good one.
    #[must_use]
    pub const fn signature(&self) -> Signature {
        self.signature
    }

    /// The transaction as clients send it: flat JSON with `hash` and `signature` at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        seal(&self.payload, &self.hash, &self.signature)
    }

    /// Bytes in a pack.
    pub(crate) fn packed_bytes(&self) -> usize {
        self.payload.len().saturating_add(4 + 64)
    }
}

impl From<&CheckedTx> for SignedTx {
    fn from(tx: &CheckedTx) -> Self {
        Self { payload: tx.payload().into(), signature: tx.signature(), hash: tx.hash() }
    }
}
