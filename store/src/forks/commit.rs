//! Counting the votes of a block with its commit.

use state::error::StorageError;
use state::forks::Tally;
use types::{Block, CheckedTx, ForkVote};

use super::count::write_changes;
use crate::database::Store;
use crate::rocks::Batch;

impl Store {
    /// What may be a vote in a block that is about to be prepared. It is counted when the block is
    /// committed: only then is it certain whether commits count.
    ///
    /// # Errors
    /// [`StorageError::UnknownFork`] if the block belongs to a fork that this program does not know.
    pub(crate) fn votes_of(&self, block: &Block) -> Result<Vec<CheckedTx>, StorageError> {
        self.require_known(&self.0.forks.read().tally, block.header.index)?;
        let votes = block.transactions.iter().filter(|tx| ForkVote::may_be(tx));
        Ok(votes.cloned().collect())
    }

    /// Adds to a commit what its count changes, and answers the new count; none if it stays as it is, or
    /// if commits do not count. The caller holds the lock for writing.
    ///
    /// # Errors
    /// [`StorageError::UnknownFork`] if the block belongs to a fork that was counted since it was prepared
    /// and that this program does not know; [`StorageError`] if the database fails.
    pub(crate) fn count_next(
        &self,
        batch: &mut Batch,
        height: u64,
        votes: &[CheckedTx],
    ) -> Result<Option<Tally>, StorageError> {
        let (before, rules) = {
            let forks = self.0.forks.read();
            self.require_known(&forks.tally, height)?;
            let Some(rules) = forks.rules.clone().filter(|_| forks.follows()) else {
                return Ok(None);
            };
            (forks.tally.clone(), rules)
        };
        let mut tally = before.clone();
        self.count_block(&mut tally, height, &rules, votes.iter().map(|tx| &**tx))?;
        if tally == before {
            return Ok(None);
        }
        write_changes(&self.0.rocks, batch, &before, &tally)?;
        Ok(Some(tally))
    }

    /// Learns what a commit has written.
    pub(crate) fn learn_count(&self, after: Option<Tally>) {
        if let Some(tally) = after {
            self.0.forks.write().tally = tally;
        }
    }
}
