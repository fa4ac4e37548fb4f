//! A running node: everything wired together, and stopped in order.

mod network;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use genesis::Genesis;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use rpc::ports::{Endpoints, Ports, Readiness};
use store::Store;
use store::snapshots::SnapshotStore;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::info;
use txpool::verifier::Rules;
use txpool::{Pool, Verifier};
use types::Keypair;

use crate::adapters::consensus::{ChainLedger, MachineClock};
use crate::adapters::events::EventBus;
use crate::adapters::operator::{Health, Operator, Peers, SystemClock};
use crate::adapters::pool::{Pending, PoolChain, PoolLedger, PoolReads, Projected};
use crate::adapters::reads::Reads;
use crate::adapters::submit::ClientSubmissions;
use crate::chain::NodeChain;
use crate::chain_spec::ChainSpec;
use crate::clock::now_ms;
use crate::config::{Config, Home, Snapshots};
use crate::disk_watch::DiskWatch;
use crate::endpoints;
use crate::engine::{self, Engine, EngineControl};
use crate::evidence::EvidenceSender;
use crate::forks::{self, EarlierVotes, ForkWatch};
use crate::ingest::{self, IngestHandle};
use crate::journal;
use crate::logging::LogControl;
use crate::metrics::{BlockMetrics, Condition, PoolCollector, ValidatorCollector};
pub use crate::not_started::StartError;
use crate::pace::{BlockPace, Wake};
use crate::rebuild;
use crate::replay::ChainReplay;
use crate::snapshot_sync;
use crate::snapshots::{self, Maker};
use crate::supervisor::{ShutdownReason, Supervisor, answer_of};
use crate::sync::{CatchUp, Phase, SyncState, Trust, TrustedBlock};
use crate::systemd::{Systemd, Told};
use crate::threads::Threads;

/// What a node is started with.
#[derive(Debug)]
pub struct NodeSpec {
    /// Where its files are.
    pub home: Home,
    /// The chain's beginning.
    pub genesis: Genesis,
    /// Its settings.
    pub config: Config,
    /// The key that signs votes; none for a follower.
    pub validator: Option<Keypair>,
    /// Seed of the key that names it on the network.
    pub node_key: [u8; 32],
    /// Whether it talks to nobody: a chain of one validator on one machine.
    pub alone: bool,
}

impl NodeSpec {
    /// To be called before [`start`]: if the settings ask for it and there is no database, makes one
    /// out of a snapshot that peers offer. If `asked` ends before that is done, answers why; then the
    /// node is not to be started, and the next one goes on with what was fetched.
    pub async fn begin(&self, asked: impl Future<Output = &'static str>) -> Option<ShutdownReason> {
        let Self { home, genesis, config, validator: _, node_key, alone } = self;
        if !config.snapshots.fetch || *alone {
            return None;
        }
        let stop = CancellationToken::new();
        let mut begun = snapshot_sync::begin(home, genesis, config, *node_key, &stop);
        tokio::select! {
            biased;
            why = asked => {
                stop.cancel();
                let time = Duration::from_millis(config.shutdown.time_ms);
                if tokio::time::timeout(time, begun).await.is_err() {
                    tracing::warn!("the import of a snapshot did not stop in time");
                }
                Some(ShutdownReason::Asked(why))
            }
            () = &mut begun => None,
        }
    }
}

/// A node that runs.
#[derive(Debug)]
pub struct Running {
    supervisor: Supervisor,
    threads: Threads,
    endpoints: Endpoints,
    endpoints_file: PathBuf,
    stop_time: Duration,
    told: Told,
}

impl Running {
    /// The addresses of its interfaces.
    #[must_use]
    pub const fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Has the service manager know from now on how the node is.
    pub fn tell(&mut self, systemd: Systemd) {
        self.supervisor.spawn("systemd", systemd.tell(self.told.clone()));
    }

