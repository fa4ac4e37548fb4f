//! CALL_REVEAL: a member shows the answer that it committed to (docs/protocol.md section 5.23).
//!
//! Refused with CALL_NOT_FOUND, NOT_MEMBER, CALL_PHASE, CALL_LIMITS, REVEAL_EXISTS, REVEAL_MISMATCH, in this
//! order.

use types::call::{Answer, Call, CallChange, CallMember, CallStatus, Reveal};
use types::ids::{Committer, compute_commitment};
use types::tx::CallReveal;
use types::{Address, Code, Event, Rejection, Transaction};

use super::{Inclusion, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::market::calls;
use crate::tables::{CallMembers, Calls};
use crate::view::{self, Read};
use crate::work;

/// The call and the member as they were.
pub(crate) struct Plan {
    call: Call,
    miner: Address,
    member: CallMember,
    answer: Answer,
}

impl Kind for CallReveal {
    type Plan = Plan;

    const INCLUSION: Inclusion = Inclusion::Floor;

    fn work(_: &Plan) -> u64 {
        work::member()
    }

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let call = calls::find(state, &self.call_id)?;
        let miner = tx.from();
        let member = calls::member(state, &call, self.round, miner)?;
        if call.status != CallStatus::Revealing || !calls::is_of_last_round(&call, &member) {
            return Err(calls::wrong_phase(&call, "revealing").into());
        }
        let answer = opened(self, &call, miner, &member)?;
        Ok(Plan { call, miner, member, answer })
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        const NO_ROUND: StorageError =
            StorageError::Inconsistent { what: "a member of a call without a round" };
        let Plan { mut call, miner, mut member, answer } = plan;
        let call_id = call.call_id;
        member.reveal = Some(Reveal { answer, tx: ctx.location() });
        draft.put::<CallMembers>(&(call_id, miner), &member);
        let round = call.rounds.last_mut().ok_or(NO_ROUND)?;
        round.revealed = round.revealed.saturating_add(1);
        if round.revealed == round.committed {
            draft.note_call(call_id);
        }
        draft.put::<Calls>(&call_id, &call);
        let change = CallChange::Revealed { round: member.round, member: miner, answer };
        Ok(Event::CallChanged { call_id, change })
    }
}

/// Whether a reveal that is refused with CALL_PHASE would be taken once its round reveals: its sender is a
/// member that has committed to this very answer, and members still commit.
pub(super) fn is_early(
    reveal: &CallReveal,
    sender: Address,
    state: &dyn Read,
) -> Result<bool, StorageError> {
    let Some(call) = view::get::<Calls>(state, &reveal.call_id)? else { return Ok(false) };
    let Some(member) = view::get::<CallMembers>(state, &(call.call_id, sender))? else {
        return Ok(false);
    };
    if call.status != CallStatus::Committing
        || u64::from(member.round) != reveal.round
        || !calls::is_of_last_round(&call, &member)
    {
        return Ok(false);
    }
    match opened(reveal, &call, sender, &member) {
        Ok(_) => Ok(true),
        Err(TxError::Rejected(_)) => Ok(false),
        Err(TxError::Storage(fault)) => Err(fault),
    }
}

/// The answer that a reveal shows, or what is wrong with it in whatever phase the call is.
fn opened(
    reveal: &CallReveal,
    call: &Call,
    miner: Address,
    member: &CallMember,
) -> Result<Answer, TxError> {
    const UNREAD: StorageError =
        StorageError::Inconsistent { what: "a reveal without an outcome was checked" };
    check_length(reveal, call)?;
    if let Some(earlier) = member.reveal {
        let expected = "no reveal before";
        let got = earlier.answer.outcome.as_str();
        return Err(Rejection::new(Code::RevealExists, "outcome", got, expected)
            .with("callId", call.call_id)
            .into());
    }
    let answer = reveal.answer().ok_or(UNREAD)?;
    let by = Committer { call_id: call.call_id, round: reveal.round, member: miner };
    let opens = compute_commitment(&by, &reveal.salt, &answer);
    match member.commitment {
        Some(commitment) if commitment.hash == opens => Ok(answer),
        Some(commitment) => {
            let expected = commitment.hash;
            let rejection = Rejection::new(Code::RevealMismatch, "commitment", opens, expected);
            Err(rejection.with("callId", call.call_id).into())
        }
        None => {
            let expected = "a commitment that it opens";
            let rejection = Rejection::new(Code::RevealMismatch, "commitment", "none", expected);
            Err(rejection.with("callId", call.call_id).into())
        }
    }
}

/// CALL_LIMITS for a result that is longer than the call allows.
fn check_length(reveal: &CallReveal, call: &Call) -> Result<(), Rejection> {
    let bytes = u64::try_from(reveal.result.0.len()).unwrap_or(u64::MAX);
    let most = call.limits.result_bytes;
    if bytes <= most {
        return Ok(());
    }
    let expected = format_args!("at most {most} bytes, the call's resultBytes");
    Err(Rejection::new(Code::CallLimits, "result", format_args!("{bytes} bytes"), expected)
        .with("callId", call.call_id))
}
