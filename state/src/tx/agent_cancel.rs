//! AGENT_CANCEL: the submitter takes a pending run back (docs/protocol.md section 5.6).
//!
//! Refused with RUN_NOT_FOUND, RUN_NOT_PENDING, NOT_SUBMITTER, in this order.

use types::tx::AgentCancel;
use types::{Ender, Event, Run, RunStatus, Transaction};

use super::Kind;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::view::Read;
use crate::{runs, settlement, work};

/// The run as it was.
pub(crate) struct Plan {
    run: Run,
}

impl Kind for AgentCancel {
    type Plan = Plan;

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let run = runs::find(state, &self.agent_run_id)?;
        runs::require_pending(&run)?;
        runs::require_submitter(&run, tx.from())?;
        Ok(Plan { run })
    }

    fn work(plan: &Plan) -> u64 {
        work::run(&plan.run).saturating_add(work::rows(4))
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { mut run } = plan;
        let Run { agent_run_id, submitter, .. } = run;
        let settlement = settlement::refund(&run)?;
        run.finish = Some(ctx.location());
        let by = ctx.rules.is_v7().then_some(Ender::Submitter);
        let (status, timestamp) = (RunStatus::Cancelled, ctx.timestamp);
        let end = runs::End { status, settlement, timestamp, by, held_until: None };
        runs::end(draft, run, end)?;
        Ok(Event::RunCancelled { agent_run_id, submitter, settlement })
    }
}
