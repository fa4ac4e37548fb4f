//! AGENT_CLAIM: a miner takes a pending run (docs/protocol.md section 5.3).
//!
//! Refused with RUN_NOT_FOUND, RUN_NOT_PENDING, MINER_EXCLUDED, MINER_NOT_ALLOWED, BOND_TOO_SMALL, in
//! this order.

use types::params::RUN_BYTES;
use types::tx::AgentClaim;
use types::{Address, Amount, Code, Event, Rejection, Run, RunProtection, RunStatus, Transaction};

use super::Kind;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::tables::RunsByMiner;
use crate::view::Read;
use crate::{bonds, runs, work};

/// The run as it was, and who takes it.
pub(crate) struct Plan {
    run: Run,
    miner: Address,
}

impl Kind for AgentClaim {
    type Plan = Plan;

    fn charged_bytes(size: u64) -> u64 {
        size.saturating_sub(RUN_BYTES)
    }

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let run = runs::find(state, &self.agent_run_id)?;
        runs::require_pending(&run)?;
        let miner = tx.from();
        if run.excluded_miners.contains(&miner) {
            let expected = "a miner that has not let a claim of this run lapse or given it up";
            return Err(Rejection::new(Code::MinerExcluded, "minerAddress", miner, expected)
                .with("agentRunId", run.agent_run_id)
                .into());
        }
        if let Some(protection) = &run.protection {
            check_protection(state, &run, protection, miner)?;
        }
        Ok(Plan { run, miner })
    }

    fn work(plan: &Plan) -> u64 {
        work::run(&plan.run).saturating_add(work::rows(6))
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { mut run, miner } = plan;
        let agent_run_id = run.agent_run_id;
        let deadline = runs::deadline(ctx.timestamp, ctx.rules.params.claim_ttl_ms)?;
        run.miner = Some(miner);
        run.claimed_at = Some(ctx.timestamp);
        run.claim = Some(ctx.location());
        let bond = run.protection.as_ref().map(|protection| protection.claim_bond);
        run.locked_bond = bond.filter(|bond| !bond.is_zero());
        bonds::lock(draft, miner, run.locked_bond.unwrap_or(Amount::ZERO))?;
        let place = (miner, run.request.height, run.request.position);
        draft.put::<RunsByMiner>(&place, &agent_run_id);
        runs::count(draft, miner, |figures| figures.claimed = figures.claimed.saturating_add(1))?;
        runs::save(draft, run, RunStatus::Claimed, Some(deadline));
        Ok(Event::RunClaimed { agent_run_id, miner })
    }
}

/// What the submitter of a protected run asks of whoever claims it.
fn check_protection(
    state: &dyn Read,
    run: &Run,
    protection: &RunProtection,
    miner: Address,
) -> Result<(), TxError> {
    let RunProtection { miners, claim_bond, .. } = protection;
    if !miners.is_empty() && !miners.contains(&miner) {
        let expected = format_args!("one of the {} miners that the submitter named", miners.len());
        return Err(Rejection::new(Code::MinerNotAllowed, "minerAddress", miner, expected)
            .with("agentRunId", run.agent_run_id)
            .into());
    }
    runs::require_bond(state, miner, "claimBond", *claim_bond)
}
