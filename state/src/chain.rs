//! What genesis fixes for the life of the chain, and where in it something happens.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{
    Account, Address, Amount, Forks, Hash, Params, Rejection, SetMember, Supply, TxLocation,
};

use crate::draft::{Changes, Draft};
use crate::error::{StorageError, TxError};
use crate::ledger::OVERFLOW;
use crate::memory::Memory;
use crate::rules::{self, Rules};
use crate::tables::{Accounts, Supplies};
use crate::tx::agent_register::publish_first;
use crate::validators;

/// The rules of one chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
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

impl Chain {
    /// The rows of height 0 of a chain without agents: see [`Chain::first_state_with`].
    ///
    /// # Errors
    /// [`StorageError`] if the sum of the balances overflows.
    pub fn first_state(
        &self,
        accounts: &BTreeMap<Address, Amount>,
    ) -> Result<Changes, StorageError> {
        self.first_state_with(accounts, &[], 0).map_err(StorageError::from)
    }

    /// The rows of height 0: these balances, their sum as the supply, the first validators if votes can
    /// change them, and these agents. A chain that has v7 from the start gets its rows, too.
    ///
    /// # Errors
    /// [`FirstStateError`] if the sum of the balances overflows, or an agent breaks a rule.
    pub fn first_state_with(
        &self,
        accounts: &BTreeMap<Address, Amount>,
        agents: &[FirstAgent],
        time: u64,
    ) -> Result<Changes, FirstStateError> {
        let mut draft = Draft::new(Arc::new(Memory::default()));
        let mut genesis = Amount::ZERO;
        for (address, balance) in accounts {
            draft.put::<Accounts>(address, &Account { balance: *balance, nonce: 0 });
            genesis = genesis.checked_add(*balance).ok_or(OVERFLOW)?;
        }
        draft.put::<Supplies>(&(), &Supply { genesis, ..Supply::default() });
        if self.forks.validator_vote.is_some() {
            validators::put_first(&mut draft, self.validators.iter().copied());
        }
        let rules = Rules::at(self, &draft, 0)?;
        if rules.is_v7() {
            rules::activate(&mut draft, self, &rules, 0)?;
        }
        let royalty_max = self.params.royalty_max;
        for (position, agent) in (0_u32..).zip(agents) {
            publish_first(&mut draft, agent, royalty_max, (time, position)).map_err(|error| {
                match error {
                    TxError::Storage(error) => FirstStateError::Storage(error),
                    TxError::Rejected(why) => FirstStateError::Agent { position, why },
                }
            })?;
        }
        Ok(draft.into_changes())
    }
}

/// An agent that is there from the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirstAgent {
    /// Whose it is.
    pub owner: Address,
    /// Its metadata (docs/market.md section 3).
    pub metadata: String,
}

/// Why a chain cannot begin so.
#[derive(Debug, thiserror::Error)]
pub enum FirstStateError {
    /// The sum of the balances overflows, or what is in memory cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An agent breaks a rule.
    #[error("agent {position}: {why}")]
    Agent {
        /// Its place among the agents, from 0.
        position: u32,
        /// Which.
        why: Box<Rejection>,
    },
}

impl From<FirstStateError> for StorageError {
    fn from(error: FirstStateError) -> Self {
        match error {
            FirstStateError::Storage(error) => error,
            FirstStateError::Agent { .. } => {
                Self::Inconsistent { what: "an agent of the genesis breaks a rule" }
            }
        }
    }
}

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
}

impl Context<'_> {
    /// Where the transaction stands in the chain.
    #[must_use]
    pub const fn location(&self) -> TxLocation {
        TxLocation { height: self.height, position: self.position }
    }
}
