//! Counting the votes of blocks that were committed, or that other nodes have.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use state::chain::ChainRules;
use state::error::StorageError;
use state::forks::{self, Tally, VoteInBlock, VotingBlock};
use state::table::Key;
use state::tables::{ForkRows, ValidatorHistory};
use state::view::{self, Range};
use state::{rules, validators};
use types::{Address, ForkVote, Transaction, TxLocation, codec};

use super::count::{ALL, FOLLOWS, Rules, write_changes};
use super::deciders::Deciders;
use crate::database::Store;
use crate::meta::FORKS_CELL;
use crate::rocks::{Batch, Durability};
use crate::tables::{AccountHistory, META};

/// Blocks of this database that are counted at a time. What strangers sent to validators is read with
/// them, so the places in them are what bounds the memory.
const SLICE: u64 = 1_024;

/// So many blocks at most are counted while commits wait.
const LAST_MAX: u64 = 16;

/// Transactions of a block that are in memory at a time: about as many as stand together on the disk.
const BODIES_MAX: usize = 256;

impl Store {
    /// Counts the votes for later forks from now on, with the rules of `chain`, and those in the blocks
    /// that are there and were not counted. Called again it does nothing.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn count_forks(&self, chain: &ChainRules) -> Result<(), StorageError> {
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

    /// Counts the blocks before the first one of this database, all of
    /// [`ForkCount::missing`](crate::ForkCount::missing). `votes` has what [`Store::earlier_votes`] found
    /// in them, in ascending order of the blocks. The caller has made sure that they stand in blocks of
    /// this chain.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn count_earlier(&self, votes: &[VoteInBlock]) -> Result<(), StorageError> {
        let _counting = self.0.counting.lock();
        let _writing = self.0.writer.lock();
        let (mut tally, rules, missing) = {
            let forks = self.0.forks.read();
            let rules = forks.rules.clone().zip(forks.missing(self.0.earliest));
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
        let is_next = !forks.follows() && forks.missing(self.0.earliest).is_none();
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
