//! The chain: where it stands, its validators, its money.

use super::Context;
use crate::error::RpcError;
use crate::ports::{Ports, Tip};
use crate::wire::{BlockName, ChainInfo, Forks, HeightView, SupplyView, ValidatorView};

/// The name of the protocol that this node follows.
const PROTOCOL: &str = "ombra-v6";

/// What chain this is and where it stands.
pub(crate) fn chain_info(context: &Context) -> Result<ChainInfo, RpcError> {
    let Context { facts, ports, .. } = context;
    let Tip { height, hash, timestamp, earliest, events_from } = ports.chain.tip();
    let validators = ports.chain.validators(height.max(1))?;
    let rules = ports.rules.next_rules()?;
    Ok(ChainInfo {
        chain_id: facts.chain_id.clone(),
        protocol: PROTOCOL.to_owned(),
        genesis_hash: facts.genesis_hash,
        height,
        latest_block_hash: hash,
        latest_block_time: timestamp,
        earliest_block: earliest,
        events_from,
        syncing: ports.network.is_syncing(),
        peers: ports.network.peers().len(),
        validators: validators.map_or(0, |all| all.len()),
        forks: Forks::from(types::Forks { v7: rules.v7_from, v8: rules.v8_from, ..facts.forks }),
        params: facts.params.clone(),
        version: facts.version.clone(),
    })
}

/// How high the chain is.
pub(crate) fn height(ports: &Ports) -> HeightView {
    let Tip { height, hash, timestamp, .. } = ports.chain.tip();
    HeightView { height, latest_block: BlockName { index: height, hash, timestamp } }
}

/// The validators of a height; of the latest block if none is given.
pub(crate) fn validators(
    ports: &Ports,
    height: Option<u64>,
) -> Result<Vec<ValidatorView>, RpcError> {
    let height = height.unwrap_or_else(|| ports.chain.tip().height).max(1);
    let validators = ports.chain.validators(height)?;
    let validators = validators.ok_or_else(|| RpcError::not_found("height", height))?;
    Ok(validators.into_iter().map(ValidatorView::from).collect())
}

/// The counters of the supply.
pub(crate) fn supply(ports: &Ports) -> Result<SupplyView, RpcError> {
    let supply = ports.accounts.supply()?;
    SupplyView::new(&supply).ok_or_else(|| {
        tracing::error!(?supply, "the counters of the supply contradict each other");
        RpcError::Internal
    })
}
