//! Votes for forks that are to come, counted outside the authenticated state (docs/protocol.md section
//! 8.1).
//!
//! ```text
//!   block h    votes of the set of h, each replaces the earlier one of its sender
//!                  │ more than two thirds of the power of the set of h for the same height,
//!                  │ which is at least forkDelayBlocks ahead of h
//!                  ▼
//!              the height is fixed, for good
//! ```
//!
//! What is counted is a function of the blocks alone: [`Tally::count`] sees each block once, in order,
//! with the set that decided it. Blocks in which no validator votes and with which no set begins change
//! nothing, so it makes no difference whether they are shown to it: a node that counts again what
//! stands in its database leaves them out.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use types::params::FORK_VOTE_BLOCKS;
use types::{Address, ForkVote, SetMember, Transaction};

use crate::error::StorageError;
use crate::validators;

pub use crate::tables::{FixedFork, FixedForks};

/// The forks for which votes of this form count. Later ones are voted for by a kind of their own.
pub const COUNTED: [&str; 1] = ["v7"];

/// The forks whose rules this program has.
const KNOWN: [&str; 2] = [crate::rules::V7, crate::rules::V8];

/// Whether this program has the rules of a fork.
#[must_use]
pub fn is_known(fork: &str) -> bool {
    KNOWN.contains(&fork)
}

/// The vote of a validator that was counted last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CastForkVote {
    /// The fork.
    pub fork: String,
    /// The first block in which its rules shall hold.
    pub height: u64,
    /// The block with the vote.
    pub at: u64,
}

/// A block as far as votes go.
#[derive(Clone, Copy, Debug)]
pub struct VotingBlock<'a> {
    /// The height.
    pub height: u64,
    /// The validators that decide this height.
    pub set: &'a [SetMember],
    /// Whether they decide this height as the first one.
    pub is_new_set: bool,
    /// `forkDelayBlocks`.
    pub delay: u64,
}

/// A vote that is in bounds, taken out of its transaction: small enough that the votes of a million blocks
/// fit into memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VoteInBlock {
    /// The block with the vote.
    pub at: u64,
    /// The validator.
    pub voter: Address,
    /// The fork, one of [`COUNTED`].
    pub fork: &'static str,
    /// The first block in which its rules shall hold.
    pub height: u64,
}

/// The votes so far, and what they fixed. It has at most one vote of each validator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    votes: BTreeMap<Address, CastForkVote>,
    fixed: BTreeMap<String, FixedFork>,
}

impl Tally {
    /// A tally as it was kept.
    #[must_use]
    pub const fn new(
        votes: BTreeMap<Address, CastForkVote>,
        fixed: BTreeMap<String, FixedFork>,
    ) -> Self {
        Self { votes, fixed }
    }

    /// The votes that count, by voter.
    #[must_use]
    pub const fn votes(&self) -> &BTreeMap<Address, CastForkVote> {
        &self.votes
    }

    /// The forks whose heights are fixed, by name.
    #[must_use]
    pub const fn fixed(&self) -> &BTreeMap<String, FixedFork> {
        &self.fixed
    }

    /// Takes over a height that is fixed elsewhere; one that is there stays.
    pub fn fix(&mut self, fork: &str, fixed: FixedFork) {
        self.fixed.entry(fork.to_owned()).or_insert(fixed);
    }

    /// The first fork that is fixed and that this program does not know.
    #[must_use]
    pub fn unknown(&self) -> Option<(&str, FixedFork)> {
        let unknown = self.fixed.iter().filter(|(fork, _)| !is_known(fork));
        unknown.map(|(fork, fixed)| (fork.as_str(), *fixed)).min_by_key(|(_, fixed)| fixed.height)
    }

