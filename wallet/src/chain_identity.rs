//! What tells one chain from another.

use std::fmt;

use serde::{Deserialize, Serialize};
use types::Hash;

/// A chain: the id that signatures are bound to, and the hash of the genesis file, which tells chains
/// of the same id apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainIdentity {
    /// The chain's id.
    pub chain_id: String,
    /// Hash of its genesis file.
    pub genesis_hash: Hash,
}

impl fmt::Display for ChainIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = types::text::shorten(&self.chain_id);
        write!(formatter, "{id}, genesis {}", self.genesis_hash)
    }
}

/// Expected one chain, got another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherChain {
    /// The chain that the key signs for.
    pub expected: ChainIdentity,
    /// The chain that the node names.
    pub got: ChainIdentity,
}

impl fmt::Display for OtherChain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, got } = self;
        write!(formatter, "expected chain {expected}; the node is on chain {got}")
    }
}
