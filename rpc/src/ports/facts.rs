//! What never changes while the node runs.

use types::{Forks, Hash, Params};

/// What never changes while the node runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainFacts {
    /// The chain's name.
    pub chain_id: String,
    /// The hash of genesis: the `previousHash` of block 1.
    pub genesis_hash: Hash,
    /// The time that genesis names, in milliseconds since 1970.
    pub genesis_time_ms: u64,
    /// From which heights on kinds are valid.
    pub forks: Forks,
    /// The chain's parameters.
    pub params: Params,
    /// The program's version.
    pub version: String,
}
