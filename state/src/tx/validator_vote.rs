//! VALIDATOR_VOTE: a validator votes for a change of the validator set (docs/protocol.md section
//! 5.11). The votes are counted at the end of the block, in [`crate::validators`].
//!
//! Refused with NOT_VALIDATOR, VALIDATOR_UNCHANGED, VALIDATOR_SET_LIMIT, VOTE_LIMIT and, from v7 on,
//! ACCEPTANCE_INVALID, in this order.
//! No rule looks at the time, so that the pool and a block give the same answer: a vote that comes
//! too late is in the block and counts for nothing.

use std::fmt::Display;

use types::params::{VALIDATOR_VOTE_TTL_MS_MAX, VALIDATOR_VOTES_MAX, VALIDATORS_MAX};
use types::sign_bytes::{Domain, acceptance as acceptance_bytes};
use types::tx::ValidatorVote;
use types::{Address, Code, Event, OpenVote, PublicKey, Rejection, SetMember, Transaction};

use super::{Inclusion, Kind, votes};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::rules::V7;
use crate::table::Key;
use crate::tables::ValidatorVotes;
use crate::validators::{self, ChangeError};
use crate::view::{self, Range, Read};
use crate::work;

/// The vote to be written; it takes the place of the voter's earlier one for the candidate.
pub(crate) struct Plan {
    voter: Address,
    candidate: PublicKey,
    power: u64,
    expires_at: u64,
}

/// Rows that the check reads, of the voter's other votes among them, and those that are written and counted.
const VALIDATOR_VOTE_ROWS: u64 = 45;

impl Kind for ValidatorVote {
    type Plan = Plan;

    const INCLUSION: Inclusion = Inclusion::FreeVote;

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        let Self { candidate_key: candidate, power, expires_at, consent: _ } = *self;
        let voter = tx.from();
        let sets = votes::require_validator(state, voter)?;
        check_change(validators::latest(&sets), candidate, power)?;
        let open = others_of(state, &voter, &candidate)?;
        if open >= VALIDATOR_VOTES_MAX {
            let got = format_args!("{open} open votes for other candidates");
            let expected = format_args!("less than {VALIDATOR_VOTES_MAX}");
            return Err(Rejection::new(Code::VoteLimit, "from", got, expected).into());
        }
        if ctx.rules.is_v7() {
            if validators::is_punished(state, &candidate)? {
                let expected = "a key that no evidence was found against";
                let code = Code::AcceptanceInvalid;
                let refused = Rejection::new(code, "candidateKey", candidate, expected);
                return Err(refused.since(V7).into());
            }
            check_acceptance(self, validators::latest(&sets), &ctx.rules.domain)?;
        }
        Ok(Plan { voter, candidate, power, expires_at })
    }

    fn work(_: &Plan) -> u64 {
        work::rows(VALIDATOR_VOTE_ROWS)
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { voter, candidate, power, expires_at } = plan;
        let last = ctx.timestamp.saturating_add(VALIDATOR_VOTE_TTL_MS_MAX);
        let vote = OpenVote { power, expires_at: expires_at.min(last) };
        let key = (voter, candidate);
        if draft.get::<ValidatorVotes>(&key)?.is_some() {
            draft.put::<ValidatorVotes>(&key, &vote);
        } else {
            // If the block decides the change at once, the database never hears of the vote.
            draft.insert::<ValidatorVotes>(&key, &vote);
        }
        Ok(Event::ValidatorVoted { public_key: candidate, power })
    }
}

fn check_change(set: &[SetMember], candidate: PublicKey, power: u64) -> Result<(), Rejection> {
    let refused = match validators::change(set, candidate, power) {
        Ok(_) => return Ok(()),
        Err(refused) => refused,
    };
    let field = "candidateKey";
    Err(match refused {
        ChangeError::Unchanged => {
            let expected = "a power that the candidate does not have already";
            Rejection::new(Code::ValidatorUnchanged, "power", power, expected)
        }
        ChangeError::Empty => {
            let expected = "a validator beside which there are others";
            Rejection::new(Code::ValidatorSetLimit, field, candidate, expected)
        }
        ChangeError::TooMany => {
            let expected = format_args!("one of the {VALIDATORS_MAX} validators that there are");
            Rejection::new(Code::ValidatorSetLimit, field, candidate, expected)
        }
    })
}

/// From v7 on a key gets power only if its holder has agreed. A key that has power has agreed already, and
/// votes for a key are deleted when it leaves, so no vote without an acceptance becomes one for a new key.
fn check_acceptance(
    vote: &ValidatorVote,
    set: &[SetMember],
    domain: &Domain,
) -> Result<(), Rejection> {
    let ValidatorVote { candidate_key: candidate, power, expires_at, consent } = vote;
    let address = candidate.address();
    if *power == 0 || validators::power_of(set, &address) > 0 {
        return Ok(());
    }
    let refused = |got: &dyn Display| {
        let expected = format_args!(
            "the signature of candidateKey over ombra-validator|{}|{address}|{expires_at}",
            domain.genesis_hash
        );
        Err(Rejection::new(Code::AcceptanceInvalid, "acceptance", got, expected).since(V7))
    };
    let Some(acceptance) = consent.get()?.acceptance else { return refused(&"missing") };
    let message = acceptance_bytes(&domain.genesis_hash, &address, *expires_at);
    if candidate.verify(&message, &acceptance) { Ok(()) } else { refused(&acceptance) }
}

/// How many open votes the voter has for other candidates, at most as many as it may have.
fn others_of(
    state: &dyn Read,
    voter: &Address,
    candidate: &PublicKey,
) -> Result<usize, StorageError> {
    let from = voter.to_bytes();
    let to = [from.as_slice(), &[0xff; 33]].concat();
    let limit = VALIDATOR_VOTES_MAX.saturating_add(1);
    let rows = view::scan::<ValidatorVotes>(state, Range { from: &from, to: Some(&to), limit })?;
    Ok(rows.iter().filter(|((_, other), _)| other != candidate).count())
}
