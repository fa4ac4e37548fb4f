//! AGENT_REFUSE: the submitter of a run refuses the reward that is held for it (docs/protocol.md section
//! 5.16). No rule looks at the time: a reward can be refused until it has been paid.
//!
//! Refused with RUN_NOT_FOUND, REFUSE_CLOSED, NOT_SUBMITTER, in this order.

use types::tx::AgentRefuse;
use types::{Amount, Code, Event, Rejection, Run, Settlement, Transaction};

use super::{Cost, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::market::offers;
use crate::rules::Rules;
use crate::view::Read;
use crate::{bonds, ledger, runs, work};

/// The run as it was, and what refusing burns of the submitter's balance.
pub(crate) struct Plan {
    run: Run,
    stake: Amount,
    /// How many offers of the miner move because a part of its bond is burned.
    offers: u32,
}

impl Kind for AgentRefuse {
    type Plan = Plan;

    fn work(plan: &Plan) -> u64 {
        // The run, the supply, the figures of both sides, and the bond at the end of the block.
        let run = work::run(&plan.run).saturating_add(work::rows(4));
        run.saturating_add(work::moved_offers(plan.offers))
    }

    fn cost(&self, _: &Transaction, _: &dyn Read, rules: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "refuseStake", total: Some(rules.params.refuse_stake) })
    }

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        let run = runs::find(state, &self.agent_run_id)?;
        if !run.is_held() {
            let expected = "a run that has ended and whose reward is held";
            return Err(Rejection::new(
                Code::RefuseClosed,
                "status",
                run.status.as_str(),
                expected,
            )
            .with("agentRunId", run.agent_run_id)
            .into());
        }
        runs::require_submitter(&run, tx.from())?;
        let offers = match run.miner.filter(|_| run.locked_bond.is_some()) {
            Some(miner) => offers::count(state, miner)?,
            None => 0,
        };
        Ok(Plan { run, stake: ctx.rules.params.refuse_stake, offers })
    }

    fn apply(plan: Plan, draft: &mut Draft, _: &Context<'_>) -> Result<Event, StorageError> {
        const UNSETTLED: StorageError =
            StorageError::Inconsistent { what: "a held run has no settlement or no miner" };
        let Plan { mut run, stake, offers: _ } = plan;
        let Some((miner, settlement)) = run.miner.zip(run.settlement) else {
            return Err(UNSETTLED);
        };
        let Settlement { miner_reward: amount, .. } = settlement;
        ledger::burn(draft, stake)?;
        ledger::release(draft, amount)?;
        ledger::burn(draft, amount)?;
        let penalty = amount.checked_add(stake).ok_or(ledger::OVERFLOW)?;
        bonds::release(draft, &mut run, penalty);
        runs::count(draft, miner, |figures| figures.refused = figures.refused.saturating_add(1))?;
        runs::count_submitter(draft, run.submitter, |figures| {
            figures.refused = figures.refused.saturating_add(1);
        })?;
        run.is_refused = true;
        let (agent_run_id, submitter, status) = (run.agent_run_id, run.submitter, run.status);
        runs::save(draft, run, status, None);
        Ok(Event::RewardRefused { agent_run_id, submitter, miner, status, amount })
    }
}
