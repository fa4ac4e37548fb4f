//! AGENT_FINISH: the miner settles the run (docs/protocol.md section 5.5).
//!
//! Refused with RUN_NOT_FOUND, RUN_NOT_ACTIVE, NOT_RUN_MINER, SETTLEMENT_MISMATCH, BLOB_NOT_FOUND,
//! BLOB_NOT_FINAL, in this order.

use types::params::{AGENT_NETWORK_FEE_PER_STEP, RUN_BYTES};
use types::tx::AgentFinish;
use types::{
    Address, Amount, Code, Ender, Event, Rejection, Run, RunStatus, Settlement, Transaction,
};

use super::{Kind, blobs};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::market::offers;
use crate::settlement::{Totals, settlement};
use crate::view::Read;
use crate::{bonds, runs, work};

/// What it costs a miner to give a run up before its first step: as much as a step costs the submitter.
const GIVING_UP: Amount = Amount::new(AGENT_NETWORK_FEE_PER_STEP);

/// The run as it was, and how it ends.
pub(crate) struct Plan {
    run: Run,
    miner: Address,
    status: RunStatus,
    settlement: Settlement,
    /// How many offers of the miner move because a part of its bond is burned.
    offers: u32,
}

impl Kind for AgentFinish {
    type Plan = Plan;

    fn charged_bytes(size: u64) -> u64 {
        size.saturating_sub(RUN_BYTES)
    }

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let run = runs::find(state, &self.agent_run_id)?;
        runs::require_worker(&run, tx.from())?;
        let totals = settlement(&run)?;
        check_sum(self, &run, &totals)?;
        check_parts(self, &totals)?;
        let blob = self.final_answer_blob_id.iter().map(|id| ("finalAnswerBlobId", id));
        blobs::require_final(state, &blob.collect::<Vec<_>>())?;
        let status = RunStatus::parse(&self.status).filter(|status| status.is_terminal());
        let status = status.ok_or_else(|| {
            Rejection::invalid("status", &self.status, "a status in which a run ends")
        })?;
        let miner = tx.from();
        let is_burned = !burned(&run, status).is_zero();
        let offers = if is_burned { offers::count(state, miner)? } else { 0 };
        Ok(Plan { run, miner, status, settlement: totals.settlement, offers })
    }

    fn work(plan: &Plan) -> u64 {
        let run = work::run(&plan.run).saturating_add(work::rows(6));
        run.saturating_add(work::moved_offers(plan.offers))
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { mut run, miner, status, settlement, offers: _ } = plan;
        let Run { agent_run_id, submitter, .. } = run;
        let burned = burned(&run, status);
        if is_empty(&run, status) {
            bonds::release(draft, &mut run, burned);
        } else if run.step_count == 0 && run.locked_bond.is_some() {
            bonds::release(draft, &mut run, burned);
            let params = &ctx.rules.params;
            if runs::can_reopen(&run, params) {
                runs::count(draft, miner, |figures| {
                    figures.timed_out = figures.timed_out.saturating_add(1);
                })?;
                run.excluded_miners.push(miner);
                runs::reopen(draft, run, params, ctx.timestamp)?;
                return Ok(Event::RunGivenBack { agent_run_id, miner });
            }
        }
        runs::count(draft, miner, |figures| {
            let ended = match status {
                RunStatus::Completed => &mut figures.completed,
                RunStatus::Timeout => &mut figures.timed_out,
                RunStatus::Failed
                | RunStatus::InsufficientFunds
                | RunStatus::Cancelled
                // Not the end of a run, which was checked.
                | RunStatus::Pending
                | RunStatus::Claimed
                | RunStatus::Running => &mut figures.failed,
            };
            *ended = ended.saturating_add(1);
        })?;
        let held_until = held_until(&run, ctx.timestamp)?;
        if held_until.is_none() {
            bonds::release(draft, &mut run, Amount::ZERO);
        }
        run.finish = Some(ctx.location());
        let by = ctx.rules.is_v7().then_some(Ender::Miner);
        let timestamp = ctx.timestamp;
        runs::end(draft, run, runs::End { status, settlement, timestamp, by, held_until })?;
        match held_until {
            None => {
                runs::earn(draft, miner, settlement.miner_reward)?;
                Ok(Event::RunFinished { agent_run_id, submitter, miner, status, settlement })
            }
            Some(until) => {
                runs::count_submitter(draft, submitter, |figures| {
                    figures.held = figures.held.saturating_add(1);
                })?;
                Ok(Event::RunHeld { agent_run_id, submitter, miner, status, settlement, until })
            }
        }
    }
}

/// An answer without any work.
fn is_empty(run: &Run, status: RunStatus) -> bool {
    status == RunStatus::Completed && run.tokens_out == 0
}

/// What is burned of the bond that is locked for a run which its miner ends so.
fn burned(run: &Run, status: RunStatus) -> Amount {
    let locked = run.locked_bond.unwrap_or(Amount::ZERO);
    if is_empty(run, status) {
        locked
    } else if run.step_count == 0 {
        locked.min(GIVING_UP)
    } else {
        Amount::ZERO
    }
}

/// Until when the reward of a run that ends now is held; none if its submitter did not ask for that.
fn held_until(run: &Run, timestamp: u64) -> Result<Option<u64>, StorageError> {
    let refuse_ms = run.protection.as_ref().map_or(0, |protection| protection.refuse_ms);
    if refuse_ms == 0 { Ok(None) } else { runs::deadline(timestamp, refuse_ms).map(Some) }
}

/// The published rule comes first: the three parts sum up to the escrow.
fn check_sum(body: &AgentFinish, run: &Run, totals: &Totals) -> Result<(), Rejection> {
    let sum = body
        .miner_reward
        .checked_add(body.user_refund)
        .and_then(|sum| sum.checked_add(body.network_fee));
    if sum == Some(run.max_fee) {
        return Ok(());
    }
    let got = sum.map_or_else(|| "more than 18446744073709551615".to_owned(), |s| s.to_string());
    Err(mismatch("minerReward + userRefund + networkFee", &got, &run.max_fee.to_string(), totals))
}

/// The amounts are those that the recorded steps give.
fn check_parts(body: &AgentFinish, totals: &Totals) -> Result<(), Rejection> {
    let Settlement { miner_reward, user_refund, network_fee } = totals.settlement;
    if body.total_tokens_out != totals.total_tokens_out {
        let (got, expected) = (body.total_tokens_out, totals.total_tokens_out);
        return Err(mismatch("totalTokensOut", &got.to_string(), &expected.to_string(), totals));
    }
    let amounts = [
        ("networkFee", body.network_fee, network_fee),
        ("minerReward", body.miner_reward, miner_reward),
        ("userRefund", body.user_refund, user_refund),
    ];
    match amounts.into_iter().find(|(_, got, expected)| got != expected) {
        None => Ok(()),
        Some((field, got, expected)) => {
            Err(mismatch(field, &got.to_string(), &expected.to_string(), totals))
        }
    }
}

fn mismatch(field: &'static str, got: &str, expected: &str, totals: &Totals) -> Rejection {
    let Totals { total_tokens_out, step_count, settlement } = totals;
    Rejection::new(Code::SettlementMismatch, field, got, expected)
        .with("totalTokensOut", total_tokens_out)
        .with("stepCount", step_count)
        .with("minerReward", settlement.miner_reward)
        .with("userRefund", settlement.user_refund)
        .with("networkFee", settlement.network_fee)
}
