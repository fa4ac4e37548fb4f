//! What the next block stands on.

use types::{Address, Hash};

/// The end of the chain, on which the next block stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parent {
    /// Its index; 0 for genesis.
    pub height: u64,
    /// Its hash; the genesis hash for genesis.
    pub hash: Hash,
    /// Its timestamp in milliseconds; the genesis time for genesis.
    pub timestamp: u64,
    /// Root of the state after it: what the next header carries.
    pub state_root: Hash,
    /// What the randomness of the next block is made of: that of this block, or the genesis hash if it
    /// has none.
    pub randomness: Hash,
    /// Who proposed it; nobody genesis.
    pub proposer: Option<Address>,
}

impl Parent {
    /// The timestamp of a block that is made at `now_ms`: later than the parent's in any case.
    #[must_use]
    pub const fn next_timestamp(&self, now_ms: u64) -> u64 {
        let least = self.timestamp.saturating_add(1);
        if now_ms > least { now_ms } else { least }
    }
}
