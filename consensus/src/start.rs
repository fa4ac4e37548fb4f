//! Starting the engine and the loop, and what is left in the caller's hands.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use malachitebft_app::net::{Multiaddr, PeerId};
use malachitebft_app::types::Keypair as NodeKeypair;
use malachitebft_app::types::codec::Codec;
use malachitebft_app_channel::{
    AppMsg, Channels, ConsensusContext, EngineHandle, NetworkContext, NetworkIdentity,
    NetworkRequest, RequestContext, SyncContext, WalContext, start_engine,
};
use malachitebft_signing::Signer as _;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::amnesia::{self, Withheld};
use crate::app::{App, End, Ended, Setup};
use crate::engine::codec::Borsh;
use crate::engine::context::Ctx;
use crate::engine::settings::{self, Settings};
use crate::engine::signing::{Signer, Verifier};
use crate::guard::Guard;
use crate::presence::Presence;
use crate::room;
use crate::{Archive, Config, Counters, Fault, Identity, Ledger, Network, Pace, StartError, Tip};

/// Name of the engine's log in its directory.
pub(crate) const LOG_NAME: &str = "consensus.wal";

/// Requests to the engine that may wait. Only operators make them.
const REQUESTS_MAX: usize = 16;

/// How long the engine's actors may take to stop, and its log to be let go.
const STOP_WAIT_MAX: Duration = Duration::from_secs(3);

/// How often is looked whether the log was let go.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// The node's side of consensus.
#[derive(Clone)]
pub struct Ports {
    /// The chain.
    pub ledger: Arc<dyn Ledger>,
    /// Kept undecided blocks, and how far back history reaches.
    pub archive: Arc<dyn Archive>,
    /// When blocks are due.
    pub pace: Arc<dyn Pace>,
    /// Where it is counted what happens.
    pub counters: Counters,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// Running consensus. Dropping it stops consensus, without waiting for that.
#[derive(Debug)]
pub struct Handle {
    task: JoinHandle<Result<(), Fault>>,
    stop: CancellationToken,
    counters: Counters,
    control: Control,
}

/// A hold on the engine's network: to look at its peers and change them. Clones share it.
#[derive(Clone, Debug)]
pub struct Control {
    /// The running engine's; it changes when a validator that followed begins to sign.
    requests: Arc<Mutex<Option<mpsc::Sender<NetworkRequest>>>>,
    peer_id: String,
    withheld: Withheld,
}

/// A connected node.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Its libp2p peer id.
    pub peer_id: String,
    /// Its address as a multiaddress.
    pub address: String,
    /// The name it gives itself.
    pub moniker: String,
    /// Its validator address, if it proved to be one of the current set.
    pub validator: Option<String>,
    /// How it behaves; 0 is neutral.
    pub score: f64,
    /// Whether the peer opened the connection.
    pub is_inbound: bool,
}

/// Why peers could not be listed or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Not a multiaddress.
    #[error("{text:?} is not a multiaddress such as /ip4/127.0.0.1/tcp/7100")]
    Multiaddr {
        /// What was written.
        text: String,
    },
    /// The engine refused, or is stopping.
    #[error("the consensus network does not answer: {reason}")]
    Network {
        /// Why.
        reason: String,
    },
}

/// Starts consensus. It goes on until `stop`, the end of the handle, or a fault; then
/// [`Handle::finished`] resolves.
///
/// # Errors
/// [`StartError`] when the directory, the record of signed votes, the addresses, the ledger or
/// the engine cannot be used.
///
/// The future is boxed here, so that the engine is compiled once, in this crate.
pub fn start(
    config: Config,
    identity: Identity,
    ports: Ports,
    stop: CancellationToken,
) -> Pin<Box<dyn Future<Output = Result<Handle, StartError>> + Send>> {
    Box::pin(launch(config, identity, ports, stop))
}

