//! The whole program: everything that the engine is made of, from the configuration file, the node
//! and the folder of its own.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::backend::breaker::Guarded;
use agent::backend::config::Interface;
use agent::backend::ollama::Ollama;
use agent::backend::openai::OpenAi;
use agent::backend::{Backend, Embedded, EmbeddedConfig, EmbeddedError, ServedModel, SetupError};
use agent::clock::Clock;
use agent::executor::{Containers, Executors};
use agent::tools::ports::{AgentTools, SystemNames};
use agent::tools::sandbox::Wrapper;
use agent::tools::{OpenError, Surroundings, Toolbox};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use types::{Address, Keypair};
use wallet::chain::{check_id, check_named};
use wallet::{Bond, ChainIdentity, ChainMemory, Client, WalletError};

use crate::adapters::{RunAgents, ToolRunner, Understanding};
use crate::chain::client::{CallSubscription, Node, Subscription};
use crate::chain::{ChainError, Head, Ledger};
use crate::engine::{Engine, EngineError, Parts, PolicyNews, Reread, follow_policy};
use crate::journal::{Journal, JournalError};
use crate::market::{AgentCache, Fitness, MarketConfig, MarketParts, MarketSettings, Receipts};
use crate::operate::{Measured, Plan, StatusService, SweepConfig, Tally, look_out};
use crate::policy::{Policy, PolicyError, PolicyFile};
use crate::ports::Counters;
use crate::settings::{ModelConfig, Settings, SettingsError};
use crate::waiting::{Needed, Pace, Waiting, until_there};

/// The journal's file in the miner's folder.
pub const JOURNAL: &str = "journal.redb";
/// How often the configuration file is looked at.
const POLICY_PAUSE: Duration = Duration::from_secs(2);
/// How often the node, the account and the back end are looked at, at most.
const LOOK_PAUSE: Duration = Duration::from_secs(5);

/// What the program is given.
#[derive(Debug)]
pub struct Setting {
    /// The configuration file.
    pub config: PathBuf,
    /// The folder of this wallet's miner.
    pub folder: PathBuf,
    /// The wallet that signs and earns.
    pub key: Keypair,
    /// Where the chain of the wallet's first use is remembered; none for a key that is no secret.
    pub memory: Option<ChainMemory>,
    /// The chain id that the operator gave.
    pub chain_id: Option<String>,
    /// The node.
    pub node: Client,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Confines programs of MCP servers.
    pub wrapper: Option<Wrapper>,
    /// Metrics.
    pub counters: Arc<dyn Counters>,
    /// The model, if it is open already; else the one of the configuration is opened.
    pub backend: Option<Arc<dyn Backend>>,
    /// Where it is told what the start waits for.
    pub waiting: Arc<Waiting>,
    /// Ends the program.
    pub stop: CancellationToken,
}

