//! A chain in memory: every rule of the ledger, without a database, consensus or network.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{Address, Amount, Hash, Keypair};

use super::Memory;
use crate::block::{BlockBuilder, BlockError, Executed, Parent, require};
use crate::chain::ChainRules;
use crate::error::StorageError;
use crate::pending::Base;

/// A chain's rules, its state after the last block, and where the next one goes. It has no state
/// tree: the root after a block is made of the block's hash.
#[derive(Debug)]
pub struct MemoryChain {
    rules: Arc<ChainRules>,
    state: Arc<Memory>,
    genesis_hash: Hash,
    tip: Parent,
}

impl MemoryChain {
    /// A chain at height 0, with these balances ([`ChainRules::first_state`]).
    ///
    /// # Errors
    /// [`StorageError`] if the sum of the balances overflows.
    pub fn new(
        rules: Arc<ChainRules>,
        genesis_hash: Hash,
        genesis_time: u64,
        accounts: &BTreeMap<Address, Amount>,
    ) -> Result<Self, StorageError> {
        let state = Arc::new(Memory::default());
        state.apply(&rules.first_state(accounts)?);
        let tip = Parent {
            height: 0,
            hash: genesis_hash,
            timestamp: genesis_time,
            state_root: Hash::ZERO,
            randomness: genesis_hash,
            proposer: None,
        };
        Ok(Self { rules, state, genesis_hash, tip })
    }

    /// The rules.
    #[must_use]
    pub const fn rules(&self) -> &Arc<ChainRules> {
        &self.rules
    }

    /// The state after the last block.
    #[must_use]
    pub const fn state(&self) -> &Arc<Memory> {
        &self.state
    }

    /// The state after the last block, for what waits for the next one. It stands still.
    #[must_use]
    pub fn base(&self) -> Base {
        Base { state: self.state.still(), height: self.tip.height }
    }

    /// The last block, on which the next one stands.
    #[must_use]
    pub const fn tip(&self) -> Parent {
        self.tip
    }

    /// Begins the next block. From fork v7 on [`execute_block`](crate::execute_block) takes it only if
    /// its proposer is among the validators.
    ///
    /// # Errors
    /// As [`BlockBuilder::new`].
    pub fn begin(&self, proposer: &Keypair, now_ms: u64) -> Result<BlockBuilder, StorageError> {
        let (rules, state) = (Arc::clone(&self.rules), Arc::<Memory>::clone(&self.state));
        BlockBuilder::new(rules, state, self.tip, proposer, now_ms)
    }

    /// Appends a block that was made, or executed, on the tip.
    ///
    /// # Errors
    /// [`BlockError::Header`] if it stands on another block.
    pub fn append(&mut self, executed: &Executed) -> Result<(), BlockError> {
        let header = &executed.block.header;
        require("previousHash", &header.previous_hash, &self.tip.hash)?;
        self.state.apply(&executed.changes);
        let (height, timestamp, hash) = (header.index, header.timestamp, header.hash());
        let state_root = Hash::digest(hash.as_bytes());
        let randomness = header.randomness.map_or(self.genesis_hash, |it| it.value);
        let proposer = Some(header.proposer);
        self.tip = Parent { height, hash, timestamp, state_root, randomness, proposer };
        Ok(())
    }
}
