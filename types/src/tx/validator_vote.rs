//! VALIDATOR_VOTE: a validator votes for a change to the validator set (docs/protocol.md section
//! 5.11).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::IntegerLimit;
use super::static_view::StaticView;
use crate::params::{POWER_MAX, VALIDATOR_VOTE_TTL_MS_MAX};
use crate::{Late, PublicKey, Rejection, Signature};

declare! {
    /// Casts a validator's vote for a change to the validator set.
    kind ValidatorVote = "VALIDATOR_VOTE", section "5.11", fork ValidatorVote {
        required {
            /// The consensus key of the validator to add, change or remove.
            candidate_key "candidateKey": PublicKey, Key;
            /// The voting power that the validator should have, at most 2^48; 0 removes it.
            power "power": u64, Integer(IntegerLimit::range(0, POWER_MAX, ""));
            /// The last block time at which the vote counts, in milliseconds since 1970. Must be
            /// later than the transaction's timestamp, by at most 30 days.
            expires_at "expiresAt": u64, Integer(IntegerLimit::any("ms since 1970")), filled Default;
        }
        optional {}
        /// The consent of the holder of a new key.
        later consent: Consent;
    }
}

declare! {
    /// The consent of the holder of a new consensus key to a vote for it, from v7 on.
    #[derive(Default)]
    object Consent {
        required {}
        optional {
            /// The signature with which the key of a new candidate agrees to become a validator. It
            /// covers the same `expiresAt`.
            acceptance "acceptance": Signature, Signature;
        }
    }
}

impl ValidatorVote {
    /// A vote without an acceptance, which is enough if the candidate already is a validator.
    #[must_use]
    pub fn new(candidate_key: PublicKey, power: u64, expires_at: u64) -> Self {
        Self { candidate_key, power, expires_at, consent: Late::default() }
    }

    /// The same vote with the acceptance that the candidate's key signed
    /// ([`crate::sign_bytes::acceptance`]).
    #[must_use]
    pub fn with_acceptance(self, acceptance: Signature) -> Self {
        Self { consent: Late::from(Consent { acceptance: Some(acceptance) }), ..self }
    }
}

impl Kind for ValidatorVote {
    fn check_together(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        let first = view.timestamp.saturating_add(1);
        let last = view.timestamp.saturating_add(VALIDATOR_VOTE_TTL_MS_MAX);
        if (first..=last).contains(&self.expires_at) {
            return Ok(());
        }
        let expected = format_args!("{first} to {last}, 30 days after timestamp");
        Err(Rejection::invalid("expiresAt", self.expires_at, expected))
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Validators)
    }
}