/// Why the program does not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The policy's file.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The miner's folder.
    #[error("{path}: {source}", path = path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The journal's file.
    #[error("{path}: {source}", path = path.display())]
    JournalFile {
        /// Which.
        path: PathBuf,
        /// Why.
        source: JournalError,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The node.
    #[error(transparent)]
    Node(#[from] ChainError),
    /// The wallet does not sign for the node's chain.
    #[error(transparent)]
    Chain(WalletError),
    /// The model server.
    #[error(transparent)]
    Backend(#[from] SetupError),
    /// The model inside the process.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// The tools.
    #[error(transparent)]
    Tools(#[from] OpenError),
    /// The cold address.
    #[error("{0}")]
    Sweep(String),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A miner that is ready to work.
#[derive(Debug)]
pub struct Program {
    engine: Engine,
    market: MarketStart,
    journal: Arc<Journal>,
    subscription: Subscription,
    toolbox: Toolbox,
    policy: PolicyFile,
    policies: watch::Sender<Arc<Policy>>,
    news: Arc<Mutex<PolicyNews>>,
    watched: Watched,
    status_service: Arc<StatusService>,
    sweep: Option<SweepConfig>,
    stop: CancellationToken,
    /// What a person is told about it.
    pub summary: Summary,
}

/// What the market needs while the miner works.
#[derive(Debug)]
struct MarketStart {
    parts: MarketParts,
    settings: MarketSettings,
    calls: CallSubscription,
    containers: Option<Arc<Containers>>,
}

/// What is looked at while the miner works.
#[derive(Debug)]
struct Watched {
    ledger: Arc<dyn Ledger>,
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    every: Duration,
}

/// What a miner is, for people.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The chain, as it was at the start.
    pub head: Head,
    /// The model, as claims name it.
    pub model: String,
    /// Names of the tools that runs may use.
    pub tools: Vec<String>,
    /// Runs in the journal that are not over.
    pub open: usize,
}

impl Program {
    /// Reads the configuration, asks the node, and opens journal, tools and model. Waits for a node
    /// and a model's server that are away; dropping the future ends that.
    ///
    /// The answer is boxed, as that of [`Self::run`], so that it is compiled in this crate, once: what an
    /// `async fn` does is compiled in each crate that awaits it.
    ///
    /// # Errors
    /// The first of them that cannot be had as it is configured.
    #[must_use]
    pub fn open(setting: Setting) -> BoxFuture<'static, Result<Self, ProgramError>> {
        Box::pin(Self::open_parts(setting))
    }

    async fn open_parts(setting: Setting) -> Result<Self, ProgramError> {
        let Settings { policy: _, engine: config, tools, model, alarms, metrics: _, sweep, market } =
            Settings::read(&setting.config)?;
        let (policy_file, policy) = PolicyFile::open(&setting.config)?;
        let Setting { config: file, folder, key, node, clock, wrapper, counters, .. } = setting;
        let Setting { backend, waiting, stop, memory, chain_id, .. } = setting;
        check_sweep(sweep.as_ref(), key.address())?;
        let chain = Node::new(node.clone()).map_err(SetupError::from)?;
        let asked = admitted(&chain, &waiting, (memory.as_ref(), chain_id.as_deref()));
        let (head, backend) = tokio::try_join!(asked, connected(backend, &model, &waiting, &stop))?;
        let chain = Arc::new(chain.bound_to(head.chain()));
        let journal = Arc::new(open_journal(&folder, &key, &head)?);
        remember(&head.chain(), memory.as_ref(), chain_id.as_deref())?;
        let around = surroundings((&node, &clock, &stop), &folder, wrapper);
        let market = with_executors(market, &backend, (key.address(), &clock)).await;
        let market = MarketStart::new(market, (&file, &folder), (&chain, &node), key.address());
        let agents = tools.agents.then(|| Arc::new(RunAgents::of(&market.parts)));
        let of_runs = agents.clone().map(|it| -> Arc<dyn AgentTools> { it });
        let toolbox = Toolbox::open(&tools, &around)?.with_agents(of_runs);
        let (manifest, news) = (backend.manifest().clone(), Arc::<Mutex<PolicyNews>>::default());
        let tally = Arc::new(Tally::new(Arc::clone(&clock), counters));
        journal.count_writes(Arc::<Tally>::clone(&tally));
        let (policies, policy) = watch::channel(Arc::new(policy));
        let guarded = Arc::new(Guarded::new(backend, Arc::clone(&clock)));
        let parts = Parts {
            config,
            key,
            policy,
            backend: Arc::new(Measured::new(guarded, Arc::<Tally>::clone(&tally))),
            clock,
            runs: Arc::<Node>::clone(&chain),
            ledger: chain,
            courses: Arc::new(Understanding::new(toolbox.clone(), manifest.clone())),
            tools: Arc::new(ToolRunner::new(toolbox.clone(), agents)),
            journal: Arc::clone(&journal),
            counters: Arc::<Tally>::clone(&tally),
        };
        let tools = tools.allow.into_iter().collect();
        let summary = Summary { head, model: manifest.name, tools, open: unfinished(&journal)? };
        let status_service = Arc::new(StatusService::new(Plan {
            wallet: parts.key.address(),
            model: summary.model.clone(),
            tools: summary.tools.clone(),
            journal: Arc::clone(&journal),
            policy: parts.policy.clone(),
            clock: Arc::clone(&parts.clock),
            config: file,
            alarms,
            sweep: sweep.clone(),
            toolbox: toolbox.clone(),
            news: Arc::clone(&news),
            tally,
            market: market.parts.clone(),
        }));
        Ok(Self {
            watched: Watched::by(&parts),
            engine: Engine::new(parts, stop.clone()),
            market,
            journal,
            subscription: Subscription::new(node),
            summary,
            toolbox,
            policy: policy_file,
            policies,
            news,
            status_service,
            sweep,
            stop,
        })
    }

    /// Where it can be asked how it is.
    #[must_use]
    pub fn status_service(&self) -> Arc<StatusService> {
        Arc::clone(&self.status_service)
    }

    /// Its journal, to read in while it works.
    #[must_use]
    pub fn journal(&self) -> Arc<Journal> {
        Arc::clone(&self.journal)
    }

    /// Works until it is stopped.
    ///
    /// # Errors
    /// When the journal cannot be written.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, Result<(), ProgramError>> {
        Box::pin(self.work())
    }

    async fn work(self) -> Result<(), ProgramError> {
        let Self { engine, subscription, toolbox, policy, policies, stop, .. } = self;
        let following = stop.child_token();
        let MarketStart { parts, settings, calls, containers } = self.market;
        let watched = containers.clone().map(|it| it.watch(following.clone()));
        let watch =
            async { futures::future::OptionFuture::from(watched).await.unwrap_or_default() };
        let market = parts.config.clone();
        let also: Reread = Box::new(move |text| {
            settings.take(text).map_err(|it| PolicyError::Other(it.to_string()))
        });
        let serve = engine.market(parts).run(Box::new(calls));
        let Watched { ledger, backend, clock, every } = self.watched;
        let told = (self.news, clock);
        let follow = follow_policy(policy, (policies, also), told, POLICY_PAUSE, following.clone());
        let looking = look_out(self.status_service, ledger, backend, every, following.clone());
        let sweeper = self.sweep.map(|config| engine.sweeper(market).run(config));
        let sweep = async {
            match sweeper {
                Some(sweep) => sweep.await,
                None => Ok(()),
            }
        };
        let work = async {
            // Runs that are resumed are to have the tools that they had.
            tokio::select! {
                () = toolbox.tried() => (),
                () = stop.cancelled() => (),
            }
            let outcome = engine.run(Box::new(subscription)).await;
            following.cancel();
            outcome
        };
        let ((), (), (), swept, served, outcome) =
            tokio::join!(follow, looking, watch, sweep, serve, work);
        toolbox.close().await;
        if let Some(containers) = containers {
            containers.close().await;
        }
        outcome?;
        served?;
        Ok(swept?)
    }
}

/// What tools may use: node, clock and end of the program, a folder below the miner's, confinement.
fn surroundings(
    (node, clock, stop): (&Client, &Arc<dyn Clock>, &CancellationToken),
    folder: &Path,
    wrapper: Option<Wrapper>,
) -> Surroundings {
    Surroundings {
        node: node.clone(),
        clock: Arc::clone(clock),
        names: Arc::new(SystemNames),
        folder: folder.join("mcp"),
        wrapper,
        stop: stop.clone(),
    }
}

/// Refuses a cold address that is the wallet's own.
fn check_sweep(sweep: Option<&SweepConfig>, wallet: Address) -> Result<(), ProgramError> {
    sweep.map_or(Ok(()), |sweep| sweep.check_wallet(wallet)).map_err(ProgramError::Sweep)
}

/// The chain, once the node tells of it.
async fn head(chain: &Node, waiting: &Waiting) -> Result<Head, ProgramError> {
    let (ask, is_passing) = (|| chain.head(), ChainError::is_passing);
    Ok(until_there(Needed::Node, waiting, Pace::START, ask, is_passing).await?)
}

/// The same, if the wallet signs for it.
async fn admitted(
    chain: &Node,
    waiting: &Waiting,
    (memory, named): (Option<&ChainMemory>, Option<&str>),
) -> Result<Head, ProgramError> {
    let head = head(chain, waiting).await?;
    admit(&head.chain(), memory, named).map(|()| head)
}

/// Checks that the wallet signs for a chain. Nothing is remembered yet: the journal may know better.
fn admit(
    got: &ChainIdentity,
    memory: Option<&ChainMemory>,
    named: Option<&str>,
) -> Result<(), ProgramError> {
    let checked = match memory {
        Some(memory) => memory.check(got, named).map(drop),
        None => check_id(got).and_then(|()| named.map_or(Ok(()), |named| check_named(got, named))),
    };
    checked.map_err(ProgramError::Chain)
}

/// Remembers the chain, which the journal is of. Where that cannot be beside the key, the journal
/// remembers it.
fn remember(
    got: &ChainIdentity,
    memory: Option<&ChainMemory>,
    named: Option<&str>,
) -> Result<(), ProgramError> {
    match memory.map(|memory| memory.bind(got, named)) {
        Some(Ok(Bond::New)) => tracing::info!("the wallet signs for chain {got} from now on"),
        Some(Ok(Bond::Once)) => tracing::warn!("the wallet signs for chain {got}, as it was named"),
        Some(Ok(Bond::Known)) | None => (),
        Some(Err(why @ WalletError::ChainNotKept { .. })) => {
            tracing::warn!(%why, "only the journal remembers the chain");
        }
        Some(Err(why)) => return Err(ProgramError::Chain(why)),
    }
    Ok(())
}

/// The model: the one that is given, or that of the configuration, once its server is there.
async fn connected(
    given: Option<Arc<dyn Backend>>,
    model: &ModelConfig,
    waiting: &Waiting,
    stop: &CancellationToken,
) -> Result<Arc<dyn Backend>, ProgramError> {
    if let Some(given) = given {
        return Ok(given);
    }
    let config = match model {
        ModelConfig::Embedded(config) => return embedded(config.clone()).await,
        ModelConfig::Server(config) => config,
    };
    let connect = || async {
        let config = config.clone();
        let connected: Result<Arc<dyn Backend>, SetupError> = match config.interface {
            Interface::Ollama => Ok(Arc::new(Ollama::connect(config, stop).await?)),
            Interface::OpenAi => Ok(Arc::new(OpenAi::connect(config, stop).await?)),
        };
        connected
    };
    let is_passing = SetupError::is_passing;
    Ok(until_there(Needed::Backend, waiting, Pace::START, connect, is_passing).await?)
}

/// The model inside the process, opened on a thread of its own, since that takes seconds.
async fn embedded(config: EmbeddedConfig) -> Result<Arc<dyn Backend>, ProgramError> {
    match tokio::task::spawn_blocking(move || Embedded::open(&config)).await {
        Ok(opened) => Ok(Arc::new(opened?)),
        Err(ended) => Err(EmbeddedError::Threads(ended.to_string()).into()),
    }
}

/// What this program can execute: with the model, and in containers if the operator has an engine for
/// that. It is looked at once, so that offers stay as they are.
async fn with_executors(
    market: Option<MarketConfig>,
    backend: &Arc<dyn Backend>,
    (wallet, clock): (Address, &Arc<dyn Clock>),
) -> (Option<MarketConfig>, Executors, Option<Arc<Containers>>) {
    let mut executors = Executors::of(backend.for_market());
    if let Some(manifest) = market.as_ref().and_then(|market| market.server_manifest) {
        executors = executors.with_model(Arc::new(ServedModel::new(manifest, Arc::clone(backend))));
    }
    let Some(config) = market.as_ref().and_then(|market| market.containers.clone()) else {
        return (market, executors, None);
    };
    let containers = Containers::new(config, Some(wallet), Arc::clone(clock));
    containers.look().await;
    let executors = executors.with_containers(&containers);
    (market, executors, Some(containers))
}

impl MarketStart {
    fn new(
        (market, executors, containers): (Option<MarketConfig>, Executors, Option<Arc<Containers>>),
        (file, folder): (&Path, &Path),
        (chain, node): (&Arc<Node>, &Client),
        wallet: Address,
    ) -> Self {
        let (settings, config) = watch::channel(market.map(Arc::new));
        let executors = Arc::new(executors);
        let parts = MarketParts {
            config,
            fitness: Fitness::new(Arc::clone(&executors)),
            executors,
            agents: Arc::new(AgentCache::new(Arc::<Node>::clone(chain))),
            calls: Arc::<Node>::clone(chain),
            receipts: Receipts::of(folder),
            resumed: Arc::default(),
        };
        let calls = CallSubscription::new(node.clone(), wallet);
        let settings = MarketSettings::of(file.to_owned(), settings);
        Self { parts, settings, calls, containers }
    }
}

impl Watched {
    /// What an engine of these parts depends on.
    fn by(parts: &Parts) -> Self {
        Self {
            ledger: Arc::clone(&parts.ledger),
            backend: Arc::clone(&parts.backend),
            clock: Arc::clone(&parts.clock),
            every: Duration::from_millis(parts.config.poll_ms).min(LOOK_PAUSE),
        }
    }
}

/// Makes a miner's folder for its user alone, if there is none.
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(folder: &Path) -> Result<(), ProgramError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| ProgramError::Folder { path: folder.to_owned(), source })
}

/// How many runs and calls in the journal are not over.
fn unfinished(journal: &Journal) -> Result<usize, ProgramError> {
    Ok(journal.entries()?.iter().filter(|entry| !entry.is_over()).count())
}

/// Opens the journal in the miner's folder, which it makes for its user alone.
///
/// # Errors
/// When the folder cannot be made or the journal cannot be opened.
pub fn open_journal(folder: &Path, key: &Keypair, head: &Head) -> Result<Journal, ProgramError> {
    make_folder(folder)?;
    let path = folder.join(JOURNAL);
    Journal::open(&path, key.address(), &head.chain()).map_err(|source| match source {
        // It names the file itself.
        JournalError::InUse { .. } => ProgramError::Journal(source),
        JournalError::Foreign { .. }
        | JournalError::Database(_)
        | JournalError::Damaged(_)
        | JournalError::Thread(_)
        | JournalError::Ended
        | JournalError::Unwritten { .. }
        | JournalError::Unwritable(_) => ProgramError::JournalFile { path, source },
    })
}