async fn launch(
    config: Config,
    identity: Identity,
    ports: Ports,
    stop: CancellationToken,
) -> Result<Handle, StartError> {
    let Identity { node_key, validator } = identity;
    std::fs::create_dir_all(&config.directory)
        .map_err(|source| StartError::Directory { path: config.directory.clone(), source })?;
    let chain_id: Arc<str> = config.chain_id.as_str().into();
    let counters = ports.counters.clone();
    let signer = match validator {
        None => None,
        Some(keypair) => {
            let guard = Guard::open(&config.directory, &chain_id, &keypair.public_key())?;
            Some(Signer::new(Arc::clone(&chain_id), keypair, guard, counters.clone()))
        }
    };
    let stop = stop.child_token();
    let control = Control {
        requests: Arc::default(),
        peer_id: peer_id(&node_key)?,
        withheld: Withheld::default(),
    };
    let base = Base { config, chain_id, node_key, ports, stop: stop.clone(), control };
    let tip = base.tip().await?;
    let until = base.follow_until(&tip, signer.as_ref()).await?;
    base.control.withheld.set(until);
    if let Some(height) = until {
        tracing::warn!(
            height,
            tip = tip.height,
            "this key has signed for a height whose log is lost: the node follows without signing \
             until that height is decided"
        );
    }
    let signs_now = signer.clone().filter(|_| until.is_none());
    let first = base.engine(signs_now, tip, until).await?;
    let control = base.control.clone();
    let task = tokio::spawn(base.run(first, signer));
    Ok(Handle { task, stop, counters, control })
}

/// What the engine is started with, once or, if the validator has to follow at first, twice.
struct Base {
    config: Config,
    chain_id: Arc<str>,
    node_key: [u8; 32],
    ports: Ports,
    stop: CancellationToken,
    control: Control,
}

/// A started engine.
type Started = (Runner, Channels<Ctx>);

impl Base {
    fn log(&self) -> PathBuf {
        self.config.directory.join(LOG_NAME)
    }

    async fn tip(&self) -> Result<Tip, StartError> {
        let ledger = Arc::clone(&self.ports.ledger);
        tokio::task::spawn_blocking(move || ledger.tip())
            .await
            .map_err(|panic| StartError::Engine(panic.to_string()))?
            .map_err(StartError::Ledger)
    }

    /// Until which height this validator must only follow.
    async fn follow_until(
        &self,
        tip: &Tip,
        signer: Option<&Signer>,
    ) -> Result<Option<u64>, StartError> {
        let Some(signer) = signer else { return Ok(None) };
        let (tip, own, signed) = (tip.clone(), signer.address(), signer.last_signed());
        let (archive, log) = (Arc::clone(&self.ports.archive), self.log());
        tokio::task::spawn_blocking(move || amnesia::withheld(signed, (&tip, own), &*archive, &log))
            .await
            .map_err(|panic| StartError::Engine(panic.to_string()))?
    }

    async fn engine(
        &self,
        signer: Option<Signer>,
        tip: Tip,
        follow_until: Option<u64>,
    ) -> Result<Started, StartError> {
        let Self { config, chain_id, node_key, ports, stop, control } = self;
        let (settings, log) = (Settings::new(config)?, self.log());
        let presence = Presence::default();
        let verifier = Verifier::new(Arc::clone(chain_id), presence.clone());
        let node_key = node_keypair(node_key)?;
        let peer_id = node_key.public().to_peer_id();
        let network = network_identity(config, node_key, peer_id, signer.as_ref()).await?;
        if !is_free_soon(&log).await {
            return Err(StartError::InUse { path: log });
        }
        let voting: Box<dyn malachitebft_signing::Verifier<Ctx>> = Box::new(verifier.clone());
        let consensus = match &signer {
            Some(signer) => ConsensusContext::new_validator(
                signer.address().into(),
                voting,
                Box::new(signer.clone()),
            ),
            None => ConsensusContext::new_full_node(types::Address::default().into(), voting),
        };
        let (channels, engine) = start_engine(
            Ctx,
            settings,
            WalContext::new(log.clone(), Borsh),
            NetworkContext::new(network, Borsh),
            consensus,
            SyncContext::new(Borsh),
            RequestContext::new(REQUESTS_MAX),
        )
        .await
        .map_err(|report| StartError::Engine(format!("{report:#}")))?;
        let listens = signer.is_some() && config.network != Network::Alone;
        let app = App::new(Setup {
            ports: ports.clone(),
            signer: signer.clone(),
            follow_until,
            verifier,
            timeouts: settings::timeouts(&config.timeouts),
            presence,
            publishes: listens,
            network: channels.network.clone(),
            counters: ports.counters.clone(),
            block_bytes_max: config.block_bytes_max,
            tip,
        });
        *control.requests.lock() = Some(channels.net_requests.clone());
        Ok((Runner { app, signer, engine, log, listens, stop: stop.clone() }, channels))
    }

