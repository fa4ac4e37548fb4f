//! The heights from which later rules apply (docs/protocol.md section 8).

use crate::Body;

/// The member `forks` of genesis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Forks {
    /// The first height for CHAT_TURN and the AGENT kinds.
    pub v6: u64,
    /// The first height for VALIDATOR_VOTE; `None` if genesis does not name the fork, which is then
    /// never active.
    pub validator_vote: Option<u64>,
    /// The first height for fees, bonds and votes on parameters; `None` if genesis does not name
    /// the fork. The validators may then fix the height by votes; the state has that height, not
    /// this field.
    pub v7: Option<u64>,
    /// The first height for the agent market; `None` if genesis does not name the fork. The
    /// validators may then fix the height by votes; the state has that height, not this field.
    pub v8: Option<u64>,
}

impl Forks {
    /// The height of a fork that is never active. No block has it.
    pub const NEVER: u64 = u64::MAX;

    /// The first block in which VALIDATOR_VOTE is valid; [`Forks::NEVER`] if there is none.
    #[must_use]
    pub const fn validator_vote_from(&self) -> u64 {
        height_or_never(self.validator_vote)
    }

    /// The first block with the rules of v7; [`Forks::NEVER`] if there is none.
    #[must_use]
    pub const fn v7_from(&self) -> u64 {
        height_or_never(self.v7)
    }

    /// The first block with the rules of v8; [`Forks::NEVER`] if there is none.
    #[must_use]
    pub const fn v8_from(&self) -> u64 {
        height_or_never(self.v8)
    }

    /// The first block with the rules of a fork; [`Forks::NEVER`] if there is none.
    #[must_use]
    pub const fn height_of(&self, fork: Fork) -> u64 {
        match fork {
            Fork::V6 => self.v6,
            Fork::ValidatorVote => self.validator_vote_from(),
            Fork::V7 => self.v7_from(),
            Fork::V8 => self.v8_from(),
        }
    }

    /// The first block in which the kind of `body` is valid; [`Forks::NEVER`] if there is none.
    #[must_use]
    pub const fn active_from(&self, body: &Body) -> u64 {
        match body.fork() {
            None => 1,
            Some(fork) => self.height_of(fork),
        }
    }
}

const fn height_or_never(height: Option<u64>) -> u64 {
    match height {
        Some(height) => height,
        None => Forks::NEVER,
    }
}

/// A fork that a kind can require.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fork {
    /// `v6`.
    V6,
    /// `validatorVote`.
    ValidatorVote,
    /// `v7`.
    V7,
    /// `v8`.
    V8,
}

impl Fork {
    /// Its name in genesis: `validatorVote`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V6 => "v6",
            Self::ValidatorVote => "validatorVote",
            Self::V7 => "v7",
            Self::V8 => "v8",
        }
    }

    /// Whether only genesis can fix its height. The height of any other fork may be in the state,
    /// so only the execution of a transaction shows whether the fork is active.
    #[must_use]
    pub const fn is_fixed_by_genesis(self) -> bool {
        match self {
            Self::V6 | Self::ValidatorVote => true,
            Self::V7 | Self::V8 => false,
        }
    }
}
