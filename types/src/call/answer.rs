//! The answers of a call's members, what they have to agree about, and what a call comes to by that.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Hash, Usage};

/// The status of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum CallStatus {
    /// The call waits for the block that draws its members.
    Electing,
    /// The members commit to their answers.
    Committing,
    /// The members reveal their answers.
    Revealing,
    /// A group of successes decided the call.
    Success,
    /// A group of failures decided the call, or the members could not agree.
    Failed,
    /// Too few members answered in time.
    TimedOut,
    /// Too few miners could be drawn, and the escrow was returned.
    Unassigned,
}

impl CallStatus {
    /// All statuses, in the order of a call's life.
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

    /// The status with this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the call has an answer, or will not get one.
    #[must_use]
    pub const fn is_decided(self) -> bool {
        match self {
            Self::Electing | Self::Committing | Self::Revealing => false,
            Self::Success | Self::Failed | Self::TimedOut | Self::Unassigned => true,
        }
    }
}

/// How a member says that a call ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// The agent gave a result.
    Success,
    /// The agent itself cannot answer, no matter which member executes it.
    Failure,
    /// This member could not execute the agent.
    Unable,
}

impl Outcome {
    /// The words for all outcomes.
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

    /// The outcome with this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Success, Self::Failure, Self::Unable].into_iter().find(|it| it.as_str() == word)
    }
}

/// What a member reveals. In a call that the majority decides, members have to agree in all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The outcome.
    pub outcome: Outcome,
    /// The SHA-256 of the result's bytes.
    pub result_hash: Hash,
    /// The work that the call pays for.
    pub usage: Usage,
    /// The SHA-256 of `work` in the member's receipt, with which the work can be repeated.
    pub receipt_hash: Hash,
}

/// How many members have to agree, and on what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Consensus {
    /// More than half of the members, on the whole answer.
    Majority,
    /// This many members, on the outcome.
    Threshold(u8),
}

impl Consensus {
    /// The words in an AGENT_CALL.
    pub const WORDS: &'static [&'static str] = &["majority", "threshold"];

    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Majority => "majority",
            Self::Threshold(_) => "threshold",
        }
    }

    /// The number of members that decide a round of this size.
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
    /// The outcome that the members of the group gave.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Same(answer) => answer.outcome,
            Self::Of(outcome) => *outcome,
        }
    }

    /// Whether a member with this answer belongs to the group.
    #[must_use]
    pub fn has(&self, answer: &Answer) -> bool {
        match self {
            Self::Same(same) => same == answer,
            Self::Of(outcome) => *outcome == answer.outcome,
        }
    }

    /// The status of a call that the group decides.
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

    /// What [`When::parse`] accepts, for messages.
    pub const EXPECTED: &'static str = "success, or result: and 64 lowercase hex characters";

    /// Parses `success`, or `result:` followed by a hash.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "success" {
            return Some(Self::Success);
        }
        Hash::parse(text.strip_prefix(Self::PREFIX)?).ok().map(Self::Result)
    }

    /// Whether a payment with this condition is made if this group has decided.
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

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::Result(hash) => write!(f, "{}{hash}", Self::PREFIX),
        }
    }
}
