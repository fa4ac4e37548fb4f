//! What genesis fixes for the life of the chain, and where in it something happens.

use types::{Address, Forks, Params, SetMember, TxLocation};

/// The rules of one chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The chain's name.
    pub chain_id: String,
    /// The numbers of the protocol.
    pub params: Params,
    /// From which block on the kinds are valid.
    pub forks: Forks,
    /// The first validators, in order of addresses.
    pub validators: Vec<SetMember>,
}

/// Where and when a transaction is executed. Time is the block's timestamp, nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The chain's rules.
    pub chain: &'a Chain,
    /// The block's index.
    pub height: u64,
    /// The block's timestamp in milliseconds.
    pub timestamp: u64,
    /// The validator that made the block: it gets the fees of transfers.
    pub proposer: Address,
    /// The transaction's place in the block, from 0.
    pub position: u32,
}

impl Context<'_> {
    /// Where the transaction stands in the chain.
    #[must_use]
    pub const fn location(&self) -> TxLocation {
        TxLocation { height: self.height, position: self.position }
    }
}
