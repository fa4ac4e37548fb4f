//! The gateway of a chain for one person: account 2, with a key that is made anew at each start.

use std::path::PathBuf;
use std::sync::Arc;

use gateway::money::Limits;
use gateway::program::{Program, ProgramError, Setting};
use gateway::settings::Settings;
use gateway::store::KeyFault;
use node::config::Home;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::background::Background;
use super::chain::DevChain;
use crate::client::{CliError, Out, Outcome};
use crate::clock::Clock;
use crate::gateway::{Figures, Socket, failed, serve_monitoring};
use crate::monitor::MonitorPort;

/// The account that pays.
const ACCOUNT: usize = 2;
/// The name of the key.
const KEY: &str = "dev";

/// The folder of the gateways' stores: they are of one chain, and go with it.
pub(super) fn stores(home: &Home) -> PathBuf {
    home.directory().join("gateway")
}

/// A gateway that works.
pub(super) struct DevGateway {
    url: String,
    secret: String,
    /// Its work.
    pub(super) background: Background<ProgramError>,
}

impl DevGateway {
    /// Starts it on a chain that answers. Settings are in `gateway.toml` in the folder of the chain, if
    /// there is one.
    pub(super) async fn start(
        chain: &DevChain,
        listen: Option<std::net::SocketAddr>,
    ) -> Result<Self, CliError> {
        let key = chain.accounts().get(ACCOUNT).ok_or_else(|| {
            CliError::Usage("the gateway is account 2, so --accounts must be at least 3".to_owned())
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
        let (figures, metrics) = (Arc::<Figures>::default(), settings.metrics.address);
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
            counters: Arc::<Figures>::clone(&figures),
            stop: stop.clone(),
        };
        let program = Program::open(setting).await.map_err(failed)?;
        let store = program.service().store();
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
                drop(tokio::spawn(socket.serve(Arc::clone(program.service()), stop.clone())));
            }
            Err(error) => tracing::warn!(%error, "cannot ask the gateway for its status"),
        }
        if let Some(address) = metrics {
            let (port, service) =
                (MonitorPort::bind(address).await?, Arc::clone(program.service()));
            drop(tokio::spawn(serve_monitoring(port, figures, service, stop.clone())));
        }
        let work = tokio::spawn(program.run());
        let background =
            Background { name: "gateway", ended: "the gateway ended", stop, work, failed };
        Ok(Self { url, secret, background })
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
}
