//! Who decides a height, and counting its block.

use state::error::StorageError;
use state::forks::{Tally, VotingBlock};
use types::{SetMember, Transaction};

use super::count::Rules;
use crate::database::Store;

/// A set, and whether the block is the first that it decides.
pub(super) struct Deciders {
    pub(super) set: Vec<SetMember>,
    pub(super) is_new: bool,
}

impl Store {
    /// Counts a block in a tally.
    pub(super) fn count_block<'t>(
        &self,
        tally: &mut Tally,
        height: u64,
        rules: &Rules,
        transactions: impl IntoIterator<Item = &'t Transaction>,
    ) -> Result<(), StorageError> {
        let Deciders { set, is_new: is_new_set } = self.deciders(height, rules)?;
        let block = VotingBlock { height, set: &set, is_new_set, delay: rules.delay };
        tally.count(&block, transactions);
        Ok(())
    }

    /// Who decides a height.
    pub(super) fn deciders(&self, height: u64, rules: &Rules) -> Result<Deciders, StorageError> {
        Ok(match self.snapshot().validator_set(height)? {
            Some(stored) => Deciders { is_new: stored.since == height, set: stored.members },
            None => Deciders { is_new: false, set: rules.first.clone() },
        })
    }
}
