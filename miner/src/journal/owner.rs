//! Whose journal it is.

use serde::{Deserialize, Serialize};
use types::{Address, Hash};
use wallet::ChainIdentity;

/// The form of the records. A journal of another version is not opened.
pub const FORMAT_VERSION: u32 = 1;

/// Whose journal it is, and of which chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The form of the records.
    pub format: u32,
    /// The wallet that signs.
    pub miner: Address,
    /// Hash of the chain's genesis file.
    pub genesis: Hash,
    /// The chain's id; none in a journal of a version that did not write it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_id: Option<String>,
}

impl Owner {
    pub(super) fn of(miner: Address, chain: &ChainIdentity) -> Self {
        let ChainIdentity { chain_id, genesis_hash } = chain;
        let chain_id = Some(chain_id.clone());
        Self { format: FORMAT_VERSION, miner, genesis: *genesis_hash, chain_id }
    }

    /// Whether a journal with this owner serves `wanted`.
    pub(super) fn serves(&self, wanted: &Self) -> bool {
        let chain_id = self.chain_id.clone().or_else(|| wanted.chain_id.clone());
        Self { chain_id, ..self.clone() } == *wanted
    }
}