    /// Refuses a block that belongs to a fork that this program does not know.
    ///
    /// # Errors
    /// [`StorageError::UnknownFork`].
    pub fn require_known(&self, height: u64) -> Result<(), StorageError> {
        match self.unknown() {
            Some((fork, fixed)) if height >= fixed.height => {
                let (fork, height) = (fork.to_owned(), fixed.height);
                Err(StorageError::UnknownFork { fork, height })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Counts a block with its transactions, in order. What is no vote, or one that cannot count,
    /// changes nothing.
    pub fn count<'t>(
        &mut self,
        block: &VotingBlock<'_>,
        transactions: impl IntoIterator<Item = &'t Transaction>,
    ) {
        let mut candidates = transactions.into_iter().filter(|tx| ForkVote::may_be(tx)).peekable();
        if candidates.peek().is_none() && !block.is_new_set {
            return;
        }
        let powers = powers(block.set);
        let by_validators = candidates.filter(|tx| powers.contains_key(&tx.from()));
        let votes = by_validators.filter_map(|tx| Some((tx.from(), ForkVote::of(tx)?)));
        self.count_cast(block, &powers, votes);
    }

    /// Counts a block by what [`last_votes`] found in it.
    pub fn count_last(&mut self, block: &VotingBlock<'_>, votes: &[VoteInBlock]) {
        if votes.is_empty() && !block.is_new_set {
            return;
        }
        let powers = powers(block.set);
        let by_validators = votes.iter().filter(|vote| powers.contains_key(&vote.voter));
        let votes = by_validators.map(|VoteInBlock { at: _, voter, fork, height }| {
            (*voter, ForkVote { fork: (*fork).to_owned(), height: *height })
        });
        self.count_cast(block, &powers, votes);
    }

    /// Counts what members of a block's set voted for in it.
    fn count_cast(
        &mut self,
        block: &VotingBlock<'_>,
        powers: &BTreeMap<Address, u64>,
        votes: impl Iterator<Item = (Address, ForkVote)>,
    ) {
        let cast: Vec<_> =
            votes.filter_map(|(voter, vote)| Some((voter, self.valid(block, vote)?))).collect();
        if cast.is_empty() && !block.is_new_set {
            return;
        }
        self.votes.extend(cast);
        self.votes.retain(|voter, vote| powers.contains_key(voter) && is_fresh(vote, block.height));
        self.fix_voted(block, powers);
    }

    /// The vote as it is kept, if it counts.
    fn valid(&self, block: &VotingBlock<'_>, vote: ForkVote) -> Option<CastForkVote> {
        let counts = in_bounds(block, &vote).is_some() && !self.fixed.contains_key(&vote.fork);
        let ForkVote { fork, height } = vote;
        counts.then_some(CastForkVote { fork, height, at: block.height })
    }

    /// Fixes the heights that have their votes.
    fn fix_voted(&mut self, block: &VotingBlock<'_>, powers: &BTreeMap<Address, u64>) {
        let total = powers.values().copied().map(u128::from).fold(0, u128::saturating_add);
        let first = block.height.saturating_add(block.delay);
        for ((fork, height), power) in sums(&self.votes, powers) {
            let is_quorum = power.saturating_mul(3) > total.saturating_mul(2);
            if is_quorum && height >= first && !self.fixed.contains_key(&fork) {
                self.fixed.insert(fork, FixedFork { height, since: block.height });
            }
        }
    }
}

/// The fork of a vote in this block, if it and the height are such that may be voted for.
fn in_bounds(block: &VotingBlock<'_>, vote: &ForkVote) -> Option<&'static str> {
    let first = block.height.saturating_add(block.delay);
    let last = block.height.saturating_add(FORK_VOTE_BLOCKS);
    let fork = COUNTED.into_iter().find(|fork| *fork == vote.fork)?;
    (first..=last).contains(&vote.height).then_some(fork)
}

/// The votes of a block's transactions that are enough to count it, in their order: of each member of the
/// set the last one for each fork that is in bounds.
#[must_use]
pub fn last_votes(block: &VotingBlock<'_>, transactions: &[Transaction]) -> Vec<VoteInBlock> {
    let powers = powers(block.set);
    let mut seen = BTreeSet::new();
    let mut votes = Vec::new();
    for tx in transactions.iter().rev() {
        let voter = tx.from();
        let Some(vote) = ForkVote::of(tx).filter(|_| powers.contains_key(&voter)) else { continue };
        if let Some(fork) = in_bounds(block, &vote).filter(|fork| seen.insert((voter, *fork))) {
            votes.push(VoteInBlock { at: block.height, voter, fork, height: vote.height });
        }
    }
    votes.reverse();
    votes
}

/// Whether a vote still counts in a block.
fn is_fresh(vote: &CastForkVote, height: u64) -> bool {
    height < vote.at.saturating_add(FORK_VOTE_BLOCKS)
}

fn powers(set: &[SetMember]) -> BTreeMap<Address, u64> {
    set.iter().map(|member| (validators::address(member), member.power)).collect()
}

fn sums(
    votes: &BTreeMap<Address, CastForkVote>,
    powers: &BTreeMap<Address, u64>,
) -> BTreeMap<(String, u64), u128> {
    let mut sums: BTreeMap<(String, u64), u128> = BTreeMap::new();
    for (voter, vote) in votes {
        let power = powers.get(voter).copied().unwrap_or_default();
        let sum = sums.entry((vote.fork.clone(), vote.height)).or_default();
        *sum = sum.saturating_add(u128::from(power));
    }
    sums
}

#[cfg(test)]
mod tests;
