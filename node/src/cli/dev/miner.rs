//! The miner of a chain for one person: account 1, with the model inside the process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use miner::adapters::{Embedded, EmbeddedConfig, EmbeddedError};
use miner::backend::Backend;
use miner::journal::Journal;
use miner::program::{Program, ProgramError, Setting, Summary};
use miner::settings::{ModelConfig, Settings};
use miner::waiting::Waiting;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use types::Address;

use super::DevChain;
use crate::cli::client::{CliError, Out, Outcome};
use crate::cli::miner::{Clock, Socket, failed, wrapper};
use crate::cli::model;
use crate::config::Home;

/// The account that mines.
const ACCOUNT: usize = 1;
/// The settings, unless there are some in the folder.
const SETTINGS: &str = "# The miner of `ombra dev --miner` and `ombra demo`; docs/miner.md has every \
                        setting.\n[embedded]\n\n[policy]\nclaim_jitter_ms = 0\n";
/// How long the miner may take to stop. What it was doing goes on at the next start.
const STOP_TIME: Duration = Duration::from_secs(5);

/// The file of the settings.
pub(in crate::cli) fn config(home: &Home) -> PathBuf {
    home.directory().join("miner.toml")
}

/// The folder of the miners' journals: they are of one chain, and go with it.
pub(super) fn journals(home: &Home) -> PathBuf {
    home.directory().join("miner")
}

/// A model that is being opened while the chain starts.
pub(in crate::cli) struct Opening(Option<JoinHandle<Result<Embedded, EmbeddedError>>>);

impl Opening {
    /// Sees to it that there are settings and the model that they name, fetching its file if it is
    /// the one that this program knows, and begins to open it. `asked` ends the fetching.
    pub(in crate::cli) async fn begin(
        home: &Home,
        asked: &mut (impl Future<Output = &'static str> + Unpin),
    ) -> Result<Self, CliError> {
        let file = config(home);
        if !file.exists() {
            crate::cli::home::write_new(&file, SETTINGS)?;
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

fn open(config: &EmbeddedConfig) -> Result<Embedded, EmbeddedError> {
    Embedded::open(config)
}

/// A miner that works.
pub(in crate::cli) struct DevMiner {
    address: Address,
    summary: Summary,
    journal: Arc<Journal>,
    stop: CancellationToken,
    work: JoinHandle<Result<(), ProgramError>>,
}

impl DevMiner {
    /// Starts it on a chain that answers.
    pub(in crate::cli) async fn start(
        chain: &DevChain,
        opening: Opening,
    ) -> Result<Self, CliError> {
        let key = chain.accounts().get(ACCOUNT).ok_or_else(|| {
            CliError::Usage("the miner is account 1, so --accounts is at least 2".to_owned())
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
            Ok(socket) => drop(tokio::spawn(socket.serve(program.desk(), stop.clone()))),
            Err(error) => tracing::warn!(%error, "the miner cannot be asked how it is"),
        }
        let work = tokio::spawn(program.run());
        Ok(Self { address, summary, journal, stop, work })
    }

    /// Its wallet.
    pub(in crate::cli) const fn address(&self) -> Address {
        self.address
    }

    /// Names of the tools that runs may use.
    pub(in crate::cli) fn tools(&self) -> &[String] {
        &self.summary.tools
    }

    /// What it has written down.
    pub(in crate::cli) const fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// What it is, for people.
    pub(in crate::cli) fn print(&self, out: Out<'_>) -> Outcome {
        writeln!(out, "miner     {}, account {ACCOUNT}", self.address)?;
        writeln!(out, "model     {}", self.summary.model)?;
        Ok(())
    }

    /// Works until `asked` ends, and stops then; says why it ended, and how.
    pub(super) async fn run_until(
        &mut self,
        asked: impl Future<Output = &'static str>,
    ) -> (&'static str, Outcome) {
        tokio::select! {
            biased;
            why = asked => {
                self.stop.cancel();
                let Ok(ended) = timeout(STOP_TIME, &mut self.work).await else {
                    tracing::warn!("the miner did not stop in time");
                    self.work.abort();
                    return (why, Ok(()));
                };
                (why, outcome(ended))
            }
            ended = &mut self.work => {
                let ended = outcome(ended).and_then(|()| {
                    Err(CliError::Failed("the miner ended by itself".to_owned()))
                });
                ("the miner ended", ended)
            }
        }
    }
}

fn outcome(ended: Result<Result<(), ProgramError>, tokio::task::JoinError>) -> Outcome {
    match ended {
        Ok(outcome) => outcome.map_err(failed),
        Err(ended) => Err(CliError::Failed(format!("the miner: {ended}"))),
    }
}
