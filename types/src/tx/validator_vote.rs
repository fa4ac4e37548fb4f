//! VALIDATOR_VOTE: a validator votes for a change of the validator set (docs/protocol.md section
//! 5.11).

use super::fields::Fields;
use super::{Kind, StaticView, Subject};
use crate::forks::Fork;
use crate::json::ObjectWriter;
use crate::params::{POWER_MAX, VALIDATOR_VOTE_TTL_MS_MAX};
use crate::{PublicKey, Rejection};

/// The fields of VALIDATOR_VOTE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidatorVote {
    /// The consensus key of the validator that shall be added, changed or removed.
    pub candidate_key: PublicKey,
    /// The voting power that it shall have, at most [`POWER_MAX`]; 0 removes it.
    pub power: u64,
    /// The last block time at which the vote counts, in milliseconds since 1970: later than the
    /// transaction's timestamp, by at most [`VALIDATOR_VOTE_TTL_MS_MAX`].
    pub expires_at: u64,
}

impl Kind for ValidatorVote {
    const TYPE: &'static str = "VALIDATOR_VOTE";
    const FORK: Option<Fork> = Some(Fork::ValidatorVote);

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        Ok(Self {
            candidate_key: fields.parsed("candidateKey")?,
            power: fields.integer("power")?,
            expires_at: fields.integer("expiresAt")?,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        let Self { candidate_key, power, expires_at } = self;
        out.display("candidateKey", candidate_key);
        out.integer("power", *power);
        out.integer("expiresAt", *expires_at);
    }

    fn check_static(&self, view: &StaticView<'_>) -> Result<(), Rejection> {
        let Self { candidate_key, power, expires_at } = *self;
        if !candidate_key.can_sign() {
            let expected = "an Ed25519 key that can sign";
            return Err(Rejection::invalid("candidateKey", candidate_key, expected));
        }
        if power > POWER_MAX {
            return Err(Rejection::invalid("power", power, format_args!("0 to {POWER_MAX}")));
        }
        let first = view.timestamp.saturating_add(1);
        let last = view.timestamp.saturating_add(VALIDATOR_VOTE_TTL_MS_MAX);
        if !(first..=last).contains(&expires_at) {
            let expected = format_args!("{first} to {last}, 30 days after timestamp");
            return Err(Rejection::invalid("expiresAt", expires_at, expected));
        }
        Ok(())
    }

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Validators)
    }
}
