//! The network for transactions and blocks: what it is made of, and its start.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use super::Parts;
use crate::adapters::blocks::ServedChain;
use crate::adapters::gossip::{self, GossipPool};
use crate::config::Config;
use crate::engine;
use crate::fault::NodeFault;
use crate::ingest::IngestHandle;
use crate::not_started::StartError;
use crate::supervisor::Supervisor;
use crate::sync::Watch;

fn comparison(parts: &Parts, config: &Config, network: p2p::Handle) -> Watch {
    Watch {
        chain: Arc::clone(&parts.chain),
        state: Arc::clone(&parts.sync),
        network,
        stalled_after: Duration::from_millis(config.sync.stalled_ms),
    }
}

/// What the network for transactions is started with.
pub(super) fn setup(
    parts: &Parts,
    config: &Config,
    node_key: [u8; 32],
    ingest: IngestHandle,
) -> p2p::Setup {
    let (chain, pool) = (Arc::clone(&parts.chain), Arc::clone(&parts.pool));
    let spec = parts.chain.spec();
    let params = spec.params();
    let longest = params.max_tx_bytes.max(params.max_chunk_tx_bytes);
    p2p::Setup {
        network: p2p::NetworkId::new(spec.rules.chain_id.clone(), spec.genesis_hash),
        config: config.p2p.gossip.clone(),
        node_key,
        chain: Arc::new(ServedChain(Arc::clone(&chain))),
        block_bytes_max: engine::block_bytes_max(params),
        pool: Arc::new(GossipPool::new(chain, pool, ingest, Arc::clone(&parts.sync))),
        tx_bytes_max: usize::try_from(longest).unwrap_or(usize::MAX),
    }
}

/// Starts the network for transactions and blocks if there is to be one, its counters, and what compares the
/// node with its peers.
pub(super) async fn start(
    setup: Option<p2p::Setup>,
    (parts, config): (&Parts, &Config),
    registry: &mut Registry,
    (supervisor, stop): (&mut Supervisor, &CancellationToken),
) -> Result<Option<p2p::Handle>, StartError> {
    let Some(setup) = setup else { return Ok(None) };
    let handle = start_gossip(setup, parts, supervisor, stop.clone()).await?;
    handle.counters().register(registry);
    let watch = comparison(parts, config, handle.clone());
    supervisor.spawn("watch", watch.run(stop.clone()));
    Ok(Some(handle))
}

async fn start_gossip(
    setup: p2p::Setup,
    parts: &Parts,
    supervisor: &mut Supervisor,
    stop: CancellationToken,
) -> Result<p2p::Handle, StartError> {
    let p2p::Started { handle, tasks } = p2p::start(setup, stop.clone()).await?;
    for p2p::Task { name, run } in tasks {
        supervisor.spawn(name, async move { run.await.map_err(NodeFault::from) });
    }
    supervisor.spawn("announce", gossip::announce(Arc::clone(&parts.bus), handle.clone(), stop));
    Ok(handle)
}
