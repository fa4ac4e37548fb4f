//! The count of the votes for later forks, in memory and as rows.

use std::ops::RangeInclusive;

use state::error::StorageError;
use state::forks::{CastForkVote, FixedFork, FixedForks, Tally};
use state::table::{Key, Table, encode_value};
use state::view::{self, Range};
use types::params::FORK_VOTE_BLOCKS;
use types::{Address, SetMember};

use crate::meta::FORKS_CELL;
use crate::rocks::{Batch, Rocks};
use crate::snapshot::Snapshot;
use crate::tables::ForkVotes;

/// The cell of a database whose count goes with its tip.
pub(super) const FOLLOWS: u64 = u64::MAX;

pub(super) const ALL: Range<'_> = Range { from: &[], to: None, limit: usize::MAX };

/// The count, in memory.
#[derive(Debug, Default)]
pub(crate) struct Forks {
    /// What genesis fixes about votes; none until the chain is known, and then nothing is counted.
    pub(super) rules: Option<Rules>,
    /// The votes of every block up to this one are counted; none if there is no count yet.
    pub(super) counted: Option<u64>,
    /// Whether the database began with a snapshot of v7 or later: then its rows say what earlier votes
    /// have fixed, and none of them matters any more.
    pub(super) begins_after: bool,
    pub(super) tally: Tally,
}

#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) delay: u64,
    /// The validators of a chain that keeps them for ever.
    pub(super) first: Vec<SetMember>,
    /// Whether genesis names v7.
    pub(super) has_v7: bool,
    /// Whether genesis names v8.
    pub(super) has_v8: bool,
}

impl Forks {
    /// What the database says.
    pub(crate) fn read(rocks: &Rocks) -> Result<Self, StorageError> {
        let counted = rocks.live().cell(FORKS_CELL)?;
        if counted.is_none() {
            return Ok(Self::default());
        }
        let snapshot = Snapshot::alone(rocks.snapshot());
        let votes = view::scan::<ForkVotes>(&snapshot, ALL)?.into_iter().collect();
        let fixed = view::scan::<FixedForks>(&snapshot, ALL)?.into_iter().collect();
        let tally = Tally::new(votes, fixed);
        Ok(Self { counted, tally, ..Self::default() })
    }

    /// Whether commits count.
    pub(super) fn follows(&self) -> bool {
        self.counted == Some(FOLLOWS)
    }

    /// The blocks before `earliest`, the first one of this database, that must be counted.
    pub(super) fn missing(&self, earliest: u64) -> Option<RangeInclusive<u64>> {
        if self.begins_after {
            return None;
        }
        let last = earliest.checked_sub(1)?;
        // What stands further back decides nothing any more.
        let start = last.saturating_sub(FORK_VOTE_BLOCKS);
        let first = self.counted.unwrap_or(start).checked_add(1)?;
        (first <= last).then_some(first..=last)
    }
}

/// Adds to a batch what a count has changed.
pub(super) fn write_changes(
    rocks: &Rocks,
    batch: &mut Batch,
    before: &Tally,
    after: &Tally,
) -> Result<(), StorageError> {
    let votes = rocks.table(ForkVotes::ID)?;
    for voter in before.votes().keys().filter(|voter| !after.votes().contains_key(*voter)) {
        batch.delete(&votes, &voter.to_bytes());
    }
    let is_new =
        |(voter, vote): &(&Address, &CastForkVote)| before.votes().get(*voter) != Some(*vote);
    for (voter, vote) in after.votes().iter().filter(is_new) {
        batch.put(&votes, &voter.to_bytes(), &encode_value::<ForkVotes>(vote));
    }
    let fixed = rocks.table(FixedForks::ID)?;
    let is_new = |(fork, _): &(&String, &FixedFork)| !before.fixed().contains_key(*fork);
    for (fork, at) in after.fixed().iter().filter(is_new) {
        batch.put(&fixed, &fork.to_bytes(), &encode_value::<FixedForks>(at));
    }
    Ok(())
}