    /// Runs until `asked` ends or a task fails, and stops in order.
    pub async fn run_until(self, asked: impl Future<Output = &'static str>) -> ShutdownReason {
        let reason = self.supervisor.run(asked, self.stop_time).await;
        self.threads.end().await;
        // The file says that the node answers; it no longer does.
        drop(std::fs::remove_file(&self.endpoints_file));
        reason
    }
}

/// Everything that the stages share.
struct Parts {
    chain: Arc<NodeChain>,
    pool: Arc<Pool>,
    pending: Arc<Pending>,
    bus: Arc<EventBus>,
    wake: Arc<Wake>,
    /// Told of what was seen of validators that contradicted themselves.
    contradictions: Arc<Notify>,
    rules: Rules,
    sync: Arc<SyncState>,
    metrics: BlockMetrics,
    maker: Option<Maker>,
}

/// Starts a node and answers once its interfaces do.
///
/// The answer is boxed so that the node's tasks are compiled in this crate, once: what an `async fn`
/// does is compiled in each crate that awaits it.
///
/// # Errors
/// [`StartError`]; what had been started is stopped again.
#[must_use]
pub fn start(
    spec: NodeSpec,
    log: LogControl,
) -> LocalBoxFuture<'static, Result<Running, StartError>> {
    Box::pin(start_stages(spec, log))
}

async fn start_stages(spec: NodeSpec, log: LogControl) -> Result<Running, StartError> {
    let NodeSpec { home, genesis, config, validator, node_key, alone } = spec;
    let mut registry = Registry::with_prefix("ombra");
    let mut parts = open_parts(&home, &genesis, &config, &mut registry)?;
    parts.chain.store().require_known_fork()?;
    if let Some(key) = &validator {
        parts.chain.validators().tell_role(key, parts.chain.tip().height);
    }
    registry.register_collector(Box::new(PoolCollector(Arc::clone(&parts.pool))));
    let mut supervisor = Supervisor::default();
    let threads = Threads::start().map_err(no_threads)?;

    start_storage(&mut parts, &home, &config, &mut supervisor);
    let accuser = validator.clone().map(|key| (key, config.consensus.pardoned_height));
    let identity = consensus::Identity { node_key, validator };
    let settings = engine::settings(&home, parts.chain.spec(), &config, &identity, alone);
    let listen = engine::listen_address(&settings.network);
    // With nobody to catch up with, consensus starts at once; else when everything else runs.
    let catches_up = listen.is_some() && !config.p2p.gossip.peers.is_empty();
    let stop_engine = supervisor.stage("consensus");
    let trust = Trust::of(&parts.chain, &config.sync, identity.validator.as_ref());
    let known = (trust.trusted, catches_up);
    let engine = engine_of(&parts, settings, identity, known, &mut registry)?;
    let (control, may_sign) = (Arc::clone(&engine.control), engine.may_sign.clone());
    let held_back = engine.identity.validator.is_some().then(|| may_sign.clone());
    let mut later = Some(engine);
    if let Some(engine) = later.take_if(|_| !catches_up) {
        threads.start_engine(engine, &mut supervisor, stop_engine.clone()).await?;
    }

    let ingest = start_ingest(&parts, &mut supervisor)?;
    let stop = supervisor.stage("gossip");
    start_evidence(&parts, ingest.clone(), accuser, (&mut supervisor, stop.clone()));
    let setup = listen.is_some().then(|| network::setup(&parts, &config, node_key, ingest.clone()));
    let started = (&mut supervisor, &stop);
    let network = network::start(setup, (&parts, &config), &mut registry, started).await?;
    let (control_of_peers, sync) = (Arc::clone(&control), Arc::clone(&parts.sync));
    let peers = Arc::new(Peers::new(control_of_peers, network.clone(), listen.as_deref(), sync));
    supervisor.spawn("peers", Arc::clone(&peers).run(stop.clone()));
    if let Some(network) = &network {
        count_earlier_votes(&parts, network.clone(), may_sign, &mut supervisor, stop.clone());
    }
    if let (Some(engine), Some(network)) = (later, &network) {
        trust.tell();
        let catch_up = catch_up(&parts, &genesis, &config, (network.clone(), trust))?;
        let engine = engine.run_after(catch_up, stop_engine);
        supervisor.spawn_in("consensus", threads.consensus(), "engine", engine);
    }

    let health = watch(&parts, &home, &config, (&peers, held_back), &mut registry);

    let stop = supervisor.stage("rpc");
    let relay = Arc::clone(&parts.bus).relay(stop.clone());
    supervisor.spawn_in("rpc", threads.interfaces(), "relay", relay);
    let told = Told { readiness: Arc::clone(&health), stop: stop.clone() };
    let operator = Operator {
        log,
        log_filter: Mutex::new(config.log.filter.clone()),
        pool: Arc::clone(&parts.pool),
        engine: control,
        gossip: network.clone(),
    };
    let ports = rpc_ports(&parts, health, ingest, peers, operator);
    let (facts, socket) = (parts.chain.spec().facts(), home.admin_socket());
    let opened = rpc::start(config.rpc.clone(), facts, ports, registry, socket, stop);
    let endpoints = threads.serve(opened, &mut supervisor).await?;

    let endpoints_file = home.endpoints();
    endpoints::write_all(&endpoints_file, &endpoints, listen.as_deref(), network.as_ref())?;
    info!(rpc = %endpoints.rpc, height = parts.chain.tip().height, "the node answers");
    let stop_time = Duration::from_millis(config.shutdown.time_ms);
    Ok(Running { supervisor, threads, endpoints, endpoints_file, stop_time, told })
}

