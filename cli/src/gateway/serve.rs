//! `ombra gateway` without a command: the gateway at work.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use futures::future::OptionFuture;
use gateway::program::{Program, ProgramError, Setting};
use gateway::settings::Settings;
use node::config::Log;
use node::logging;
use tokio_util::sync::CancellationToken;
use types::Amount;

use super::control::Socket;
use super::error::failed;
use super::figures::Figures;
use super::monitor;
use super::place::PlaceArgs;
use crate::client::input::amount;
use crate::client::{CliError, Out, Outcome};
use crate::clock::Clock;
use crate::home;
use crate::monitor::MonitorPort;

#[derive(Args, Debug)]
pub(super) struct ServeArgs {
    /// The gateway's configuration (docs/gateway.md)
    #[arg(long, value_name = "FILE", env = "OMBRA_GATEWAY_CONFIG")]
    config: Option<PathBuf>,
    /// Address to listen on for clients; port 0 picks a free one [default: 127.0.0.1:8788]
    #[arg(long, value_name = "ADDR", env = "OMBRA_GATEWAY_LISTEN")]
    listen: Option<SocketAddr>,
    /// Confirm that everything you ask stays public on the chain forever
    #[arg(long, env = "OMBRA_GATEWAY_PUBLIC_PROMPTS")]
    public_prompts: bool,
    /// The most that the wallet may hold [default: 10ombra]
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    balance_max: Option<Amount>,
    /// Metrics and health over HTTP, without a key; port 0 picks a free one [default: metrics.address,
    /// and 127.0.0.1:8789 where no address is given]
    #[arg(long, value_name = "ADDR", env = "OMBRA_GATEWAY_METRICS", num_args = 0..=1, default_missing_value = monitor::LOCAL)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    place: PlaceArgs,
    /// What is logged
    #[arg(long, value_name = "FILTER", default_value = "info,rmcp=warn")]
    log: String,
}

pub(super) async fn run(args: ServeArgs, out: Out<'_>) -> Outcome {
    let log = Log { filter: args.log.clone(), ..Log::default() };
    let _log = logging::start(&log).map_err(|error| CliError::Usage(error.to_string()))?;
    let asked = home::asked()?;
    let settings = settings(&args)?;
    let (key, memory, chain_id) = args.place.signer.signer()?.into_parts();
    let wallet = key.address();
    let folder = args.place.folder.of(wallet)?;
    let (stop, figures) = (CancellationToken::new(), Arc::<Figures>::default());
    let metrics = args.metrics.or(settings.metrics.address);
    let setting = Setting {
        settings,
        folder: folder.clone(),
        key,
        memory,
        chain_id,
        node: args.place.node.client()?,
        clock: Arc::new(Clock),
        counters: Arc::<Figures>::clone(&figures),
        stop: stop.clone(),
    };
    let program = Program::open(setting).await.map_err(failed)?;
    let socket = Socket::bind(&folder)?;
    writeln!(out, "wallet   {wallet}")?;
    writeln!(out, "chain    {}", program.chain())?;
    let measuring = match metrics {
        Some(address) => Some(MonitorPort::bind(address).await?),
        None => None,
    };
    if let Some(port) = &measuring {
        writeln!(out, "metrics  http://{}/metrics", port.address())?;
    }
    writeln!(out, "gateway  http://{}/v1", program.address()?)?;
    out.flush()?;
    let answering = socket.serve(Arc::clone(program.service()), stop.clone());
    let service = Arc::clone(program.service());
    let measuring = measuring.map(|port| monitor::serve(port, figures, service, stop.clone()));
    let measuring = OptionFuture::from(measuring);
    let stopping = async {
        tokio::select! {
            biased;
            () = stop.cancelled() => (),
            why = asked => {
                tracing::info!("stopping: {why}; unfinished requests go on at the next start");
                stop.cancel();
            }
        }
    };
    let (outcome, (), _, ()) = tokio::join!(program.run(), answering, measuring, stopping);
    outcome.map_err(failed)
}

/// Flags before the environment, and that before the file.
fn settings(args: &ServeArgs) -> Result<Settings, CliError> {
    let mut settings = match &args.config {
        Some(path) => Settings::read(path).map_err(ProgramError::from).map_err(failed)?,
        None => Settings::default(),
    };
    settings.listen = args.listen.unwrap_or(settings.listen);
    settings.public_prompts |= args.public_prompts;
    if let Some(most) = args.balance_max {
        settings.balance_micro_max = most.get();
    }
    Ok(settings)
}
