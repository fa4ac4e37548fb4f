//! What genesis fixes for the life of the chain.

use types::{Address, Forks, Hash, Params, SetMember};

/// The rules of one chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainRules {
    /// The chain's name.
    pub chain_id: String,
    /// The hash of its genesis file, which validators sign from v7 on.
    pub genesis_hash: Hash,
    /// The numbers of the protocol.
    pub params: Params,
    /// From which block on the kinds are valid.
    pub forks: Forks,
    /// The first validators, in order of addresses.
    pub validators: Vec<SetMember>,
}

/// An agent that is there from the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirstAgent {
    /// Whose it is.
    pub owner: Address,
    /// Its metadata (docs/market.md section 3).
    pub metadata: String,
}
