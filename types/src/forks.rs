//! Heights from which later rules hold (docs/protocol.md section 8).

use crate::Body;

/// What genesis says under `forks`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Forks {
    /// CHAT_TURN and the AGENT kinds.
    pub v6: u64,
    /// VALIDATOR_VOTE; none where genesis does not name the fork: never.
    pub validator_vote: Option<u64>,
}

impl Forks {
    /// The height of a fork that a chain does not have. No block has it.
    pub const NEVER: u64 = u64::MAX;

    /// The first block in which VALIDATOR_VOTE is valid; [`Forks::NEVER`] if none is.
    #[must_use]
    pub const fn validator_vote_from(&self) -> u64 {
        match self.validator_vote {
            Some(height) => height,
            None => Self::NEVER,
        }
    }

    /// The first block in which the kind of `body` is valid; [`Forks::NEVER`] if none is.
    #[must_use]
    pub const fn active_from(&self, body: &Body) -> u64 {
        match body.fork() {
            None => 1,
            Some(Fork::V6) => self.v6,
            Some(Fork::ValidatorVote) => self.validator_vote_from(),
        }
    }
}

/// A fork that kinds can need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fork {
    /// `v6`.
    V6,
    /// `validatorVote`.
    ValidatorVote,
}

impl Fork {
    /// Its name in genesis: `validatorVote`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V6 => "v6",
            Self::ValidatorVote => "validatorVote",
        }
    }
}
