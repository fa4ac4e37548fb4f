//! Where in the chain a transaction is executed, and by which rules.

use types::{Address, TxLocation};

use crate::market::rankings::Rankings;
use crate::rules::Rules;

/// Where and when a transaction is executed. Time is the block's timestamp, nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The rules of the block.
    pub rules: &'a Rules,
    /// The block's index.
    pub height: u64,
    /// The block's timestamp in milliseconds.
    pub timestamp: u64,
    /// The validator that made the block: it gets the fees of transfers.
    pub proposer: Address,
    /// The transaction's place in the block, from 0.
    pub position: u32,
    /// What the pool has read of the order of offers in the state below its draft. None in blocks.
    pub rankings: Option<&'a Rankings>,
}

impl Context<'_> {
    /// Where the transaction stands in the chain.
    #[must_use]
    pub const fn location(&self) -> TxLocation {
        TxLocation { height: self.height, position: self.position }
    }
}