    /// Runs the engine to its end. One that follows at first is started again with its signer as soon as
    /// it may sign.
    async fn run(self, (runner, channels): Started, signer: Option<Signer>) -> Result<(), Fault> {
        if runner.run(channels).await? == End::Asked {
            return Ok(());
        }
        tracing::info!("what this key has signed is decided: from now on the node signs again");
        let failed = |error| Fault::Start(Box::new(error));
        let tip = self.tip().await.map_err(failed)?;
        let (runner, channels) = self.engine(signer, tip, None).await.map_err(failed)?;
        self.control.withheld.set(None);
        runner.run(channels).await.map(drop)
    }
}

/// The libp2p peer id of a node key, for peer lists.
///
/// # Errors
/// [`StartError::NodeKey`] when the seed gives no key.
pub fn peer_id(node_key: &[u8; 32]) -> Result<String, StartError> {
    node_keypair(node_key).map(|key| key.public().to_peer_id().to_string())
}

fn node_keypair(seed: &[u8; 32]) -> Result<NodeKeypair, StartError> {
    NodeKeypair::ed25519_from_bytes(*seed).map_err(|_unreadable| StartError::NodeKey)
}

async fn network_identity(
    config: &Config,
    node_key: NodeKeypair,
    peer_id: PeerId,
    signer: Option<&Signer>,
) -> Result<NetworkIdentity, StartError> {
    let moniker = config.moniker.clone();
    let Some(signer) = signer else {
        return Ok(NetworkIdentity::new(moniker, node_key, None));
    };
    let proof = signer
        .sign_validator_proof(signer.public_key().as_bytes().to_vec(), peer_id.to_bytes())
        .await
        .map_err(|error| StartError::Engine(error.to_string()))?;
    let proof = Borsh.encode(&proof).map_err(|error| StartError::Engine(error.to_string()))?;
    let address = signer.address().to_string();
    Ok(NetworkIdentity::new_validator(moniker, node_key, address, proof))
}

/// The one task of this crate.
struct Runner {
    app: App,
    signer: Option<Signer>,
    engine: EngineHandle,
    log: PathBuf,
    /// Whether votes of others are watched for.
    listens: bool,
    stop: CancellationToken,
}

impl Runner {
    async fn run(mut self, channels: Channels<Ctx>) -> Result<End, Fault> {
        let Channels { consensus: mut messages, events, .. } = channels;
        let events = self.listens.then(|| events.subscribe());
        let ended = self.app.run(&mut messages, events, &self.stop).await;
        let outcome = match ended {
            Ok(end) => Ok(end),
            Err(Ended::Fault(fault)) => Err(fault),
            Err(Ended::EngineGone) => Err(self.engine_fault().await),
        };
        if let Err(fault) = &outcome {
            tracing::error!(%fault, "consensus stops");
        }
        self.stop_engine(messages).await;
        outcome
    }

    /// Why the engine closed its channel.
    async fn engine_fault(&mut self) -> Fault {
        if let Some(refusal) = self.signer.as_ref().and_then(Signer::take_refusal) {
            return Fault::Guard(refusal);
        }
        // Before anything that stops makes room.
        let log = self.log.clone();
        let lack = tokio::task::spawn_blocking(move || room::lack_of_room(&log)).await;
        // After a failure that a restart can heal, the engine ends; after one that makes its log
        // untrustworthy, it stops its actors and stays, on purpose.
        match tokio::time::timeout(STOP_WAIT_MAX, &mut self.engine.handle).await {
            Ok(_) => Fault::Engine,
            Err(_) => match lack.ok().flatten() {
                Some(source) => Fault::LogFull { path: self.log.clone(), source },
                None => Fault::Safety,
            },
        }
    }

    /// Stops the engine's actors and waits until its log is free for the next start.
    async fn stop_engine(self, messages: mpsc::Receiver<AppMsg<Ctx>>) {
        let Self { app, engine, log, .. } = self;
        // Questions that nobody will answer must not keep an actor.
        drop((messages, app));
        engine.actor.stop_children_and_wait(None, Some(STOP_WAIT_MAX)).await;
        engine.actor.stop(None);
        let mut task = engine.handle;
        if !task.is_finished() && tokio::time::timeout(STOP_WAIT_MAX, &mut task).await.is_err() {
            tracing::warn!("the consensus engine did not stop in time");
            task.abort();
        }
        if !is_free_soon(&log).await {
            tracing::warn!("the consensus engine did not let go of its log in time");
        }
    }
}

