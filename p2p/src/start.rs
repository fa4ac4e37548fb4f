//! Starting the network.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use libp2p::core::Transport as _;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::Boxed;
use libp2p::core::upgrade::Version;
use libp2p::identity::Keypair;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, PeerId, Swarm, SwarmBuilder, noise, tcp};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::accounting::Accounting;
use crate::behaviour::{Behaviour, Parts};
use crate::command::{COMMANDS_MAX, Command};
use crate::connections::Connections;
use crate::exchange::Exchange;
use crate::gossip::Gossip;
use crate::handle::View;
use crate::pool_requests::PoolRequests;
use crate::ports::{ChainSource, Pool};
use crate::pull::{Extent, PULLS_MAX, Puller, Tools};
use crate::pull_queue::PullQueue;
use crate::recent::Recent;
use crate::serve::{PoolQuestion, QUESTIONS_MAX, Server};
use crate::service::{Inbox, Service};
use crate::sync::{self, Reader, SyncRequests};
use crate::wire::PACK_BYTES_MAX;
use crate::{Config, Counters, Handle, NetworkFault, NetworkId, StartError, intake, muxer};

/// Transactions of the own pool that wait to be published: half a second's worth at full speed.
const ANNOUNCEMENTS_MAX: usize = 8_192;
/// Verdicts that wait for the swarm.
const JUDGED_MAX: usize = 1_024;
/// Room for what surrounds a pack in a message.
const ENVELOPE_BYTES: usize = 4_096;
/// How long the system may take to give the listening socket.
const LISTEN_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a peer may take to say who it is when it opens a connection. A place among those that
/// are being opened is held for as long. Own attempts have libp2p's ten seconds, which also look
/// names up.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Streams of a peer on which no protocol was agreed yet; further ones wait their turn.
const NEGOTIATING_MAX: usize = 16;
/// How long a connection that nobody uses is kept. Gossip uses all of them.
const IDLE_TIME_MAX: Duration = Duration::from_secs(3_600);

/// What the network is started with.
pub struct Setup {
    /// The chain.
    pub network: NetworkId,
    /// The settings.
    pub config: Config,
    /// Seed of the key that names the node; the same as on the engine's network.
    pub node_key: [u8; 32],
    /// The own pool.
    pub pool: Arc<dyn Pool>,
    /// The own chain.
    pub chain: Arc<dyn ChainSource>,
    /// The longest signed transaction of any kind, in bytes.
    pub tx_bytes_max: usize,
    /// The longest block of the chain in its binary form, in bytes.
    pub block_bytes_max: usize,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("network", &self.network).finish_non_exhaustive()
    }
}

/// A task of the network, to be run by whoever supervises the node. It ends when it was asked to
/// stop, or with a fault.
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// The task.
    pub run: Pin<Box<dyn Future<Output = Result<(), NetworkFault>> + Send>>,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The network, once it listens.
#[derive(Debug)]
pub struct Started {
    /// A hold on it.
    pub handle: Handle,
    /// Its tasks; nothing happens until they are run.
    pub tasks: Vec<Task>,
}

/// Opens the listening socket and makes the tasks, which end on `stop`.
///
/// # Errors
/// [`StartError`] when the key, an address or the socket cannot be used.
///
/// The future is boxed here, so that the network is compiled once, in this crate.
pub fn start(
    setup: Setup,
    stop: CancellationToken,
) -> Pin<Box<dyn Future<Output = Result<Started, StartError>> + Send>> {
    Box::pin(launch(setup, stop))
}

async fn launch(setup: Setup, stop: CancellationToken) -> Result<Started, StartError> {
    let Setup { network, config, node_key, pool, chain, tx_bytes_max, block_bytes_max } = setup;
    let key = Keypair::ed25519_from_bytes(node_key).map_err(|_unreadable| StartError::NodeKey)?;
    let own = key.public().to_peer_id();
    let addresses = Addresses::read(&config)?;
    let parts = Parts {
        network: &network,
        limits: &config.limits,
        message_bytes_max: tx_bytes_max.max(PACK_BYTES_MAX).saturating_add(ENVELOPE_BYTES),
        block_bytes_max,
        tells_listen_addresses: config.external.is_empty(),
    };
    let mut swarm = swarm(key, &parts)?;
    let first = listen(&mut swarm, addresses.listen).await?;
    for address in addresses.external {
        swarm.add_external_address(address);
    }

    let now = Instant::now();
    let counters = Counters::default();
    let recent = Arc::new(Recent::new(now));
    let view = View { listen_addresses: vec![first.to_string()], ..View::default() };
    let view = Arc::new(Mutex::new(view));
    let (announcements, announced) = mpsc::channel(ANNOUNCEMENTS_MAX);
    let (commands, commanded) = mpsc::channel(COMMANDS_MAX);
    let (verdicts, judged) = mpsc::channel(JUDGED_MAX);
    let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
    let (chain_questions, chain_asked) = mpsc::channel(sync::QUESTIONS_MAX);
    let (pulls, others) = mpsc::channel(PULLS_MAX);
    let (named_pulls, named) = mpsc::channel(PULLS_MAX);
    let (door, intake) = intake::open(&config.limits, Arc::clone(&pool), verdicts);

    let peers_wanted = usize::try_from(config.limits.peers_wanted).unwrap_or(usize::MAX);
    let peers_wanted = config.exchange.then_some(peers_wanted);
    let shown = (Arc::clone(&view), counters.clone());
    let mut connections = Connections::new(swarm, network.version(), &config.limits, shown);
    connections.stay_with(addresses.peers, now);
    let (topic, known) = (network.topic().hash(), Arc::clone(&recent));
    let service = Service {
        connections,
        exchange: Exchange::new(peers_wanted, now, counters.clone()),
        gossip: Gossip::new(topic, door, known, counters.clone()),
        accounting: Accounting::default(),
        pulls: PullQueue::new(named_pulls, pulls, now),
        pool: PoolRequests::new(questions, counters.clone()),
        sync: SyncRequests::new(Arc::clone(&chain), chain_questions, now, counters.clone()),
    };
    let inbox = Inbox { announcements: announced, commands: commanded, judged };
    let mut tasks = vec![
        Task { name: "gossip", run: Box::pin(service.run(inbox, stop.clone())) },
        Task { name: "gossip-intake", run: Box::pin(intake.run(stop.clone())) },
    ];
    let shared = Shared { pool, chain, recent, commands, counters };
    tasks.extend(shared.tasks(Queues { asked, chain_asked, named, others }, &stop));
    let Shared { commands, counters, .. } = shared;
    Ok(Started { handle: Handle { peer_id: own, announcements, commands, view, counters }, tasks })
}

