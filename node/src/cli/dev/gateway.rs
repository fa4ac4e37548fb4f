//! The gateway of a chain for one person: account 2, with a key that is made anew at each start.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gateway::money::Limits;
use gateway::program::{Program, ProgramError, Setting};
use gateway::settings::Settings;
use gateway::store::KeyFault;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::DevChain;
use crate::cli::client::{CliError, Out, Outcome};
use crate::cli::gateway::{Socket, failed};
use crate::cli::miner::Clock;
use crate::config::Home;

/// The account that pays.
const ACCOUNT: usize = 2;
/// The name of the key.
const KEY: &str = "dev";
/// How long it may take to stop. What was begun goes on at the next start.
const STOP_TIME: Duration = Duration::from_secs(5);

/// The folder of the gateways' stores: they are of one chain, and go with it.
pub(super) fn stores(home: &Home) -> PathBuf {
    home.directory().join("gateway")
}

/// A gateway that works.
pub(super) struct DevGateway {
    url: String,
    secret: String,
    stop: CancellationToken,
    work: JoinHandle<Result<(), ProgramError>>,
}

impl DevGateway {
    /// Starts it on a chain that answers. Settings are in `gateway.toml` in the folder of the chain, if
    /// there is one.
    pub(super) async fn start(
        chain: &DevChain,
        listen: Option<std::net::SocketAddr>,
    ) -> Result<Self, CliError> {
        let key = chain.accounts().get(ACCOUNT).ok_or_else(|| {
            CliError::Usage("the gateway is account 2, so --accounts is at least 3".to_owned())
        })?;
        let file = chain.home.directory().join("gateway.toml");
        let mut settings = if file.exists() {
            Settings::read(&file).map_err(ProgramError::from).map_err(failed)?
        } else {
            Settings::default()
        };
        settings.listen = listen.unwrap_or(settings.listen);
        // The key is everybody's.
        settings.balance_micro_max = u64::MAX;
        let (stop, folder) =
            (CancellationToken::new(), stores(&chain.home).join(key.address().to_string()));
        let setting = Setting {
            settings,
            folder: folder.clone(),
            key: key.clone(),
            memory: None,
            chain_id: None,
            node: chain.client()?,
            clock: Arc::new(Clock),
            stop: stop.clone(),
        };
        let program = Program::open(setting).await.map_err(failed)?;
        let store = program.desk().store();
        match store.revoke_key(KEY).await {
            Ok(_) | Err(KeyFault::Unknown(_)) => (),
            Err(fault) => return Err(CliError::Failed(fault.to_string())),
        }
        let made = store.new_key(KEY, Limits::default()).await;
        let (_, secret) = made.map_err(|fault| CliError::Failed(fault.to_string()))?;
        let (url, secret) =
            (format!("http://{}/v1", program.address()?), secret.reveal().to_owned());
        match Socket::bind(&folder) {
            Ok(socket) => {
                drop(tokio::spawn(socket.serve(Arc::clone(program.desk()), stop.clone())));
            }
            Err(error) => tracing::warn!(%error, "the gateway cannot be asked how it is"),
        }
        let work = tokio::spawn(program.run());
        Ok(Self { url, secret, stop, work })
    }

    /// What it is, for people.
    pub(super) fn print(&self, out: Out<'_>) -> Outcome {
        writeln!(out, "gateway   {}, account {ACCOUNT}", self.url)?;
        writeln!(out, "key       {}", self.secret)?;
        Ok(())
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        json!({ "url": self.url, "key": self.secret })
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
                    tracing::warn!("the gateway did not stop in time");
                    self.work.abort();
                    return (why, Ok(()));
                };
                (why, outcome(ended))
            }
            ended = &mut self.work => {
                let ended = outcome(ended).and_then(|()| {
                    Err(CliError::Failed("the gateway ended by itself".to_owned()))
                });
                ("the gateway ended", ended)
            }
        }
    }
}

fn outcome(ended: Result<Result<(), ProgramError>, tokio::task::JoinError>) -> Outcome {
    match ended {
        Ok(outcome) => outcome.map_err(failed),
        Err(ended) => Err(CliError::Failed(format!("the gateway: {ended}"))),
    }
}