/// Counts the votes in blocks before a snapshot; the validator may sign from then on. It may take long
/// and nobody waits for it, so it runs beside consensus and not on its threads.
fn count_earlier_votes(
    parts: &Parts,
    network: p2p::Handle,
    may_sign: CancellationToken,
    supervisor: &mut Supervisor,
    stop: CancellationToken,
) {
    let earlier = EarlierVotes { chain: Arc::clone(&parts.chain), network, may_sign };
    supervisor.spawn("earlier-votes", earlier.run(stop));
}

fn start_storage(parts: &mut Parts, home: &Home, config: &Config, supervisor: &mut Supervisor) {
    let stop = supervisor.stage("storage");
    supervisor.spawn("journal", journal::keep(Arc::clone(&parts.pool), stop.clone()));
    let (pool, pending) = (Arc::clone(&parts.pool), Arc::clone(&parts.pending));
    supervisor.spawn("pool-rebuild", rebuild::keep(pool, pending, stop.clone()));
    supervisor.spawn("forks", ForkWatch(Arc::clone(&parts.chain)).run(stop.clone()));
    if let Some(maker) = parts.maker.take() {
        let stop = stop.clone();
        supervisor.spawn("snapshots", async move {
            let made = tokio::task::spawn_blocking(move || maker.run(&stop)).await;
            answer_of(made).unwrap_or(Ok(()))
        });
    }
    let disk =
        DiskWatch { path: home.directory().clone(), free_min: config.storage.free_disk_bytes_min };
    supervisor.spawn("disk", disk.run(stop));
}

/// What consensus is started with.
fn engine_of(
    parts: &Parts,
    settings: consensus::Config,
    identity: consensus::Identity,
    (trusted, knows_peers): (Option<TrustedBlock>, bool),
    registry: &mut Registry,
) -> Result<Engine, StartError> {
    let ledger = Arc::new(ChainLedger {
        chain: Arc::clone(&parts.chain),
        pool: Arc::clone(&parts.pool),
        verifier: verifier(&parts.rules)?,
        bus: Arc::clone(&parts.bus),
        wake: Arc::clone(&parts.wake),
        contradictions: Arc::clone(&parts.contradictions),
        metrics: parts.metrics.clone(),
        proposer: identity.validator.clone(),
        // The other half is for sending and executing it.
        build_time_max: settings.timeouts.propose / 2,
        trusted,
    });
    let pace = Arc::new(BlockPace {
        chain: Arc::clone(&parts.chain),
        pool: Arc::clone(&parts.pool),
        wake: Arc::clone(&parts.wake),
    });
    let counters = consensus::Counters::default();
    counters.register(registry);
    ValidatorCollector::register(&parts.chain, identity.validator.as_ref(), registry);
    let control = Arc::new(EngineControl::new(&identity.node_key)?);
    let has_network = settings.network != consensus::Network::Alone;
    let may_sign = forks::permission(&parts.chain, &identity, (has_network, knows_peers));
    let clock = Arc::new(MachineClock);
    let ports = consensus::Ports { ledger: ledger.clone(), archive: ledger, pace, clock, counters };
    Ok(Engine { settings, identity, ports, control, may_sign })
}

