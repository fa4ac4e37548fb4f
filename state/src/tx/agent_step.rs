//! AGENT_STEP: a miner reports one model iteration (docs/protocol.md section 5.4).
//!
//! Refused with RUN_NOT_FOUND, RUN_NOT_ACTIVE, NOT_RUN_MINER, STEP_OUT_OF_ORDER, STEP_LIMIT,
//! TOKENS_LIMIT, ESCROW_EXHAUSTED, in this order.

use types::params::{AGENT_NETWORK_FEE_PER_STEP, RUN_BYTES};
use types::tx::AgentStep;
use types::{
    Address, Amount, Code, Event, Hash, Params, Rejection, Run, RunStatus, Step, Transaction,
};

use super::Kind;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::runs;
use crate::tables::Steps;
use crate::view::Read;
use crate::work;

/// The run with the step counted in, and the step.
pub(crate) struct Plan {
    run: Run,
    miner: Address,
    step_index: u64,
    output_tokens: u64,
}

impl Kind for AgentStep {
    type Plan = Plan;

    fn charged_bytes(size: u64) -> u64 {
        size.saturating_sub(RUN_BYTES)
    }

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        let mut run = runs::find(state, &self.agent_run_id)?;
        runs::require_worker(&run, tx.from())?;
        check_index(&run, self.step_index)?;
        run.tokens_out = add_tokens(&run, self.output_tokens, &ctx.rules.params)?;
        run.step_count = add_step(&run)?;
        run.last_step_index = Some(self.step_index);
        run.steps_digest = extend_digest(&run.steps_digest, &tx.hash());
        let (step_index, output_tokens) = (self.step_index, self.output_tokens);
        Ok(Plan { run, miner: tx.from(), step_index, output_tokens })
    }

    fn work(plan: &Plan) -> u64 {
        work::run(&plan.run).saturating_add(work::rows(6))
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { run, miner, step_index, output_tokens } = plan;
        let agent_run_id = run.agent_run_id;
        let deadline = runs::deadline(ctx.timestamp, ctx.rules.params.step_ttl_ms)?;
        let (tx, timestamp) = (ctx.location(), ctx.timestamp);
        let step = Step { step_index, output_tokens, tx, timestamp };
        draft.put::<Steps>(&(agent_run_id, step_index), &step);
        runs::count(draft, miner, |figures| {
            figures.tokens = figures.tokens.saturating_add(output_tokens);
        })?;
        runs::save(draft, run, RunStatus::Running, Some(deadline));
        Ok(Event::RunStepped { agent_run_id, miner, step_index, output_tokens })
    }
}

/// `sha256(digest ‖ transaction hash)`: binds a run to its steps, in order.
fn extend_digest(digest: &Hash, tx_hash: &Hash) -> Hash {
    Hash::digest_parts(&[digest.as_bytes(), tx_hash.as_bytes()])
}

fn check_index(run: &Run, index: u64) -> Result<(), Rejection> {
    if let Some(last) = run.last_step_index.filter(|last| index <= *last) {
        let expected = format_args!("more than {last}, the last one");
        return Err(Rejection::new(Code::StepOutOfOrder, "stepIndex", index, expected));
    }
    if index >= run.max_steps {
        let expected = format_args!("less than {}, the run's maxSteps", run.max_steps);
        return Err(Rejection::new(Code::StepLimit, "stepIndex", index, expected));
    }
    Ok(())
}

fn add_tokens(run: &Run, tokens: u64, params: &Params) -> Result<u64, Rejection> {
    let own = run.protection.as_ref().and_then(|protection| protection.max_tokens_per_step);
    let max = own.unwrap_or(u64::MAX).min(params.max_output_tokens_per_step);
    match run.tokens_out.checked_add(tokens) {
        Some(sum) if tokens <= max => Ok(sum),
        _ => {
            let expected = format_args!("at most {max}");
            Err(Rejection::new(Code::TokensLimit, "outputTokens", tokens, expected))
        }
    }
}

fn add_step(run: &Run) -> Result<u64, TxError> {
    const MANY: StorageError = StorageError::Inconsistent { what: "a run's steps overflow" };
    let count = run.step_count.checked_add(1).ok_or(MANY)?;
    let fee = Amount::new(count).checked_mul(AGENT_NETWORK_FEE_PER_STEP).ok_or(MANY)?;
    if fee <= run.max_fee {
        return Ok(count);
    }
    let expected = format_args!("at most {}, the run's maxFee", run.max_fee);
    Err(Rejection::new(Code::EscrowExhausted, "networkFee", fee, expected)
        .with("stepCount", count)
        .into())
}