/// Waits until nobody holds the engine's log, for a while.
async fn is_free_soon(log: &Path) -> bool {
    let free = async {
        while File::open(log).is_ok_and(|file| file.try_lock().is_err()) {
            tokio::time::sleep(LOCK_POLL).await;
        }
    };
    tokio::time::timeout(STOP_WAIT_MAX, free).await.is_ok()
}

impl Handle {
    /// Resolves when consensus has stopped: with `Ok` because it was asked to.
    ///
    /// # Errors
    /// The [`Fault`] that stopped it.
    pub async fn finished(&mut self) -> Result<(), Fault> {
        match (&mut self.task).await {
            Ok(outcome) => outcome,
            Err(panic) => Err(Fault::Panic(panic.to_string())),
        }
    }

    /// What happened so far, in numbers.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The engine's network.
    #[must_use]
    pub const fn control(&self) -> &Control {
        &self.control
    }
}

impl Control {
    /// The height until which this validator follows without signing, because it has signed it and lost
    /// what it knew of it; none if it signs, and for a follower.
    #[must_use]
    pub fn follows_until(&self) -> Option<u64> {
        self.withheld.get()
    }

    fn requests(&self) -> Result<mpsc::Sender<NetworkRequest>, PeerError> {
        let requests = self.requests.lock().clone();
        requests.ok_or_else(|| network_error("the engine is not there"))
    }

    /// This node's libp2p peer id, for others' peer lists.
    #[must_use]
    pub fn peer_id(&self) -> &str {
        &self.peer_id
    }

    /// The connected nodes, by peer id.
    ///
    /// # Errors
    /// [`PeerError::Network`] when the engine does not answer.
    pub async fn peers(&self) -> Result<Vec<Peer>, PeerError> {
        let dump = NetworkRequest::dump_state(&self.requests()?).await.map_err(network_error)?;
        let Some(dump) = dump else { return Ok(Vec::new()) };
        let mut peers: Vec<Peer> = dump
            .peers
            .into_iter()
            .map(|(peer_id, peer)| Peer {
                peer_id: peer_id.to_string(),
                address: peer.address.to_string(),
                moniker: peer.moniker,
                validator: peer.consensus_address,
                score: peer.score,
                is_inbound: peer.connection_direction.is_some_and(|it| it.as_str() == "inbound"),
            })
            .collect();
        peers.sort_by(|a, b| a.peer_id.cmp(&b.peer_id));
        Ok(peers)
    }

    /// Stays connected to one more node, until the process ends.
    ///
    /// # Errors
    /// [`PeerError`] for a bad address, or when the engine refuses.
    pub async fn add_peer(&self, address: &str) -> Result<(), PeerError> {
        let address = multiaddr(address)?;
        NetworkRequest::add_persistent_peer(&self.requests()?, address)
            .await
            .map_err(network_error)?
            .map_err(network_error)
    }

    /// No longer stays connected to a node, named by its peer id or by the address that it was
    /// added with.
    ///
    /// # Errors
    /// [`PeerError`] for a text that is neither, a node that is not stayed connected to, or when
    /// the engine refuses.
    pub async fn remove_peer(&self, whom: &str) -> Result<(), PeerError> {
        let address = match whom.parse::<PeerId>() {
            Ok(peer) => self.persistent_address(peer).await?,
            Err(_) => multiaddr(whom)?,
        };
        NetworkRequest::remove_persistent_peer(&self.requests()?, address)
            .await
            .map_err(network_error)?
            .map_err(network_error)
    }
}

impl Control {
    /// The address at which the engine stays connected to a peer.
    async fn persistent_address(&self, peer: PeerId) -> Result<Multiaddr, PeerError> {
        let dump = NetworkRequest::dump_state(&self.requests()?).await.map_err(network_error)?;
        let addresses = dump.map(|dump| dump.persistent_peer_addrs).unwrap_or_default();
        let name = peer.to_string();
        let mut own = addresses.into_iter().filter(|it| it.to_string().ends_with(&name));
        own.next().ok_or_else(|| network_error(format!("{name} is not a peer to stay with")))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn multiaddr(text: &str) -> Result<Multiaddr, PeerError> {
    settings::multiaddr(text).map_err(|_unreadable| PeerError::Multiaddr { text: text.to_owned() })
}

fn network_error(error: impl std::fmt::Display) -> PeerError {
    PeerError::Network { reason: error.to_string() }
}
