//! CALL_COMMIT: a member hides its answer (docs/protocol.md section 5.22).
//!
//! Refused with CALL_NOT_FOUND, NOT_MEMBER, CALL_PHASE, COMMIT_EXISTS, in this order.

use types::call::{Call, CallChange, CallMember, CallStatus, Commitment};
use types::tx::CallCommit;
use types::{Address, Code, Event, Hash, Rejection, Transaction};

use super::{Inclusion, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::market::{calls, offers};
use crate::tables::{Bonds, CallMembers, Calls};
use crate::view::{self, Read};
use crate::work;

/// The call and the member as they were.
pub(crate) struct Plan {
    call: Call,
    miner: Address,
    member: CallMember,
    commitment: Hash,
}

impl Kind for CallCommit {
    type Plan = Plan;

    const INCLUSION: Inclusion = Inclusion::Floor;

    fn work(_: &Plan) -> u64 {
        work::member()
    }

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let call = calls::find(state, &self.call_id)?;
        let miner = tx.from();
        let member = calls::member(state, &call, self.round, miner)?;
        if call.status != CallStatus::Committing || !calls::is_of_last_round(&call, &member) {
            return Err(calls::wrong_phase(&call, "committing").into());
        }
        if let Some(earlier) = member.commitment {
            let expected = "no commitment before";
            return Err(Rejection::new(Code::CommitExists, "commitment", earlier.hash, expected)
                .with("callId", call.call_id)
                .into());
        }
        Ok(Plan { call, miner, member, commitment: self.commitment })
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        const NO_ROUND: StorageError =
            StorageError::Inconsistent { what: "a member of a call without a round" };
        let Plan { mut call, miner, mut member, commitment: hash } = plan;
        let call_id = call.call_id;
        member.commitment = Some(Commitment { hash, tx: ctx.location() });
        draft.put::<CallMembers>(&(call_id, miner), &member);
        let round = call.rounds.last_mut().ok_or(NO_ROUND)?;
        round.committed = round.committed.saturating_add(1);
        if round.committed == round.members {
            draft.note_call(call_id);
        }
        draft.put::<Calls>(&call_id, &call);
        let change = CallChange::Committed { round: member.round, member: miner };
        Ok(Event::CallChanged { call_id, change })
    }
}

/// Whether a commitment that is refused with NOT_MEMBER may be taken once the members of its round are
/// drawn: the call waits for that election, and its sender is a bonded miner that could be drawn.
pub(super) fn is_early(
    commit: &CallCommit,
    sender: Address,
    state: &dyn Read,
) -> Result<bool, StorageError> {
    let Some(call) = view::get::<Calls>(state, &commit.call_id)? else { return Ok(false) };
    let appellant = call.appeal.map(|appeal| appeal.appellant);
    if call.status != CallStatus::Electing
        || usize::try_from(commit.round) != Ok(call.rounds.len())
        || sender == call.requester
        || appellant == Some(sender)
        || view::contains::<CallMembers>(state, &(call.call_id, sender))?
    {
        return Ok(false);
    }
    let bond = view::get::<Bonds>(state, &sender)?.unwrap_or_default();
    Ok(bond.bonded >= call.terms.min_bond && offers::count(state, sender)? > 0)
}