/// Starts the ingest service, in a stage of its own.
fn start_ingest(parts: &Parts, supervisor: &mut Supervisor) -> Result<IngestHandle, StartError> {
    let stop = supervisor.stage("pool");
    let (handle, service) = ingest::service(ingest::Parts {
        chain: Arc::clone(&parts.chain),
        pool: Arc::clone(&parts.pool),
        verifier: verifier(&parts.rules)?,
        sync: Arc::clone(&parts.sync),
    });
    supervisor.spawn("ingest", service.run(stop));
    Ok(handle)
}

/// Sends the evidence that this node sees, signed by its consensus key, but none of the height that it
/// pardons. A node without a key sends none.
fn start_evidence(
    parts: &Parts,
    ingest: IngestHandle,
    accuser: Option<(Keypair, u64)>,
    (supervisor, stop): (&mut Supervisor, CancellationToken),
) {
    let Some((key, pardoned_height)) = accuser else { return };
    let sender = EvidenceSender {
        chain: Arc::clone(&parts.chain),
        pool: Arc::clone(&parts.pool),
        ingest,
        key,
        pardoned_height,
        seen: Arc::clone(&parts.contradictions),
    };
    supervisor.spawn("evidence", sender.run(stop));
}

/// What runs before consensus. The node is not ready from now on.
fn catch_up(
    parts: &Parts,
    genesis: &Genesis,
    config: &Config,
    (network, trust): (p2p::Handle, Trust),
) -> Result<Arc<CatchUp>, StartError> {
    parts.sync.enter(Phase::Meeting);
    Ok(Arc::new(CatchUp {
        chain: Arc::clone(&parts.chain),
        pool: Arc::clone(&parts.pool),
        bus: Arc::clone(&parts.bus),
        state: Arc::clone(&parts.sync),
        replay: ChainReplay::new(genesis)?.trusting(trust.trusted),
        network,
        trust,
        height: parts.metrics.height.clone(),
        wait: Duration::from_millis(config.sync.wait_ms),
    }))
}

/// What `/readyz` looks at; it is measured, too, with what else there is to know of the process.
fn watch(
    parts: &Parts,
    home: &Home,
    config: &Config,
    (peers, may_sign): (&Arc<Peers>, Option<CancellationToken>),
    registry: &mut Registry,
) -> Arc<dyn Readiness> {
    let health: Arc<dyn Readiness> = Arc::new(Health {
        chain: Arc::clone(&parts.chain),
        network: Arc::<Peers>::clone(peers),
        sync: Arc::clone(&parts.sync),
        data: home.directory().clone(),
        free_disk_bytes_min: config.storage.free_disk_bytes_min,
        trusted: TrustedBlock::of(&config.sync),
        trust_period_ms: config.sync.trust_period_ms,
        may_sign,
    });
    registry.register_collector(Box::new(Condition {
        chain: Arc::clone(&parts.chain),
        readiness: Arc::clone(&health),
        home: home.clone(),
        started_ms: now_ms(),
    }));
    health
}

