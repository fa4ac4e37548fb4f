//! The votes for later forks as the database keeps them: counted with each commit, in its write.
//!
//! A database that an older program made has no count, and one that began with a snapshot has not the
//! blocks with the votes. So the cell `forks` of `meta` says up to which block the votes are counted;
//! [`FOLLOWS`] is "up to the tip, whatever that is". The count catches up from the blocks that are
//! there ([`Store::count_forks`]) and from blocks that the caller got elsewhere
//! ([`Store::count_earlier`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use types::params::FORK_VOTE_BLOCKS;
use types::{Address, Block, SetMember, Transaction, TxLocation, codec};

use super::commit::Durability;
use super::rocks::{Batch, Rocks};
use super::tables::{AccountHistory, FixedForks, ForkVotes, META};
use super::{FORKS_CELL, Snapshot, Store, read_cell};
use crate::chain::Chain;
use crate::error::StorageError;
use crate::forks::{CastForkVote, FixedFork, Tally, VotingBlock};
use crate::table::{Key, Table, encode_value};
use crate::tables::ValidatorHistory;
use crate::validators;
use crate::view::{self, Range};

/// The cell of a database whose count goes with its tip.
const FOLLOWS: u64 = u64::MAX;

const ALL: Range<'_> = Range { from: &[], to: None, limit: usize::MAX };

/// The count, in memory.
#[derive(Debug, Default)]
pub(super) struct Forks {
    /// What genesis fixes about votes; none until the chain is known, and then nothing is counted.
    rules: Option<Rules>,
    /// The votes of every block up to this one are counted; none if there is no count yet.
    counted: Option<u64>,
    tally: Tally,
}

#[derive(Clone, Debug)]
struct Rules {
    delay: u64,
    /// The validators of a chain that keeps them for ever.
    first: Vec<SetMember>,
}

/// The votes for later forks at one moment.
#[derive(Clone, Debug)]
pub struct ForkCount {
    /// The votes, and what they fixed.
    pub tally: Tally,
    /// The blocks whose votes are not counted because they are not in this database; none if all that
    /// matter are.
    pub missing: Option<RangeInclusive<u64>>,
}

/// A set, and whether the block is the first that it decides.
struct Deciders {
    set: Vec<SetMember>,
    is_new: bool,
}

impl Forks {
    /// What the database says.
    pub(super) fn read(rocks: &Rocks) -> Result<Self, StorageError> {
        let counted = read_cell(&rocks.live(), FORKS_CELL)?;
        if counted.is_none() {
            return Ok(Self::default());
        }
        let snapshot = Snapshot::new(rocks.snapshot(), 1);
        let votes = view::scan::<ForkVotes>(&snapshot, ALL)?.into_iter().collect();
        let fixed = view::scan::<FixedForks>(&snapshot, ALL)?.into_iter().collect();
        let tally = Tally { votes, fixed };
        Ok(Self { rules: None, counted, tally })
    }

    fn follows(&self) -> bool {
        self.counted == Some(FOLLOWS)
    }
}

