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

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::params::FORK_VOTE_BLOCKS;
use types::{Address, ForkVote, SetMember, Transaction};

use crate::error::StorageError;
use crate::validators;

/// The forks for which votes of this form count. Later ones are voted for by a kind of their own.
pub const COUNTED: [&str; 1] = ["v7"];

/// The forks whose rules this program has.
const KNOWN: [&str; 0] = [];

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

/// A fork whose height is fixed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FixedFork {
    /// The first block in which its rules hold.
    pub height: u64,
    /// The block with which that was fixed.
    pub since: u64,
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

/// The votes so far, and what they fixed. It has at most one vote of each validator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    pub(crate) votes: BTreeMap<Address, CastForkVote>,
    pub(crate) fixed: BTreeMap<String, FixedFork>,
}

impl Tally {
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
        let cast: Vec<_> =
            votes.filter_map(|(voter, vote)| Some((voter, self.valid(block, vote)?))).collect();
        if cast.is_empty() && !block.is_new_set {
            return;
        }
        self.votes.extend(cast);
        self.votes.retain(|voter, vote| powers.contains_key(voter) && is_fresh(vote, block.height));
        self.fix(block, &powers);
    }

    /// The vote as it is kept, if it counts.
    fn valid(&self, block: &VotingBlock<'_>, vote: ForkVote) -> Option<CastForkVote> {
        let ForkVote { fork, height } = vote;
        let first = block.height.saturating_add(block.delay);
        let last = block.height.saturating_add(FORK_VOTE_BLOCKS);
        let is_open = COUNTED.contains(&fork.as_str()) && !self.fixed.contains_key(&fork);
        let counts = is_open && (first..=last).contains(&height);
        counts.then_some(CastForkVote { fork, height, at: block.height })
    }

    /// Fixes the heights that have their votes.
    fn fix(&mut self, block: &VotingBlock<'_>, powers: &BTreeMap<Address, u64>) {
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
