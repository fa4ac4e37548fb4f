//! Tables from which the rules of a block follow: forks, parameters and the base fee, and the votes that
//! change them.

use serde::{Deserialize, Serialize};
use types::Address;

use crate::table::{Table, TableId};

/// Forks whose heights were fixed by votes that are counted beside the state, by name. The database
/// keeps them. No row is deleted.
#[derive(Debug)]
pub struct FixedForks;
impl Table for FixedForks {
    const ID: TableId = TableId::plain(91, "fixed_forks");
    type Key = String;
    type Value = FixedFork;
}

/// A fork whose height is fixed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FixedFork {
    /// The first block in which its rules hold.
    pub height: u64,
    /// The block with which that was fixed.
    pub since: u64,
}

/// Forks whose heights are fixed, by name, from v7 on. No row is deleted.
#[derive(Debug)]
pub struct ForkRows;
impl Table for ForkRows {
    const ID: TableId = TableId::authenticated(22, "forks", b'f');
    type Key = String;
    type Value = FixedFork;
}

/// A parameter that votes can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ParamRow {
    /// The value that holds.
    pub value: u64,
    /// The value that was voted for, until it holds.
    pub next: Option<NextValue>,
}

/// A value that a parameter will have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NextValue {
    /// The value.
    pub value: u64,
    /// The first block with it.
    pub height: u64,
}

impl ParamRow {
    /// The value in a block.
    #[must_use]
    pub fn at(&self, height: u64) -> u64 {
        self.next.filter(|next| next.height <= height).map_or(self.value, |next| next.value)
    }
}

/// Parameters that votes can change, by name, from v7 on.
#[derive(Debug)]
pub struct ParamRows;
impl Table for ParamRows {
    const ID: TableId = TableId::authenticated(23, "params", b'p');
    type Key = String;
    type Value = ParamRow;
}

/// What a place in the next block costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FeeRow {
    /// The base fee, in micro-OMBRA per KiB.
    pub base_fee: u64,
}

/// The base fee, from v7 on: one row.
#[derive(Debug)]
pub struct Fees;
impl Table for Fees {
    const ID: TableId = TableId::authenticated(24, "fees", b'e');
    type Key = ();
    type Value = FeeRow;
}

/// A validator's vote for a fork or for a value of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RuleVote {
    /// The value that a parameter shall have; 0 for a fork.
    pub value: u64,
    /// The first block in which the fork's rules, or the value, shall hold.
    pub height: u64,
    /// The block with the vote.
    pub at: u64,
}

/// Votes that count for forks and parameters, by voter and subject ([`crate::rule_votes`]), from v7 on.
/// The row with the empty subject says in which block the validator voted last.
#[derive(Debug)]
pub struct RuleVotes;
impl Table for RuleVotes {
    const ID: TableId = TableId::authenticated(25, "rule_votes", b'o');
    type Key = (Address, String);
    type Value = RuleVote;
}
