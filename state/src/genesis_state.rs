//! The rows of height 0.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{Account, Address, Amount, Rejection, Supply};

use crate::activation::activate;
use crate::chain::{ChainRules, FirstAgent};
use crate::draft::{Changes, Draft};
use crate::error::{StorageError, TxError};
use crate::ledger::OVERFLOW;
use crate::memory::Memory;
use crate::rules::Rules;
use crate::tables::{Accounts, Supplies};
use crate::tx::agent_register::publish_first;
use crate::validators;

impl ChainRules {
    /// The rows of height 0 of a chain without agents: see [`ChainRules::first_state_with`].
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
            activate(&mut draft, self, &rules, 0)?;
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