/// What the tasks beside the swarm's share.
struct Shared {
    pool: Arc<dyn Pool>,
    chain: Arc<dyn ChainSource>,
    recent: Arc<Recent>,
    commands: mpsc::Sender<Command>,
    counters: Counters,
}

/// What the swarm gives these tasks to do.
struct Queues {
    asked: mpsc::Receiver<PoolQuestion>,
    chain_asked: mpsc::Receiver<sync::SyncQuestion>,
    named: mpsc::Receiver<(PeerId, Extent)>,
    others: mpsc::Receiver<(PeerId, Extent)>,
}

impl Shared {
    fn tasks(&self, queues: Queues, stop: &CancellationToken) -> [Task; 3] {
        let Queues { asked, chain_asked, named, others } = queues;
        let commands = || self.commands.clone();
        let counters = || self.counters.clone();
        let (pool, chain) = (|| Arc::clone(&self.pool), Arc::clone(&self.chain));
        let server = Server { asked, pool: pool(), commands: commands(), counters: counters() };
        let reader =
            Reader { asked: chain_asked, chain, commands: commands(), counters: counters() };
        let recent = Arc::clone(&self.recent);
        let refused = Arc::new(Recent::new(Instant::now()));
        let tools =
            Tools { pool: pool(), recent, refused, commands: commands(), counters: counters() };
        let puller = Puller { named, others, tools };
        [
            Task { name: "gossip-serve", run: Box::pin(server.run(stop.clone())) },
            Task { name: "gossip-blocks", run: Box::pin(reader.run(stop.clone())) },
            Task { name: "gossip-pull", run: Box::pin(puller.run(stop.clone())) },
        ]
    }
}

/// The addresses in the settings.
struct Addresses {
    listen: Multiaddr,
    external: Vec<Multiaddr>,
    peers: Vec<Multiaddr>,
}

impl Addresses {
    fn read(config: &Config) -> Result<Self, StartError> {
        let list = |setting, texts: &[String]| {
            texts.iter().map(|text| multiaddr(setting, text)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            listen: multiaddr("p2p.gossip.listen", &config.listen)?,
            external: list("p2p.gossip.external", &config.external)?,
            peers: list("p2p.gossip.peers", &config.peers)?,
        })
    }
}

fn multiaddr(setting: &'static str, text: &str) -> Result<Multiaddr, StartError> {
    text.parse().map_err(|_unreadable| StartError::Multiaddr { setting, text: text.to_owned() })
}

pub(crate) fn swarm(key: Keypair, parts: &Parts<'_>) -> Result<Swarm<Behaviour>, StartError> {
    let behaviour = Behaviour::new(&key, parts)?;
    let failed = |error: &dyn fmt::Display| StartError::Behaviour(error.to_string());
    let swarm = SwarmBuilder::with_existing_identity(key)
        .with_tokio()
        .with_other_transport(|key| transport(key).map_err(Into::into))
        .map_err(|error| failed(&error))?
        .with_dns()
        .map_err(StartError::Resolver)?
        .with_behaviour(|_| behaviour)
        .map_err(|error| failed(&error))?
        .with_swarm_config(|config| {
            config
                .with_idle_connection_timeout(IDLE_TIME_MAX)
                .with_max_negotiating_inbound_streams(NEGOTIATING_MAX)
        })
        .build();
    Ok(swarm)
}

/// TCP with Noise and streams.
fn transport(key: &Keypair) -> Result<Boxed<(PeerId, StreamMuxerBox)>, noise::Error> {
    let security = noise::Config::new(key)?;
    let tcp = tcp::tokio::Transport::new(tcp::Config::default());
    let secure = tcp.upgrade(Version::V1Lazy).authenticate(security).multiplex(muxer::Upgrade);
    Ok(secure.inbound_timeout(HANDSHAKE_TIME_MAX).boxed())
}

/// Listens, and waits for the first address that the system gives.
async fn listen(swarm: &mut Swarm<Behaviour>, address: Multiaddr) -> Result<Multiaddr, StartError> {
    let failed = |reason: String| StartError::Listen { address: address.to_string(), reason };
    swarm.listen_on(address.clone()).map_err(|error| failed(error.to_string()))?;
    let first = async {
        loop {
            let event = swarm.select_next_some().await;
            if let SwarmEvent::NewListenAddr { address, .. } = event {
                return Ok(address);
            }
            if let SwarmEvent::ListenerClosed { reason: Err(error), .. } = event {
                return Err(failed(error.to_string()));
            }
        }
    };
    match tokio::time::timeout(LISTEN_TIME_MAX, first).await {
        Ok(outcome) => outcome,
        Err(_) => Err(failed("the system gave no address in time".to_owned())),
    }
}
