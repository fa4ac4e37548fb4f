//! AGENT_REQUEST: escrow a fee and ask for a run (docs/protocol.md section 5.2).
//!
//! Refused with RUN_ID_MISMATCH, RUN_EXISTS, BLOB_NOT_FOUND, BLOB_NOT_FINAL, and from v8 on INVALID_FIELD,
//! AGENT_NOT_FOUND, AGENT_RETIRED, in this order.

use types::ids::compute_agent_run_id;
use types::params::RUN_BYTES;
use types::tx::{AgentRequest, Protection, RunOfAgent};
use types::{
    Address, Amount, Code, Event, Hash, Rejection, Run, RunAgent, RunProtection, RunStatus,
    Transaction,
};

use super::{Cost, Kind, blobs};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::market::callable::callable;
use crate::rules::Rules;
use crate::tables::{Deadlines, Runs, RunsByConversation, RunsByStatus, RunsBySubmitter};
use crate::view::{self, Read};
use crate::{ledger, runs, work};

/// The run to be created.
pub(crate) struct Plan {
    agent_run_id: Hash,
    conversation_id: Hash,
    submitter: Address,
    max_fee: Amount,
    max_steps: u64,
    protection: Option<RunProtection>,
    agent: Option<RunAgent>,
}

impl Kind for AgentRequest {
    type Plan = Plan;

    /// A request pays for the claim and the settlement of its run, too.
    fn charged_bytes(size: u64) -> u64 {
        size.saturating_add(RUN_BYTES)
    }

    fn cost(&self, _: &Transaction, _: &dyn Read, _: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "maxFee", total: Some(self.max_fee) })
    }

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        let id = self.agent_run_id;
        let derived = compute_agent_run_id(&tx.from_text(), tx.nonce(), &self.prompt);
        if id != derived {
            return Err(Rejection::new(Code::RunIdMismatch, "agentRunId", id, derived).into());
        }
        if view::contains::<Runs>(state, &id)? {
            return Err(Rejection::new(Code::RunExists, "agentRunId", id, "a new id").into());
        }
        let blob = self.prompt_blob_id.iter().map(|id| ("promptBlobId", id));
        blobs::require_final(state, &blob.collect::<Vec<_>>())?;
        Ok(Plan {
            agent_run_id: id,
            conversation_id: self.conversation_id,
            submitter: tx.from(),
            max_fee: self.max_fee,
            max_steps: self.max_steps,
            protection: if ctx.rules.is_v7() { protection(self.protection.get()?) } else { None },
            agent: if ctx.rules.is_v8(ctx.height) {
                agent(state, self.agent.get()?)?
            } else {
                None
            },
        })
    }

    fn work(plan: &Plan) -> u64 {
        // The agent and its version are two more.
        work::rows(if plan.agent.is_some() { 10 } else { 8 })
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let deadline = runs::deadline(ctx.timestamp, ctx.rules.params.pending_ttl_ms)?;
        let run = plan.into_run(ctx, deadline);
        let (id, request) = (run.agent_run_id, run.request);
        ledger::hold(draft, run.max_fee)?;
        draft.put::<Runs>(&id, &run);
        draft.insert::<RunsByStatus>(&runs::status_key(run.status, request), &id);
        draft.insert::<Deadlines>(&runs::deadline_key(deadline, &id), &());
        let place = (request.height, request.position);
        draft.put::<RunsBySubmitter>(&(run.submitter, place.0, place.1), &id);
        draft.put::<RunsByConversation>(&(run.conversation_id, place.0, place.1), &id);
        let Run { agent_run_id, submitter, max_fee: escrow, .. } = run;
        Ok(Event::RunRequested { agent_run_id, submitter, escrow })
    }
}

impl Plan {
    fn into_run(self, ctx: &Context<'_>, deadline: u64) -> Run {
        let Self {
            agent_run_id,
            conversation_id,
            submitter,
            max_fee,
            max_steps,
            protection,
            agent,
        } = self;
        Run {
            agent_run_id,
            conversation_id,
            submitter,
            max_fee,
            max_steps,
            status: RunStatus::Pending,
            miner: None,
            step_count: 0,
            last_step_index: None,
            tokens_out: 0,
            steps_digest: Hash::ZERO,
            settlement: None,
            submitted_at: ctx.timestamp,
            claimed_at: None,
            finished_at: None,
            deadline_at: Some(deadline),
            reopens: 0,
            excluded_miners: Vec::new(),
            request: ctx.location(),
            claim: None,
            finish: None,
            protection,
            locked_bond: None,
            ended_by: None,
            is_refused: false,
            agent,
        }
    }
}

/// The agent that a request names, which must take calls; none if it names none.
fn agent(state: &dyn Read, members: &RunOfAgent) -> Result<Option<RunAgent>, TxError> {
    let (id, version) = match (members.agent_id, &members.agent_version) {
        (None, None) => return Ok(None),
        (Some(id), Some(version)) => (id, version),
        (Some(_), None) => {
            let expected = "the version of agentId";
            return Err(Rejection::invalid("agentVersion", "missing", expected).into());
        }
        (None, Some(_)) => {
            let expected = "the agent of agentVersion";
            return Err(Rejection::invalid("agentId", "missing", expected).into());
        }
    };
    callable(state, &id, version)?;
    Ok(Some(RunAgent { agent_id: id, version: version.clone() }))
}

/// How a request protects its run; none if it says nothing of that.
fn protection(members: &Protection) -> Option<RunProtection> {
    let Protection { miners, claim_bond, max_tokens_per_step, refuse_ms } = members;
    if *members == Protection::default() {
        return None;
    }
    Some(RunProtection {
        miners: miners.iter().flatten().map(|miner| miner.address).collect(),
        claim_bond: claim_bond.unwrap_or(Amount::ZERO),
        max_tokens_per_step: *max_tokens_per_step,
        refuse_ms: refuse_ms.unwrap_or(0),
    })
}
