//! CALL_APPEAL: doubt the decision of a call (docs/protocol.md section 5.24).
//!
//! Refused with CALL_NOT_FOUND, APPEAL_CLOSED, in this order. No rule looks at the time: a decision can be
//! appealed until it is settled.

use std::fmt::Display;

use types::call::{Appeal, Call, CallChange, CallStatus};
use types::tx::CallAppeal;
use types::{Address, Amount, Code, Event, Params, Rejection, Transaction};

use super::{Cost, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::ledger;
use crate::market::appeal::{self, Stakes};
use crate::market::rankings::Rankings;
use crate::market::{callable, calls, draw};
use crate::rules::Rules;
use crate::tables::{CallMembers, CallQueue, Calls};
use crate::view::{self, Read};
use crate::work;

/// The call as it was, and the appeal.
pub(crate) struct Plan {
    call: Call,
    appellant: Address,
    size: u8,
    stakes: Stakes,
    election: u64,
    least_work: u64,
}

impl Kind for CallAppeal {
    type Plan = Plan;

    /// The least: who is eligible, and so how large the second round is, takes long to find out.
    fn cost(&self, _: &Transaction, state: &dyn Read, _: &Rules) -> Result<Cost, StorageError> {
        let Some(call) = view::get::<Calls>(state, &self.call_id)? else {
            return Ok(Cost::NOTHING);
        };
        if !is_open(&call) {
            return Ok(Cost::NOTHING);
        }
        Ok(Cost { field: "deposit", total: appeal::least_stakes(&call).and_then(Stakes::total) })
    }

    fn rest(plan: &Plan) -> Option<Amount> {
        let least = appeal::least_stakes(&plan.call)?.total()?;
        plan.stakes.total()?.checked_sub(least)
    }

    fn work(plan: &Plan) -> u64 {
        // The call, its members, its place among the elections that wait; and who is eligible is looked for
        // now and at the election.
        work::rows(64).saturating_add(plan.election.saturating_mul(2))
    }

    fn least_work(plan: &Plan) -> u64 {
        plan.least_work
    }

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        let call = calls::find(state, &self.call_id)?;
        let appellant = tx.from();
        if !is_open(&call) {
            let expected = "an appealable call that a group has decided and nobody has appealed";
            return Err(closed(&call, call.status.as_str(), expected).into());
        }
        if view::contains::<CallMembers>(state, &(call.call_id, appellant))? {
            let expected = "nobody that was a member";
            return Err(closed(&call, appellant, expected).into());
        }
        let candidates = draw::candidates_of_appeal(state, ctx, &call, appellant)?;
        let Some(size) = appeal::size(call.committee_size, candidates.len()) else {
            // The second round is of an odd size, as the first was.
            let least = call.committee_size.saturating_add(2);
            let expected = format_args!("at least {least} eligible miners");
            return Err(closed(&call, candidates.len(), expected).into());
        };
        // What is more than any amount of money is refused for the balance.
        let most = Stakes { payment: Amount::MAX, deposit: Amount::MAX };
        let stakes = appeal::stakes(&call, size).unwrap_or(most);
        let (params, executors) = (&ctx.rules.params, callable::executors_of(state, &call)?.len());
        let election = work::election(params, executors, size);
        let least_work = work::least_of_election(params);
        Ok(Plan { call, appellant, size, stakes, election, least_work })
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { mut call, appellant, size, stakes, election: _, least_work: _ } = plan;
        let Stakes { payment, deposit } = stakes;
        let held = payment.checked_add(deposit).ok_or(ledger::OVERFLOW)?;
        ledger::hold(draft, held)?;
        let (call_id, tx) = (call.call_id, ctx.location());
        call.appeal = Some(Appeal { appellant, tx, size, payment, deposit });
        call.status = CallStatus::Electing;
        draft.insert::<CallQueue>(&(tx.height, tx.position), &call_id);
        calls::save(draft, call, None)?;
        let change = CallChange::Appealed { appellant, size, payment, deposit };
        Ok(Event::CallChanged { call_id, change })
    }
}

/// Reads the offers that the check looks at, of a state below the pool's draft.
pub(crate) fn prepare(
    appeal: &CallAppeal,
    state: &dyn Read,
    params: &Params,
    rankings: &Rankings,
) -> Result<(), StorageError> {
    let call = view::get::<Calls>(state, &appeal.call_id)?;
    let Some(call) = call.filter(is_open) else { return Ok(()) };
    for executor in callable::executors_of(state, &call)? {
        rankings.read(state, executor, params)?;
    }
    Ok(())
}

/// Whether the decision of a call can be appealed.
fn is_open(call: &Call) -> bool {
    let has_group = call.last_round().is_some_and(|round| round.group.is_some());
    call.is_appealable
        && call.status.is_decided()
        && !call.is_settled()
        && has_group
        && call.appeal.is_none()
}

fn closed(call: &Call, got: impl Display, expected: impl Display) -> Rejection {
    Rejection::new(Code::AppealClosed, "callId", got, expected).with("callId", call.call_id)
}
