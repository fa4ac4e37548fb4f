//! How a run's escrow is divided (docs/protocol.md sections 5.5 and 5.7). The one place that knows:
//! AGENT_FINISH, the sweep and the query `ombra_settlement` all ask here.

use types::params::{AGENT_NETWORK_FEE_PER_STEP, AGENT_REWARD_PER_TOKEN};
use types::{Amount, Run, Settlement};

use crate::error::StorageError;

/// What AGENT_FINISH must state about a run with the steps recorded so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Totals {
    /// The sum of `outputTokens`.
    pub total_tokens_out: u64,
    /// Recorded steps.
    pub step_count: u64,
    /// The three parts of the escrow.
    pub settlement: Settlement,
}

/// What the miner is owed now: the network fee of the recorded steps is burned, then a reward per
/// token as far as the escrow reaches, the rest goes back.
///
/// # Errors
/// [`StorageError::Inconsistent`] if the recorded steps cost more than the escrow, which
/// ESCROW_EXHAUSTED rules out.
pub fn settlement(run: &Run) -> Result<Totals, StorageError> {
    let (network_fee, rest) = network_fee(run)?;
    let earned = Amount::new(run.tokens_out).checked_mul(AGENT_REWARD_PER_TOKEN);
    let miner_reward = earned.unwrap_or(Amount::MAX).min(rest);
    let user_refund = rest.checked_sub(miner_reward).ok_or(BROKEN)?;
    Ok(Totals {
        total_tokens_out: run.tokens_out,
        step_count: run.step_count,
        settlement: Settlement { miner_reward, user_refund, network_fee },
    })
}

/// What an ending without the miner's work gives back: everything but the network fee of the
/// recorded steps. For AGENT_CANCEL and for deadlines.
pub(crate) fn refund(run: &Run) -> Result<Settlement, StorageError> {
    let (network_fee, user_refund) = network_fee(run)?;
    Ok(Settlement { miner_reward: Amount::ZERO, user_refund, network_fee })
}

const BROKEN: StorageError =
    StorageError::Inconsistent { what: "the steps of a run cost more than its escrow" };

fn network_fee(run: &Run) -> Result<(Amount, Amount), StorageError> {
    let fee = Amount::new(run.step_count).checked_mul(AGENT_NETWORK_FEE_PER_STEP).ok_or(BROKEN)?;
    let rest = run.max_fee.checked_sub(fee).ok_or(BROKEN)?;
    Ok((fee, rest))
}
