//! Figures of the chain.

use types::{Amount, RunStatus};

use super::Context;
use crate::error::RpcError;
use crate::ports::{Ports, RunFilter, Slice, Tip};
use crate::wire::StatsView;

/// Blocks, and runs, that [`StatsView`] looks at.
const RECENT: usize = 100;

/// Figures of the chain.
pub(crate) fn stats(context: &Context) -> Result<StatsView, RpcError> {
    let ports = &context.ports;
    let Tip { height, hash, .. } = ports.chain.tip();
    let headers = match height {
        0 => Vec::new(),
        _ => ports.transactions.headers(height, RECENT)?,
    };
    let mut proposers: Vec<_> = headers.iter().map(|(_, header)| header.proposer).collect();
    proposers.sort_unstable();
    proposers.dedup();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    Ok(StatsView {
        height,
        latest_block_hash: hash,
        total_miners: context.census.get(ports)?.miners,
        recent_tx_count: headers.iter().map(|(_, header)| header.tx_count).sum(),
        recent_rewards: recent_rewards(ports, RECENT)?,
        active_proposers: count(proposers.len()),
        p2p_peers: count(ports.network.peers().len()),
    })
}

/// Rewards of the completed runs that were asked for last.
fn recent_rewards(ports: &Ports, runs: usize) -> Result<Amount, RpcError> {
    let filter = RunFilter { status: Some(RunStatus::Completed), ..RunFilter::default() };
    // Nothing but the records is read; where the node began later, their texts are missing.
    let runs = match ports.runs.list(&filter, None, runs) {
        Ok(Slice { items, .. }) => items,
        Err(fault) if fault.missing.is_some() => Vec::new(),
        Err(fault) => return Err(fault.into()),
    };
    let rewards = runs.iter().filter_map(|run| run.settlement).map(|it| it.miner_reward);
    let sum = rewards.into_iter().try_fold(Amount::ZERO, Amount::checked_add);
    sum.ok_or(RpcError::Internal)
}
