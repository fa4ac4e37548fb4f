//! The votes for later forks as the database keeps them: counted with each commit, in its write.
//!
//! A database that an older program made has no count, and one that began with a snapshot has not the
//! blocks with the votes. So the cell `forks` of `meta` says up to which block the votes are counted;
//! [`FOLLOWS`] is "up to the tip, whatever that is". The count catches up from blocks that the caller
//! got elsewhere ([`Store::count_earlier`]) and from those that are there ([`Store::count_own`]). Only
//! then do commits count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use state::chain::Chain;
use state::draft::Changes;
use state::error::StorageError;
use state::forks::{self, CastForkVote, FixedFork, FixedForks, Tally, VoteInBlock, VotingBlock};
use state::table::{Key, Table, encode_value};
use state::tables::{ForkRows, ValidatorHistory};
use state::view::{self, Range};
use state::{rules, validators};
use types::params::FORK_VOTE_BLOCKS;
use types::{Address, Block, CheckedTx, ForkVote, SetMember, Transaction, TxLocation, codec};

use super::commit::Durability;
use super::rocks::{Batch, Rocks};
use super::tables::{AccountHistory, ForkVotes, META};
use super::{FORKS_CELL, Snapshot, Store, read_cell};

/// The cell of a database whose count goes with its tip.
const FOLLOWS: u64 = u64::MAX;

/// Blocks of this database that are counted at a time. What strangers sent to validators is read with
/// them, so the places in them are what bounds the memory.
const SLICE: u64 = 1_024;

/// So many blocks at most are counted while commits wait.
const LAST_MAX: u64 = 16;

/// Transactions of a block that are in memory at a time: about as many as stand together on the disk.
const BODIES_MAX: usize = 256;

const ALL: Range<'_> = Range { from: &[], to: None, limit: usize::MAX };

/// The count, in memory.
#[derive(Debug, Default)]
pub(super) struct Forks {
    /// What genesis fixes about votes; none until the chain is known, and then nothing is counted.
    rules: Option<Rules>,
    /// The votes of every block up to this one are counted; none if there is no count yet.
    counted: Option<u64>,
    /// Whether the database began with a snapshot of v7 or later: then its rows say what earlier votes
    /// have fixed, and none of them matters any more.
    begins_after: bool,
    tally: Tally,
}

