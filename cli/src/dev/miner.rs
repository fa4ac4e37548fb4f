//! The miner of a chain for one person: account 1, with the model inside the process.

use std::path::PathBuf;
use std::sync::Arc;

use agent::backend::{Backend, Embedded, EmbeddedConfig, EmbeddedError};
use miner::journal::Journal;
use miner::program::{Program, ProgramError, Setting, Summary};
use miner::settings::{ModelConfig, Settings};
use miner::waiting::Waiting;
use node::config::Home;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use types::Address;

use super::background::Background;
use super::chain::DevChain;
use crate::client::{CliError, Out, Outcome};
use crate::clock::Clock;
use crate::miner::{Socket, failed, wrapper};
use crate::model;
use crate::new_file::write_new;

/// The account that mines.
const ACCOUNT: usize = 1;
/// The settings, unless there are some in the folder.
const SETTINGS: &str = "# The miner of `ombra dev --miner` and `ombra demo`; docs/miner.md has every \
                        setting.\n[embedded]\n\n[policy]\nclaim_jitter_ms = 0\n";
/// What a chain with the agent market has besides: the miner offers to work for agents of its model, and
/// for programs.
const MARKET: &str = "\n[market]\n\n[[market.offers]]\nexecutor = \"model-1:MANIFEST\"\ncapacity = 4\n\
                      per_call_micro = 1000\nprompt_per_m_micro = 1000000\n\
                      completion_per_m_micro = 1000000\n\n[[market.offers]]\nexecutor = \"wasm-1\"\n\
                      capacity = 4\nper_call_micro = 1000\nfuel_per_g_micro = 2000\n";

/// The file of the settings.
pub(crate) fn config(home: &Home) -> PathBuf {
    home.directory().join("miner.toml")
}

/// The folder of the miners' journals: they are of one chain, and go with it.
pub(super) fn journals(home: &Home) -> PathBuf {
    home.directory().join("miner")
}

/// A model that is being opened while the chain starts.
pub(crate) struct Opening(Option<JoinHandle<Result<Embedded, EmbeddedError>>>);

impl Opening {
    /// Sees to it that there are settings and the model that they name, fetching its file if it is
    /// the one that this program knows, and begins to open it. On a chain that `has_market` new settings
    /// offer to work for agents. `asked` ends the fetching.
    pub(crate) async fn begin(
        home: &Home,
        has_market: bool,
        asked: &mut (impl Future<Output = &'static str> + Unpin),
    ) -> Result<Self, CliError> {
        let file = config(home);
        if !file.exists() {
            write_new(&file, &first_settings(has_market))?;
        }
        let settings = Settings::read(&file).map_err(ProgramError::from).map_err(failed)?;
        let ModelConfig::Embedded(config) = settings.model else { return Ok(Self(None)) };
        if config.file.is_none() {
            let path = config.path().map_err(|error| CliError::Usage(error.to_string()))?;
            model::ensure(&path, asked).await?;
        }
        Ok(Self(Some(tokio::task::spawn_blocking(move || open(&config)))))
    }

    /// The model; none if the settings name a server.
    async fn end(self) -> Result<Option<Arc<dyn Backend>>, CliError> {
        let Some(opening) = self.0 else { return Ok(None) };
        let opened = opening.await.map_err(|ended| CliError::Failed(ended.to_string()))?;
        let embedded = opened.map_err(ProgramError::from).map_err(failed)?;
        Ok(Some(Arc::new(embedded)))
    }
}

fn first_settings(has_market: bool) -> String {
    let market = MARKET.replace("MANIFEST", infer::SMOLLM2_135M_MANIFEST);
    if has_market { format!("{SETTINGS}{market}") } else { SETTINGS.to_owned() }
}

fn open(config: &EmbeddedConfig) -> Result<Embedded, EmbeddedError> {
    Embedded::open(config)
}

/// A miner that works.
pub(crate) struct DevMiner {
    address: Address,
    summary: Summary,
    journal: Arc<Journal>,
    /// Its work.
    pub(super) background: Background<ProgramError>,
}

impl DevMiner {
    /// Starts it on a chain that answers.
    pub(crate) async fn start(chain: &DevChain, opening: Opening) -> Result<Self, CliError> {
        let key = chain.accounts().get(ACCOUNT).ok_or_else(|| {
            CliError::Usage("the miner is account 1, so --accounts must be at least 2".to_owned())
        })?;
        let (address, stop) = (key.address(), CancellationToken::new());
        let folder = journals(&chain.home).join(address.to_string());
        let setting = Setting {
            config: config(&chain.home),
            folder: folder.clone(),
            key: key.clone(),
            // The node is this process, and the key is everybody's.
            memory: None,
            chain_id: None,
            node: chain.client()?,
            clock: Arc::new(Clock),
            wrapper: Some(wrapper()?),
            counters: Arc::new(miner::ports::Uncounted),
            backend: opening.end().await?,
            waiting: Arc::new(Waiting::new(Arc::new(Clock))),
            stop: stop.clone(),
        };
        let program = Program::open(setting).await.map_err(failed)?;
        let (summary, journal) = (program.summary.clone(), program.journal());
        match Socket::bind(&folder) {
            Ok(socket) => drop(tokio::spawn(socket.serve(program.status_service(), stop.clone()))),
            Err(error) => tracing::warn!(%error, "cannot ask the miner for its status"),
        }
        let work = tokio::spawn(program.run());
        let background = Background { name: "miner", ended: "the miner ended", stop, work, failed };
        Ok(Self { address, summary, journal, background })
    }

    /// Its wallet.
    pub(crate) const fn address(&self) -> Address {
        self.address
    }

    /// Names of the tools that runs may use.
    pub(crate) fn tools(&self) -> &[String] {
        &self.summary.tools
    }

    /// What it has written down.
    pub(crate) const fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// What it is, for people.
    pub(crate) fn print(&self, out: Out<'_>) -> Outcome {
        writeln!(out, "miner     {}, account {ACCOUNT}", self.address)?;
        writeln!(out, "model     {}", self.summary.model)?;
        Ok(())
    }
}
