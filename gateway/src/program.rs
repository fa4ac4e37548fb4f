//! The gateway put together: a wallet, a node, a store, and a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::clock::Clock;
use futures::future::BoxFuture;
use miner::chain::client::Node as MinersNode;
use miner::outbox::Halt;
use tokio_util::sync::CancellationToken;
use types::Keypair;
use wallet::{ChainIdentity, ChainMemory, Client, ClientError, WalletError, chain};

use crate::chain::Node;
use crate::http::Server;
use crate::market::Pinned;
use crate::operate::Counters;
use crate::request_service::{Parts, RequestService};
use crate::settings::{Settings, SettingsError};
use crate::store::{OpenError, Opening, Store};

/// The store's file in the gateway's folder.
pub const STORE: &str = "gateway.redb";
/// The id of development chains, on which nobody asks anything that is not to be known.
const DEVELOPMENT_CHAIN: &str = "ombra-dev";

/// What a gateway is made of.
#[derive(Debug)]
pub struct Setting {
    /// The settings.
    pub settings: Settings,
    /// The folder of the store.
    pub folder: PathBuf,
    /// The wallet that pays.
    pub key: Keypair,
    /// Where the chain of the key is remembered; none for keys that everybody has.
    pub memory: Option<ChainMemory>,
    /// The chain that the operator named.
    pub chain_id: Option<String>,
    /// The node.
    pub node: Client,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who counts what happens.
    pub counters: Arc<dyn Counters>,
    /// Ends the gateway.
    pub stop: CancellationToken,
}

/// Why a gateway does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The node does not answer.
    #[error(transparent)]
    Node(#[from] ClientError),
    /// The key does not sign for the node's chain.
    #[error(transparent)]
    Chain(#[from] WalletError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be used.
    #[error("the gateway's store: {0}")]
    Store(#[from] miner::journal::JournalError),
    /// The folder of the store cannot be made.
    #[error("{}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The node does not answer with the agent of a tool, or does not have it yet.
    #[error("tools.{name}: {why}")]
    Agent {
        /// Which tool.
        name: String,
        /// Why.
        why: String,
    },
    /// A tool of the settings does not fit its agent.
    #[error("tools.{name}: {why}")]
    Tool {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
    /// No client for HTTP can be made.
    #[error("cannot create the HTTP client: {0}")]
    Http(String),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Prompts are public, and the operator has not said to know it.
    #[error(
        "everything you ask through the gateway stays public on chain {chain} forever; to confirm \
         that this is what you want, set public_prompts = true in its settings, or give \
         --public-prompts"
    )]
    Public {
        /// The chain.
        chain: String,
    },
    /// The wallet has more than it should.
    #[error(
        "the wallet has {balance_micro} micro-OMBRA, but balance_micro_max is {most_micro}: move \
         the rest away, or raise it"
    )]
    TooRich {
        /// What it has.
        balance_micro: u64,
        /// What it should have at most.
        most_micro: u64,
    },
}

/// A gateway that is ready to work.
#[derive(Debug)]
pub struct Program {
    service: Arc<RequestService>,
    server: Server,
    chain: ChainIdentity,
}

impl Program {
    /// Asks the node for its chain, opens the store and begins to listen.
    ///
    /// The answer is boxed, as that of [`Self::run`], so that it is compiled in this crate, once: what an
    /// `async fn` does is compiled in each crate that awaits it.
    ///
    /// # Errors
    /// What stands in the way.
    #[must_use]
    pub fn open(setting: Setting) -> BoxFuture<'static, Result<Self, ProgramError>> {
        Box::pin(Self::open_and_listen(setting))
    }

    async fn open_and_listen(setting: Setting) -> Result<Self, ProgramError> {
        let address = setting.settings.listen;
        let (service, chain) = open_service(setting).await?;
        let listening = |source| ProgramError::Listen { address, source };
        let server = Server::bind(address).await.map_err(listening)?;
        Ok(Self { service, server, chain })
    }

    /// The service, at which it can be asked how it is.
    #[must_use]
    pub const fn service(&self) -> &Arc<RequestService> {
        &self.service
    }

    /// The chain.
    #[must_use]
    pub const fn chain(&self) -> &ChainIdentity {
        &self.chain
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say it.
    pub fn address(&self) -> Result<std::net::SocketAddr, std::io::Error> {
        self.server.address()
    }

    /// Works until it is stopped.
    ///
    /// # Errors
    /// When the store cannot be used.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, Result<(), ProgramError>> {
        Box::pin(self.work())
    }

    async fn work(self) -> Result<(), ProgramError> {
        let Self { service, server, chain: _ } = self;
        let serving = server.serve(Arc::clone(&service), service.stop.clone());
        let (outcome, ()) = tokio::join!(service.run(), serving);
        match outcome {
            Ok(()) | Err(Halt::Stopped) => Ok(()),
            Err(Halt::Journal(error)) => Err(error.into()),
        }
    }
}

