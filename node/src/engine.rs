//! Starting consensus: at once, or after the node has caught up with its peers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use types::Params;

use crate::chain_spec::ChainSpec;
use crate::config::{Config, Home};
use crate::fault::{NodeFault, OtherChain};
use crate::sync::CatchUp;

/// Where consensus listens for others.
pub(crate) fn listen_address(network: &consensus::Network) -> Option<String> {
    match network {
        consensus::Network::Alone => None,
        consensus::Network::Peers { listen, .. } => Some(listen.clone()),
    }
}

/// A hold on the engine's network, which is there once the engine runs.
#[derive(Debug)]
pub(crate) struct EngineControl {
    own: String,
    control: OnceLock<consensus::Control>,
}

impl EngineControl {
    /// The hold of the node with this key.
    ///
    /// # Errors
    /// [`consensus::StartError`] when the seed gives no key.
    pub(crate) fn new(node_key: &[u8; 32]) -> Result<Self, consensus::StartError> {
        Ok(Self { own: consensus::peer_id(node_key)?, control: OnceLock::new() })
    }

    /// This node's libp2p peer id.
    pub(crate) fn peer_id(&self) -> &str {
        &self.own
    }

    /// The engine's network; none before the engine runs.
    pub(crate) fn get(&self) -> Option<&consensus::Control> {
        self.control.get()
    }
}

/// What the engine is started with.
pub(crate) struct Engine {
    pub(crate) settings: consensus::Config,
    pub(crate) identity: consensus::Identity,
    pub(crate) ports: consensus::Ports,
    pub(crate) control: Arc<EngineControl>,
    /// Cancelled as soon as the validator may sign; until then it follows.
    pub(crate) may_sign: CancellationToken,
}

impl Engine {
    /// Starts it.
    ///
    /// # Errors
    /// [`consensus::StartError`].
    pub(crate) async fn start(
        self,
        stop: CancellationToken,
    ) -> Result<consensus::Handle, consensus::StartError> {
        let Self { settings, identity, ports, control, may_sign } = self;
        let handle = consensus::start_following(settings, identity, ports, may_sign, stop).await?;
        // Nobody else sets it.
        let _is_first = control.control.set(handle.control().clone());
        Ok(handle)
    }

    /// Catches up first, then starts it and waits for its end.
    ///
    /// # Errors
    /// [`NodeFault`] of either.
    pub(crate) async fn run_after(
        self,
        catch_up: Arc<CatchUp>,
        stop: CancellationToken,
    ) -> Result<(), NodeFault> {
        catch_up.run(&stop).await?;
        if stop.is_cancelled() {
            return Ok(());
        }
        run(self.start(stop).await?).await
    }
}

/// Waits for the end of consensus.
///
/// # Errors
/// The [`NodeFault`] that ended it.
pub(crate) async fn run(mut handle: consensus::Handle) -> Result<(), NodeFault> {
    handle.finished().await.map_err(|fault| match other_chain(&fault) {
        Some(other) => NodeFault::OtherChain(other),
        None => NodeFault::from(fault),
    })
}

/// The chain that the ledger refused because the settings trust another.
fn other_chain(fault: &consensus::ConsensusFault) -> Option<OtherChain> {
    let consensus::ConsensusFault::Ledger { source, .. } = fault else { return None };
    source.downcast_ref().copied()
}

/// The settings of consensus.
pub(crate) fn settings(
    home: &Home,
    spec: &ChainSpec,
    config: &Config,
    identity: &consensus::Identity,
    alone: bool,
) -> consensus::Config {
    let validator = identity.validator.as_ref();
    let is_only = validator.is_some_and(|key| spec.validators.is_only(&key.address()));
    let network = if alone && is_only {
        consensus::Network::Alone
    } else {
        consensus::Network::Peers {
            listen: config.p2p.listen.clone(),
            peers: config.p2p.peers.clone(),
            open: config.p2p.open,
        }
    };
    let crate::config::Consensus {
        timeout_propose_ms,
        timeout_prevote_ms,
        timeout_precommit_ms,
        timeout_step_ms,
        pardoned_height: _,
    } = config.consensus;
    consensus::Config {
        domain: spec.domain.clone(),
        moniker: "ombra".to_owned(),
        directory: home.consensus(),
        network,
        block_bytes_max: block_bytes_max(spec.params()),
        timeouts: consensus::Timeouts {
            propose: Duration::from_millis(timeout_propose_ms),
            prevote: Duration::from_millis(timeout_prevote_ms),
            precommit: Duration::from_millis(timeout_precommit_ms),
            step: Duration::from_millis(timeout_step_ms),
        },
    }
}

/// The longest block in its binary form: the header and the framing of transactions come on top of
/// what genesis allows.
pub(crate) fn block_bytes_max(params: &Params) -> usize {
    let bytes = u64::from(params.max_block_bytes).saturating_mul(5) / 4;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
