//! Votes of validators for forks and for values of parameters, from v7 on (docs/protocol.md sections
//! 5.12 and 5.13).
//!
//! ```text
//!   block h            each vote replaces the earlier one of its sender on the same subject
//!   end of block h     votes of strangers and old ones are dropped
//!                          │ more than two thirds of the power for the same value and height
//!                          ▼
//!   forks | params     the height, or the value and its height, is fixed
//! ```

use std::collections::BTreeMap;

use types::params::FORK_VOTE_BLOCKS;
use types::{Address, Code, Event, Params, Rejection, SetMember};

use crate::draft::Draft;
use crate::error::StorageError;
use crate::forks::FixedFork;
use crate::params::{Changeable, conflict};
use crate::rules::{self, Rules, V7};
use crate::tables::{ForkRows, NextValue, ParamRow, ParamRows, RuleVote, RuleVotes};
use crate::validators;
use crate::view::{self, Range, Read, Row};

/// What a vote is about: its text is the last part of the vote's key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// A fork.
    Fork(String),
    /// A parameter.
    Param(String),
}

/// The text of the row that is no vote, but says in which block the validator voted last.
const LAST: String = String::new();
const FORK: &str = "fork:";
const PARAM: &str = "param:";

impl Subject {
    /// The text of the key.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Fork(name) => format!("{FORK}{name}"),
            Self::Param(name) => format!("{PARAM}{name}"),
        }
    }

    /// The subject of that text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fork = text.strip_prefix(FORK).map(|name| Self::Fork(name.to_owned()));
        let param = text.strip_prefix(PARAM).map(|name| Self::Param(name.to_owned()));
        fork.or(param)
    }
}

/// Whether validators may vote for a fork of that name from v7 on: `v8` to `v99`. What a program knows
/// plays no part, for two programs must come to the same answer: one that does not know a fork that
/// was fixed stops before it.
#[must_use]
pub fn is_votable(fork: &str) -> bool {
    let number = fork.strip_prefix('v').filter(|digits| !digits.starts_with('0'));
    let number = number.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|digits| digits.parse::<u64>().ok()).is_some_and(|n| (8..=99).contains(&n))
}

/// The first and the last height that a vote in block `at` may name.
#[must_use]
pub const fn heights(subject: &Subject, at: u64, params: &Params) -> (u64, u64) {
    let delay = match subject {
        Subject::Fork(_) => params.fork_delay_blocks,
        Subject::Param(_) => 1,
    };
    (at.saturating_add(delay), at.saturating_add(FORK_VOTE_BLOCKS))
}

/// Refuses a height that may not be voted for.
pub(crate) fn check_height(
    subject: &Subject,
    height: u64,
    at: u64,
    params: &Params,
) -> Result<(), Rejection> {
    let (first, last) = heights(subject, at, params);
    if (first..=last).contains(&height) {
        return Ok(());
    }
    let expected = format_args!("{first} to {last}, counted from block {at}");
    Err(Rejection::new(Code::InvalidField, "height", height, expected).since(V7))
}

/// Every row: votes and marks of the last ones. There are a few for each validator.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn votes(state: &dyn Read) -> Result<Vec<Row<RuleVotes>>, StorageError> {
    view::scan::<RuleVotes>(state, Range { from: &[], to: None, limit: usize::MAX })
}

/// Whether an address is a validator of the next block that has not voted in this one.
pub(crate) fn is_free(
    state: &dyn Read,
    voter: &Address,
    height: u64,
) -> Result<bool, StorageError> {
    let sets = validators::sets(state)?;
    if sets.is_none_or(|sets| validators::power_of(&sets.current, voter) == 0) {
        return Ok(false);
    }
    let last = view::get::<RuleVotes>(state, &(*voter, LAST))?;
    Ok(last.is_none_or(|last| last.at < height))
}

