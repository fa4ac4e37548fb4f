//! Calls of the market: one paid request to an agent, the members that answer it, and what they agree
//! about (docs/protocol.md section 18).
//!
//! ```text
//! electing ──▶ committing ──▶ revealing ──▶ success, failed, timedOut ──▶ settled
//!     └─▶ unassigned                          └─ appealed ─▶ electing, a second round
//! ```

mod event;
mod records;

pub use event::{CallChange, Candidate};
pub use records::{
    Appeal, Bill, Call, CallDeadline, CallLimits, CallMember, CallRound, CallTerms, Commitment,
    Conditional, Reveal, Said,
};

use serde::{Deserialize, Serialize};

use crate::{Address, Hash, Usage};

/// The most members that a call may ask for.
pub const COMMITTEE_MAX: u8 = 15;
/// The most bytes of a payload and of a result.
pub const CALLDATA_BYTES_MAX: usize = 16_384;
/// The most conditional payments of a call.
pub const ON_RESULT_MAX: usize = 4;
/// How many blocks a phase of a call has at least.
pub const PHASE_BLOCKS: u64 = 10;

/// Where a call is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum CallStatus {
    /// Waits for the block that draws its members.
    Electing,
    /// Members commit to their answers.
    Committing,
    /// Members show what they committed to.
    Revealing,
    /// A group of successes decided.
    Success,
    /// A group of failures decided, or the members could not agree.
    Failed,
    /// Too few members answered in time.
    TimedOut,
    /// Too few miners could be drawn: nothing happened.
    Unassigned,
}

impl CallStatus {
    /// Every status, in the order of a call's life.
    pub const ALL: [Self; 7] = [
        Self::Electing,
        Self::Committing,
        Self::Revealing,
        Self::Success,
        Self::Failed,
        Self::TimedOut,
        Self::Unassigned,
    ];

    /// The word in JSON: `timedOut`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Electing => "electing",
            Self::Committing => "committing",
            Self::Revealing => "revealing",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::TimedOut => "timedOut",
            Self::Unassigned => "unassigned",
        }
    }

    /// The status of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the answer is fixed, or there will be none.
    #[must_use]
    pub const fn is_decided(self) -> bool {
        match self {
            Self::Electing | Self::Committing | Self::Revealing => false,
            Self::Success | Self::Failed | Self::TimedOut | Self::Unassigned => true,
        }
    }
}

/// What a member says of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// The agent answered.
    Success,
    /// The agent itself says no, and would for everybody.
    Failure,
    /// This member could not execute it.
    Unable,
}

impl Outcome {
    /// Every outcome as it is written.
    pub const WORDS: &'static [&'static str] = &["success", "failure", "unable"];

    /// The word in transactions and commitments.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Unable => "unable",
        }
    }

    /// The outcome of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Success, Self::Failure, Self::Unable].into_iter().find(|it| it.as_str() == word)
    }
}

/// What a member reveals. In a call that the majority decides, all of it has to agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// SHA-256 of the result's bytes.
    pub result_hash: Hash,
    /// The work that is billed.
    pub usage: Usage,
    /// SHA-256 of what has to be kept to do the work again.
    pub receipt_hash: Hash,
}

/// How many members have to agree, and about what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Consensus {
    /// More than half, about the whole answer.
    Majority,
    /// So many, about the outcome.
    Threshold(u8),
}

impl Consensus {
    /// How it is written in an AGENT_CALL.
    pub const WORDS: &'static [&'static str] = &["majority", "threshold"];

    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Majority => "majority",
            Self::Threshold(_) => "threshold",
        }
    }

    /// How many members of a round of this size decide.
    #[must_use]
    pub const fn needed(self, size: u8) -> u8 {
        match self {
            Self::Majority => (size / 2).saturating_add(1),
            Self::Threshold(needed) => needed,
        }
    }
}

/// What the members of a group have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Group {
    /// The same answer.
    Same(Answer),
    /// The same outcome, success or failure, in a call that a threshold decides.
    Of(Outcome),
}

impl Group {
    /// How its members say that the call ended.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Same(answer) => answer.outcome,
            Self::Of(outcome) => *outcome,
        }
    }

    /// Whether a member with this answer belongs to it.
    #[must_use]
    pub fn has(&self, answer: &Answer) -> bool {
        match self {
            Self::Same(same) => same == answer,
            Self::Of(outcome) => *outcome == answer.outcome,
        }
    }

    /// The status of a call that it decides.
    #[must_use]
    pub const fn status(&self) -> CallStatus {
        match self.outcome() {
            Outcome::Success => CallStatus::Success,
            Outcome::Failure | Outcome::Unable => CallStatus::Failed,
        }
    }
}

/// When a conditional payment is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum When {
    /// On any success.
    Success,
    /// On a success with this result.
    Result(Hash),
}

impl When {
    const PREFIX: &'static str = "result:";

    /// What [`When::parse`] takes, for messages.
    pub const EXPECTED: &'static str = "success, or result: and 64 lowercase hex characters";

    /// Reads `success` or `result:` and a hash.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "success" {
            return Some(Self::Success);
        }
        Hash::parse(text.strip_prefix(Self::PREFIX)?).ok().map(Self::Result)
    }

    /// Whether a payment under this condition is made when this group has decided.
    #[must_use]
    pub fn fires(&self, group: &Group) -> bool {
        match (self, group) {
            (_, Group::Of(_)) => false,
            (Self::Success, Group::Same(answer)) => answer.outcome == Outcome::Success,
            (Self::Result(hash), Group::Same(answer)) => {
                answer.outcome == Outcome::Success && answer.result_hash == *hash
            }
        }
    }
}

impl std::fmt::Display for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::Result(hash) => write!(f, "{}{hash}", Self::PREFIX),
        }
    }
}

/// Says in a fixed length who was in the rounds of a settled call, and what became of them: SHA-256 over
/// the records of all members, in the order in which they were drawn.
#[must_use]
pub fn members_digest<'a>(
    members: impl IntoIterator<Item = (&'a Address, &'a CallMember)>,
) -> Hash {
    let mut bytes = Vec::new();
    for (address, member) in members {
        bytes.extend_from_slice(address.as_bytes());
        bytes.extend_from_slice(&crate::codec::encode(member));
    }
    Hash::digest(&bytes)
}

#[cfg(test)]
mod tests;