impl Store {
    /// Counts the votes for later forks from now on, with the rules of `chain`, and those in the blocks
    /// that are there and were not counted. Called again it does nothing.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn count_forks(&self, chain: &Chain) -> Result<(), StorageError> {
        let rules =
            Rules { delay: chain.params.fork_delay_blocks, first: chain.validators.clone() };
        self.0.forks.write().rules = Some(rules);
        self.follow_forks()
    }

    /// The votes for later forks, as they are now.
    #[must_use]
    pub fn forks(&self) -> ForkCount {
        let forks = self.0.forks.read();
        ForkCount { tally: forks.tally.clone(), missing: self.missing(&forks) }
    }

    /// Refuses to go on where the next block belongs to a fork that this program does not know.
    ///
    /// # Errors
    /// [`StorageError::UnknownFork`].
    pub fn require_known_fork(&self) -> Result<(), StorageError> {
        let next = self.tip()?.height.saturating_add(1);
        self.0.forks.read().tally.require_known(next)
    }

    /// The blocks before the first one of this database that must be counted.
    fn missing(&self, forks: &Forks) -> Option<RangeInclusive<u64>> {
        let last = self.0.earliest.checked_sub(1)?;
        // What stands further back decides nothing any more.
        let start = last.saturating_sub(FORK_VOTE_BLOCKS);
        let first = forks.counted.unwrap_or(start).checked_add(1)?;
        (first <= last).then_some(first..=last)
    }

    /// Counts a block before the first one of this database: the next of [`ForkCount::missing`]. The
    /// caller has made sure that it is a block of this chain.
    ///
    /// # Errors
    /// [`StorageError::Height`] if it is not the next; [`StorageError`] if the database fails.
    pub fn count_earlier(
        &self,
        height: u64,
        transactions: &[Transaction],
    ) -> Result<(), StorageError> {
        let _writing = self.0.writer.lock();
        let (mut tally, rules) = {
            let forks = self.0.forks.read();
            let expected = self.missing(&forks).map_or(0, |missing| *missing.start());
            let Some(rules) = forks.rules.clone().filter(|_| height == expected) else {
                return Err(StorageError::Height { found: height, expected });
            };
            (forks.tally.clone(), rules)
        };
        let before = tally.clone();
        self.count_block(&mut tally, height, &rules, transactions)?;
        self.keep_count(&before, tally, height)
    }

    /// Counts the blocks of this database that are not counted, if none before them is missing. From then
    /// on each commit counts its own.
    pub(super) fn follow_forks(&self) -> Result<(), StorageError> {
        let (mut tally, rules, first) = {
            let forks = self.0.forks.read();
            if forks.follows() || self.missing(&forks).is_some() {
                return Ok(());
            }
            let Some(rules) = forks.rules.clone() else { return Ok(()) };
            (forks.tally.clone(), rules, forks.counted.unwrap_or(0).saturating_add(1))
        };
        let before = tally.clone();
        for (height, places) in self.heights_to_count(&rules, first.max(self.0.earliest))? {
            let places: Vec<_> =
                places.into_iter().map(|position| TxLocation { height, position }).collect();
            let txs = self.snapshot().bodies_at(&places)?;
            self.count_block(&mut tally, height, &rules, txs.iter().map(|tx| &**tx))?;
        }
        self.keep_count(&before, tally, FOLLOWS)
    }

    /// The blocks from `first` on in which a validator that there ever was has sent something, with the
    /// places in them, and those with which a set begins.
    fn heights_to_count(
        &self,
        rules: &Rules,
        first: u64,
    ) -> Result<BTreeMap<u64, BTreeSet<u32>>, StorageError> {
        let snapshot = self.snapshot();
        let sets = view::scan::<ValidatorHistory>(&snapshot, ALL)?;
        let tip = self.tip()?.height;
        let mut heights: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        let begun = sets.iter().map(|(since, _)| *since);
        for since in begun.filter(|since| (first..=tip).contains(since)) {
            heights.entry(since).or_default();
        }
        let members = sets.iter().flat_map(|(_, set)| set).chain(&rules.first);
        let voters: BTreeSet<Address> = members.map(validators::address).collect();
        for voter in voters {
            let (from, to) = ((voter, first).to_bytes(), (voter, u64::MAX).to_bytes());
            let range = Range { from: &from, to: Some(&to), limit: usize::MAX };
            for ((_, height), positions) in view::scan::<AccountHistory>(&snapshot, range)? {
                heights.entry(height).or_default().extend(positions);
            }
        }
        Ok(heights)
    }

    fn count_block<'t>(
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

    fn deciders(&self, height: u64, rules: &Rules) -> Result<Deciders, StorageError> {
        Ok(match self.snapshot().validator_set(height)? {
            Some(stored) => Deciders { is_new: stored.since == height, set: stored.members },
            None => Deciders { is_new: false, set: rules.first.clone() },
        })
    }

    /// The count after a block that is about to be committed; none if that changes nothing, or if the
    /// count does not follow the tip.
    ///
    /// # Errors
    /// [`StorageError::UnknownFork`] if the block belongs to a fork that this program does not know.
    pub(super) fn count_next(&self, block: &Block) -> Result<Option<Tally>, StorageError> {
        self.follow_forks()?;
        let height = block.header.index;
        let (before, rules) = {
            let forks = self.0.forks.read();
            forks.tally.require_known(height)?;
            let Some(rules) = forks.rules.clone().filter(|_| forks.follows()) else {
                return Ok(None);
            };
            (forks.tally.clone(), rules)
        };
        let mut tally = before.clone();
        let txs = block.transactions.iter().map(|tx| &**tx);
        self.count_block(&mut tally, height, &rules, txs)?;
        Ok((tally != before).then_some(tally))
    }

    /// Adds to a commit what its count changes.
    pub(super) fn write_count(
        &self,
        batch: &mut Batch,
        after: Option<&Tally>,
    ) -> Result<(), StorageError> {
        let Some(after) = after else { return Ok(()) };
        let before = self.0.forks.read().tally.clone();
        write_changes(&self.0.rocks, batch, &before, after)
    }

    /// Learns what a commit has written.
    pub(super) fn learn_count(&self, after: Option<Tally>) {
        if let Some(tally) = after {
            self.0.forks.write().tally = tally;
        }
    }

    fn keep_count(&self, before: &Tally, after: Tally, counted: u64) -> Result<(), StorageError> {
        let mut batch = Batch::default();
        write_changes(&self.0.rocks, &mut batch, before, &after)?;
        batch.put(&self.0.rocks.table(META)?, FORKS_CELL, &codec::encode(&counted));
        // What a crash of the machine takes is counted again.
        self.0.rocks.write(batch, Durability::Buffered)?;
        let mut forks = self.0.forks.write();
        (forks.tally, forks.counted) = (after, Some(counted));
        Ok(())
    }
}

fn write_changes(
    rocks: &Rocks,
    batch: &mut Batch,
    before: &Tally,
    after: &Tally,
) -> Result<(), StorageError> {
    let votes = rocks.table(ForkVotes::ID)?;
    for voter in before.votes.keys().filter(|voter| !after.votes.contains_key(*voter)) {
        batch.delete(&votes, &voter.to_bytes());
    }
    let is_new =
        |(voter, vote): &(&Address, &CastForkVote)| before.votes.get(*voter) != Some(*vote);
    for (voter, vote) in after.votes.iter().filter(is_new) {
        batch.put(&votes, &voter.to_bytes(), &encode_value::<ForkVotes>(vote));
    }
    let fixed = rocks.table(FixedForks::ID)?;
    let is_new = |(fork, _): &(&String, &FixedFork)| !before.fixed.contains_key(*fork);
    for (fork, at) in after.fixed.iter().filter(is_new) {
        batch.put(&fixed, &fork.to_bytes(), &encode_value::<FixedForks>(at));
    }
    Ok(())
}