/// Marks that a validator has voted in this block. The draft of a pool is of no block: there only one of
/// the votes that wait is free, in whichever block they come.
pub(crate) fn mark(draft: &mut Draft, voter: Address, height: u64) {
    let at = if draft.commits() { height } else { u64::MAX };
    let mark = RuleVote { value: 0, height: 0, at };
    draft.put::<RuleVotes>(&(voter, LAST), &mark);
}

/// The end of a block: drops what counts no more, and fixes what has its votes. Answers what was fixed.
pub(crate) fn end_block(
    draft: &mut Draft,
    rules: &Rules,
    height: u64,
) -> Result<Vec<Event>, StorageError> {
    if !rules.is_v7() {
        return Ok(Vec::new());
    }
    let cast = votes(draft)?;
    if cast.is_empty() {
        return Ok(Vec::new());
    }
    let Some(sets) = validators::sets(draft)? else { return Ok(Vec::new()) };
    let powers: BTreeMap<Address, u64> =
        sets.current.iter().map(|member| (validators::address(member), member.power)).collect();
    let mut sums: BTreeMap<(Subject, u64, u64), u128> = BTreeMap::new();
    for ((voter, text), vote) in &cast {
        let power = powers.get(voter).copied();
        let Some(power) = power.filter(|_| height < vote.at.saturating_add(FORK_VOTE_BLOCKS))
        else {
            draft.delete::<RuleVotes>(&(*voter, text.clone()));
            continue;
        };
        // The row of the last vote has no subject.
        let Some(subject) = Subject::parse(text) else { continue };
        if vote.height <= height {
            draft.delete::<RuleVotes>(&(*voter, text.clone()));
            continue;
        }
        let sum = sums.entry((subject, vote.value, vote.height)).or_default();
        *sum = sum.saturating_add(u128::from(power));
    }
    let total = total(&sets.current);
    let mut events = Vec::new();
    for ((subject, value, from), power) in sums {
        let first = heights(&subject, height, &rules.params).0;
        if power.saturating_mul(3) > total.saturating_mul(2) && from >= first {
            events.extend(fix(draft, rules, &subject, (value, from), height)?);
            for voter in powers.keys() {
                draft.delete::<RuleVotes>(&(*voter, subject.text()));
            }
        }
    }
    Ok(events)
}

fn total(set: &[SetMember]) -> u128 {
    set.iter().map(|member| u128::from(member.power)).fold(0, u128::saturating_add)
}

/// Writes what was decided; nothing if it fits no more.
fn fix(
    draft: &mut Draft,
    rules: &Rules,
    subject: &Subject,
    (value, from): (u64, u64),
    height: u64,
) -> Result<Option<Event>, StorageError> {
    match subject {
        Subject::Fork(fork) => {
            if view::contains::<ForkRows>(draft, fork)? {
                return Ok(None);
            }
            draft.put::<ForkRows>(fork, &FixedFork { height: from, since: height });
            Ok(Some(Event::ForkFixed { fork: fork.clone(), height: from }))
        }
        Subject::Param(name) => {
            let Some(param) = Changeable::find(name) else { return Ok(None) };
            // Others may have been decided in this block.
            let decided = rules::decided(&rules.params, draft)?;
            if conflict_with(&decided, param, value).is_some() {
                return Ok(None);
            }
            let now = draft
                .get::<ParamRows>(name)?
                .map_or_else(|| param.get(&rules.params), |row| row.value);
            let next = Some(NextValue { value, height: from });
            draft.put::<ParamRows>(name, &ParamRow { value: now, next });
            Ok(Some(Event::ParamFixed { name: name.clone(), value, height: from }))
        }
    }
}

/// What the whole set of parameters would break with this value.
pub(crate) fn conflict_with(
    decided: &Params,
    param: &Changeable,
    value: u64,
) -> Option<(&'static str, String)> {
    let mut params = decided.clone();
    param.set(&mut params, value);
    conflict(&params, param.name)
}

#[cfg(test)]
mod tests;