fn rpc_ports(
    parts: &Parts,
    readiness: Arc<dyn Readiness>,
    ingest: IngestHandle,
    peers: Arc<Peers>,
    operator: Operator,
) -> Ports {
    let reads = Arc::new(Reads::new(Arc::clone(&parts.chain)));
    Ports {
        chain: reads.clone(),
        transactions: reads.clone(),
        accounts: reads.clone(),
        runs: reads.clone(),
        directory: reads.clone(),
        agents: reads.clone(),
        calls: reads.clone(),
        offers: reads.clone(),
        market: reads.clone(),
        proofs: reads.clone(),
        forks: reads.clone(),
        rules: reads.clone(),
        keys: reads,
        submit: Arc::new(ClientSubmissions(ingest)),
        projection: Arc::new(Projected {
            pending: Arc::clone(&parts.pending),
            pool: Arc::clone(&parts.pool),
            sync: Arc::clone(&parts.sync),
        }),
        pool: Arc::new(PoolReads(Arc::clone(&parts.pool))),
        network: peers,
        events: parts.bus.clone(),
        readiness,
        admin: Arc::new(operator),
        clock: Arc::new(SystemClock),
    }
}

fn open_parts(
    home: &Home,
    genesis: &Genesis,
    config: &Config,
    registry: &mut Registry,
) -> Result<Parts, StartError> {
    let database = home.database();
    std::fs::create_dir_all(&database).map_err(|source| StartError::Io {
        doing: format!("making {}", database.display()),
        source,
    })?;
    let store = Store::open(&database, config.storage.options())?;
    let chain = NodeChain::open(store, ChainSpec::of(genesis)?, &genesis.state())?;
    TrustedBlock::check_chain(&chain, &config.sync)?;
    let (chain, maker) = offering(chain, home, config);
    let chain = Arc::new(chain);
    let wake = Arc::<Wake>::default();
    let kept = config.rpc.limits.pool_events();
    let bus = Arc::new(EventBus::new(chain.tip().height, kept, Arc::clone(&wake)));
    let pending = Arc::new(Pending::new(Arc::clone(&chain))?);
    let rules = chain.spec().static_rules();
    let ports = txpool::Ports {
        ledger: Box::new(PoolLedger(Arc::clone(&pending))),
        chain: Arc::new(PoolChain(Arc::clone(&pending))),
        events: bus.clone(),
    };
    let skew = rules.params.max_clock_skew_ms;
    let pool = Pool::with_journal(config.txpool.clone(), skew, ports, &home.journal())?;
    let next = chain.tip().height.saturating_add(1);
    let restored = pool.restore(&verifier(&rules)?, next, now_ms())?;
    info!(?restored, "restored the pool's journal");
    let sync = Arc::new(SyncState::register(registry));
    let metrics = BlockMetrics::register(registry);
    let pool = Arc::new(pool);
    let contradictions = Arc::default();
    Ok(Parts { chain, pool, pending, bus, wake, contradictions, rules, sync, metrics, maker })
}

/// The chain with the snapshots that it offers, and what makes further ones. A node that cannot offer
/// any runs without.
fn offering(chain: NodeChain, home: &Home, config: &Config) -> (NodeChain, Option<Maker>) {
    let Snapshots { interval_blocks, keep, fetch: _ } = config.snapshots;
    if interval_blocks == 0 {
        return (chain, None);
    }
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let snapshot_store = match SnapshotStore::open(&home.snapshots(), keep, chain.store()) {
        Ok(snapshot_store) => Arc::new(snapshot_store),
        Err(error) => {
            tracing::warn!(%error, "no snapshots are offered");
            return (chain, None);
        }
    };
    let store = chain.store().clone();
    let (pinner, maker) = snapshots::open(Arc::clone(&snapshot_store), store, interval_blocks);
    (chain.offer(snapshot_store, pinner), Some(maker))
}

/// Threads that check signatures: as many as the machine has cores.
fn verifier(rules: &Rules) -> Result<Verifier, StartError> {
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Verifier::new(rules.clone(), threads).map_err(no_threads)
}

fn no_threads(source: std::io::Error) -> StartError {
    StartError::Io { doing: "starting threads".to_owned(), source }
}