/// The service of a wallet on the chain of its node.
///
/// # Errors
/// As for [`Program::open`].
#[must_use]
pub fn open_service(
    setting: Setting,
) -> BoxFuture<'static, Result<(Arc<RequestService>, ChainIdentity), ProgramError>> {
    Box::pin(service_of(setting))
}

async fn service_of(
    setting: Setting,
) -> Result<(Arc<RequestService>, ChainIdentity), ProgramError> {
    let Setting { settings, folder, key, memory, chain_id, node, clock, counters, stop } = setting;
    let told = node.chain_info().await?.into_value();
    let chain = told.chain();
    bind(&chain, memory.as_ref(), chain_id.as_deref())?;
    if !settings.public_prompts && chain.chain_id != DEVELOPMENT_CHAIN {
        return Err(ProgramError::Public { chain: chain.chain_id });
    }
    let account = node.account(&key.address()).await?.into_value();
    let (balance_micro, most_micro) = (account.balance.get(), settings.balance_micro_max);
    if balance_micro > most_micro {
        return Err(ProgramError::TooRich { balance_micro, most_micro });
    }
    let store = open_store(&folder, &key, Some(&chain), Arc::clone(&clock))?;
    let store = store.counted_by(counters);
    store.begin_books(Opening { balance_micro, height: told.height }).await?;
    let miners = MinersNode::new(node.clone());
    let miners = miners.map_err(|error| ProgramError::Http(error.to_string()))?;
    let node = Node::new(node, miners.bound_to(chain.clone()));
    let pinned = pinned(&settings, &node).await?;
    let (store, chain_id) = (Arc::new(store), chain.chain_id.clone());
    let parts = Parts { settings, key, store, node, chain_id, pinned, clock, stop };
    Ok((RequestService::new(parts), chain))
}

/// The tools of the settings, as the chain has their agents.
async fn pinned(settings: &Settings, node: &Node) -> Result<Vec<Pinned>, ProgramError> {
    let mut all = Vec::new();
    for (name, tool) in &settings.tools {
        let wrong = |why| ProgramError::Tool { name: name.clone(), why };
        let missing = |why| ProgramError::Agent { name: name.clone(), why };
        let (id, version) = tool.agent().map_err(wrong)?;
        let found = node.published(&id, &version).await;
        let found = found.map_err(|error| missing(error.to_string()))?;
        let published =
            found.ok_or_else(|| missing("the node does not have this agent".to_owned()))?;
        let pinned = Pinned::new(name, tool, Arc::new(published)).map_err(wrong)?;
        let (agent, says) = (&pinned.published.agent.metadata.name, pinned.description());
        tracing::info!(
            tool = name,
            agent,
            says,
            "an agent is a tool; this is its author's description"
        );
        all.push(pinned);
    }
    Ok(all)
}

/// Opens the store in a folder, which is made for its user alone.
///
/// # Errors
/// When the folder cannot be made, or the store cannot be opened.
pub fn open_store(
    folder: &Path,
    key: &Keypair,
    chain: Option<&ChainIdentity>,
    clock: Arc<dyn Clock>,
) -> Result<Store, ProgramError> {
    miner::program::make_folder(folder).map_err(|error| ProgramError::Folder {
        path: folder.to_owned(),
        source: std::io::Error::other(error),
    })?;
    Ok(Store::open(&folder.join(STORE), key.address(), chain, clock)?)
}

/// Checks that the key signs for the node's chain, and remembers that.
fn bind(
    got: &ChainIdentity,
    memory: Option<&ChainMemory>,
    named: Option<&str>,
) -> Result<(), WalletError> {
    match memory {
        Some(memory) => memory.bind(got, named).map(drop),
        None => {
            chain::check_id(got)?;
            named.map_or(Ok(()), |named| chain::check_named(got, named))
        }
    }
}
