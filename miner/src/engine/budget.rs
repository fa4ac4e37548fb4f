//! What a run can pay for (docs/protocol.md sections 5.4 and 5.5). Pure.

use types::params::{AGENT_NETWORK_FEE_PER_STEP, AGENT_REWARD_PER_TOKEN};
use types::tx::AgentFinish;
use types::{Amount, RunStatus};

use crate::chain::RunView;
use crate::ports::Ending;

/// The most tokens that the next step may put out, so that all of them are paid: what is left of the
/// escrow after the tokens so far and the fees of all steps and this one. None if that is nothing.
#[must_use]
pub fn output_tokens_max(run: &RunView) -> Option<u64> {
    let steps = run.steps.saturating_add(1);
    let fees = steps.saturating_mul(AGENT_NETWORK_FEE_PER_STEP);
    let earned = run.tokens.saturating_mul(AGENT_REWARD_PER_TOKEN);
    let left = run.max_fee_micro.checked_sub(fees)?.checked_sub(earned)?;
    let tokens = left / AGENT_REWARD_PER_TOKEN;
    (tokens > 0).then_some(tokens)
}

/// What the requester of a run reads whose model put nothing out.
const SILENT: &str = "the model said nothing";

/// How a run may end with the steps that are recorded. Where the model put no token out, the run is not
/// completed: the chain takes that for an answer without any work, and burns all that the claim has
/// locked of the bond (docs/protocol.md section 5.5).
#[must_use]
pub fn honest(run: &RunView, ending: Ending) -> Ending {
    if ending.status == RunStatus::Completed && run.tokens == 0 {
        return Ending::without_answer(RunStatus::Failed, SILENT);
    }
    ending
}

/// The settlement that the recorded steps of a run give. The three parts add up to its escrow.
#[must_use]
pub fn finish(run: &RunView, ending: &Ending) -> AgentFinish {
    let fees = run.steps.saturating_mul(AGENT_NETWORK_FEE_PER_STEP).min(run.max_fee_micro);
    let rest = run.max_fee_micro.saturating_sub(fees);
    let reward = run.tokens.saturating_mul(AGENT_REWARD_PER_TOKEN).min(rest);
    AgentFinish {
        agent_run_id: run.id,
        total_tokens_out: run.tokens,
        status: ending.status.as_str().to_owned(),
        miner_reward: Amount::new(reward),
        user_refund: Amount::new(rest.saturating_sub(reward)),
        network_fee: Amount::new(fees),
        final_answer_inline: ending.answer.clone().filter(|answer| !answer.is_empty()),
        final_answer_blob_id: None,
    }
}

/// Milliseconds until work on a run must stop, so that its end is on the chain before the deadline;
/// 0 if that is now, none if there is no deadline.
#[must_use]
pub fn time_left_ms(run: &RunView, now_ms: u64, margin_ms: u64) -> Option<u64> {
    Some(run.deadline_ms?.saturating_sub(margin_ms).saturating_sub(now_ms))
}