#[derive(Clone, Debug)]
struct Rules {
    delay: u64,
    /// The validators of a chain that keeps them for ever.
    first: Vec<SetMember>,
    /// Whether genesis names v7.
    has_v7: bool,
    /// Whether genesis names v8.
    has_v8: bool,
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
        let snapshot = Snapshot::alone(rocks.snapshot());
        let votes = view::scan::<ForkVotes>(&snapshot, ALL)?.into_iter().collect();
        let fixed = view::scan::<FixedForks>(&snapshot, ALL)?.into_iter().collect();
        let tally = Tally::new(votes, fixed);
        Ok(Self { counted, tally, ..Self::default() })
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
        let rules = Rules {
            delay: chain.params.fork_delay_blocks,
            first: chain.validators.clone(),
            has_v7: chain.forks.v7.is_some(),
            has_v8: chain.forks.v8.is_some(),
        };
        let row = view::get::<ForkRows>(&self.snapshot(), &rules::V7.to_owned())?;
        {
            let mut forks = self.0.forks.write();
            forks.rules = Some(rules);
            if let Some(fixed) = row.filter(|_| self.0.earliest > 1) {
                forks.begins_after = true;
                forks.tally.fix(rules::V7, fixed);
            }
        }
        match self.0.counting.try_lock() {
            Some(_counting) => self.count_rest(),
            // Another thread is about it.
            None => Ok(()),
        }
    }

    /// The votes for later forks, as they are now.
    #[must_use]
    pub fn forks(&self) -> ForkCount {
        let forks = self.0.forks.read();
        // A database that cannot be read fails for whoever goes on, not for who asks.
        let tally = self.with_later(&forks.tally).unwrap_or_else(|_fault| forks.tally.clone());
        ForkCount { tally, missing: self.missing(&forks) }
    }

    /// A count with the forks whose heights stand in the state: those after v7 that validators have
    /// voted for.
    fn with_later(&self, tally: &Tally) -> Result<Tally, StorageError> {
        let rows = view::scan::<ForkRows>(&self.snapshot(), ALL)?;
        let mut fixed = tally.fixed().clone();
        let (has_v7, has_v8) = {
            let forks = self.0.forks.read_recursive();
            forks.rules.as_ref().map_or((false, false), |rules| (rules.has_v7, rules.has_v8))
        };
        if has_v7 {
            // Votes decide nothing that genesis has.
            fixed.remove(rules::V7);
        }
        let is_later = |fork: &str| fork != rules::V7 && !(has_v8 && fork == rules::V8);
        fixed.extend(rows.into_iter().filter(|(fork, _)| is_later(fork)));
        Ok(Tally::new(tally.votes().clone(), fixed))
    }

    /// Refuses a block that belongs to a fork that this program does not know.
    fn require_known(&self, tally: &Tally, height: u64) -> Result<(), StorageError> {
        self.with_later(tally)?.require_known(height)
    }

    /// Refuses to go on where the next block belongs to a fork that this program does not know.
    ///
    /// # Errors
    /// [`StorageError::UnknownFork`].
    pub fn require_known_fork(&self) -> Result<(), StorageError> {
        let next = self.tip()?.height.saturating_add(1);
        self.require_known(&self.0.forks.read().tally, next)
    }

    /// Whether blocks before the first one of this database may have votes that are not counted.
    pub(super) fn lacks_votes(&self) -> bool {
        self.missing(&self.0.forks.read()).is_some()
    }

    /// Whether a block with these changes, after the tip, was executed by the rules of v7: its first one
    /// writes the row.
    pub(super) fn is_v7(&self, changes: &Changes) -> Result<bool, StorageError> {
        let key = rules::V7.to_owned();
        let begins =
            changes.get(&ForkRows::ID).is_some_and(|rows| rows.contains_key(&key.to_bytes()));
        Ok(begins || view::contains::<ForkRows>(&*self.latest(), &key)?)
    }

    /// Refuses a block of v7 that was executed before the votes were counted that fixed its height. The
    /// caller holds the lock for writing.
    pub(super) fn require_rules(&self, height: u64, is_v7: bool) -> Result<(), StorageError> {
        let forks = self.0.forks.read();
        let is_named = forks.rules.as_ref().is_some_and(|rules| rules.has_v7);
        match forks.tally.fixed().get(rules::V7) {
            Some(fixed) if !is_v7 && !is_named && fixed.height <= height => {
                Err(StorageError::FormerRules { height })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The blocks before the first one of this database that must be counted.
    fn missing(&self, forks: &Forks) -> Option<RangeInclusive<u64>> {
        if forks.begins_after {
            return None;
        }
        let last = self.0.earliest.checked_sub(1)?;
        // What stands further back decides nothing any more.
        let start = last.saturating_sub(FORK_VOTE_BLOCKS);
        let first = forks.counted.unwrap_or(start).checked_add(1)?;
        (first <= last).then_some(first..=last)
    }

    /// Counts the blocks before the first one of this database, all of [`ForkCount::missing`]. `votes` has
    /// what [`Store::earlier_votes`] found in them, in ascending order of the blocks. The caller has made
    /// sure that they stand in blocks of this chain.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn count_earlier(&self, votes: &[VoteInBlock]) -> Result<(), StorageError> {
        let _counting = self.0.counting.lock();
        let _writing = self.0.writer.lock();
        let (mut tally, rules, missing) = {
            let forks = self.0.forks.read();
            let rules = forks.rules.clone().zip(self.missing(&forks));
            let Some((rules, missing)) = rules else { return Ok(()) };
            (forks.tally.clone(), rules, missing)
        };
        let before = tally.clone();
        let mut heights = self.sets_begin(&missing)?;
        heights.extend(votes.iter().map(|vote| vote.at).filter(|at| missing.contains(at)));
        for height in heights {
            let from = votes.partition_point(|vote| vote.at < height);
            let to = votes.partition_point(|vote| vote.at <= height);
            let Deciders { set, is_new: is_new_set } = self.deciders(height, &rules)?;
            let block = VotingBlock { height, set: &set, is_new_set, delay: rules.delay };
            tally.count_last(&block, votes.get(from..to).unwrap_or_default());
        }
        self.keep_count(&before, tally, *missing.end())
    }

    /// The votes in a block before the first one of this database that [`Store::count_earlier`] needs.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn earlier_votes(
        &self,
        height: u64,
        transactions: &[Transaction],
    ) -> Result<Vec<VoteInBlock>, StorageError> {
        if !transactions.iter().any(ForkVote::may_be) {
            return Ok(Vec::new());
        }
        let Some(rules) = self.0.forks.read().rules.clone() else { return Ok(Vec::new()) };
        let Deciders { set, is_new: is_new_set } = self.deciders(height, &rules)?;
        let block = VotingBlock { height, set: &set, is_new_set, delay: rules.delay };
        Ok(forks::last_votes(&block, transactions))
    }

    /// Counts the blocks of this database that are not counted, if none before them is missing. From then
    /// on each commit counts its own. It takes them in slices and lets commits through between them.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn count_own(&self) -> Result<(), StorageError> {
        let _counting = self.0.counting.lock();
        self.count_rest()
    }

    /// [`Store::count_own`], by one thread at a time.
    fn count_rest(&self) -> Result<(), StorageError> {
        while let Some((rules, first)) = self.uncounted() {
            let tip = self.tip()?.height;
            if tip.saturating_sub(first) >= LAST_MAX {
                let last = tip.min(first.saturating_add(SLICE - 1));
                let (before, after) = self.counted_up_to(&rules, first..=last)?;
                self.keep_count(&before, after, last)?;
                continue;
            }
            // No commit may come between the last block and what is said of it.
            let _writing = self.0.writer.lock();
            let tip = self.tip()?.height;
            if tip.saturating_sub(first) < LAST_MAX {
                let (before, after) = self.counted_up_to(&rules, first..=tip)?;
                self.keep_count(&before, after, FOLLOWS)?;
            }
        }
        Ok(())
    }

    /// The first block of this database that is to be counted; none if there is none to count now.
    fn uncounted(&self) -> Option<(Rules, u64)> {
        let forks = self.0.forks.read();
        let is_next = !forks.follows() && self.missing(&forks).is_none();
        let rules = forks.rules.clone().filter(|_| is_next)?;
        let first = forks.counted.unwrap_or(0).saturating_add(1);
        Some((rules, first.max(self.0.earliest)))
    }

    /// The count before and after blocks of this database.
    fn counted_up_to(
        &self,
        rules: &Rules,
        blocks: RangeInclusive<u64>,
    ) -> Result<(Tally, Tally), StorageError> {
        let before = self.0.forks.read().tally.clone();
        let mut tally = before.clone();
        let snapshot = self.snapshot();
        for (height, places) in self.heights_to_count(rules, &blocks)? {
            let places: Vec<_> =
                places.into_iter().map(|position| TxLocation { height, position }).collect();
            let mut votes = Vec::new();
            for places in places.chunks(BODIES_MAX) {
                // What others sent to a validator stands among its own.
                let found = snapshot.bodies_at(places)?.into_iter();
                votes.extend(found.filter(|tx| ForkVote::may_be(tx)));
            }
            self.count_block(&mut tally, height, rules, votes.iter().map(|tx| &**tx))?;
        }
        Ok((before, tally))
    }

    /// Those of `blocks` with which a set begins.
    fn sets_begin(&self, blocks: &RangeInclusive<u64>) -> Result<BTreeSet<u64>, StorageError> {
        let sets = view::scan::<ValidatorHistory>(&self.snapshot(), ALL)?;
        let begun = sets.into_iter().map(|(since, _)| since);
        Ok(begun.filter(|since| blocks.contains(since)).collect())
    }

    /// Those of `blocks` that concern a validator that there ever was, with the places in them, and those
    /// with which a set begins.
    fn heights_to_count(
        &self,
        rules: &Rules,
        blocks: &RangeInclusive<u64>,
    ) -> Result<BTreeMap<u64, BTreeSet<u32>>, StorageError> {
        let snapshot = self.snapshot();
        let begun = self.sets_begin(blocks)?.into_iter();
        let mut heights: BTreeMap<u64, BTreeSet<u32>> =
            begun.map(|since| (since, BTreeSet::new())).collect();
        let sets = view::scan::<ValidatorHistory>(&snapshot, ALL)?;
        let members = sets.iter().flat_map(|(_, set)| set).chain(&rules.first);
        let voters: BTreeSet<Address> = members.map(validators::address).collect();
        for voter in voters {
            let from = (voter, *blocks.start()).to_bytes();
            let to = (voter, blocks.end().saturating_add(1)).to_bytes();
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

    /// What may be a vote in a block that is about to be prepared. It is counted when the block is
    /// committed: only then is it certain whether commits count.
    ///
    /// # Errors
    /// [`StorageError::UnknownFork`] if the block belongs to a fork that this program does not know.
    pub(super) fn votes_of(&self, block: &Block) -> Result<Vec<CheckedTx>, StorageError> {
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
    pub(super) fn count_next(
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
