//! `ombra miner` without a command: the miner at work.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use miner::program::{Program, Setting, Summary};
use tokio_util::sync::CancellationToken;
use types::Address;

use super::super::client::{CliError, Out, Outcome};
use super::super::home;
use super::control::Socket;
use super::figures::Figures;
use super::monitor::{Health, Monitor};
use super::place::PlaceArgs;
use super::{Clock, failed, wrapper};
use crate::config::Log;
use crate::logging;
use crate::systemd::{self, Systemd, Told};

#[derive(Args, Debug)]
pub(super) struct WorkArgs {
    /// The miner's configuration (docs/miner.md); `ombra miner check` tells what is wrong with one
    #[arg(long, value_name = "FILE", env = "OMBRA_MINER_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
    /// Metrics and health over HTTP; port 0 picks a free one [default: metrics.address]
    #[arg(long, value_name = "ADDR", env = "OMBRA_MINER_METRICS")]
    metrics: Option<SocketAddr>,
    /// What is logged
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
}

/// Where a running miner is asked.
struct Doors {
    socket: Socket,
    monitor: Option<Monitor>,
    figures: Arc<Figures>,
}

pub(super) async fn run(args: WorkArgs, out: Out<'_>) -> Outcome {
    let WorkArgs { config, place, metrics, log } = args;
    let config = config.ok_or_else(|| {
        CliError::Usage("which model works? give --config FILE (docs/miner.md)".into())
    })?;
    let log = Log { filter: log, ..Log::default() };
    let _log = logging::start(&log).map_err(|error| CliError::Usage(error.to_string()))?;
    let mut asked = Box::pin(home::asked()?);
    let key = place.signer.keypair()?;
    let address = key.address();
    let stop = CancellationToken::new();
    let folder = place.folder(address)?;
    let figures = Arc::new(Figures::default());
    let setting = Setting {
        config,
        folder: folder.clone(),
        key,
        node: place.node.client()?,
        clock: Arc::new(Clock),
        wrapper: Some(wrapper()?),
        counters: Arc::<Figures>::clone(&figures),
        backend: None,
        stop: stop.clone(),
    };
    let program = tokio::select! {
        biased;
        why = &mut asked => {
            tracing::info!("stopped before the start: {why}");
            return Ok(());
        }
        program = Box::pin(Program::open(setting)) => program.map_err(failed)?,
    };
    let socket = Socket::bind(&folder)?;
    let monitor = match metrics.or_else(|| program.metrics()) {
        Some(address) => Some(Monitor::bind(address).await?),
        None => None,
    };
    let doors = Doors { socket, monitor, figures };
    introduce(&program.summary, address, doors.monitor.as_ref(), out)?;
    let mut work = Box::pin(work(program, doors, stop.clone()));
    tokio::select! {
        biased;
        why = &mut asked => {
            tracing::info!("stopping: {why}; runs go on at the next start");
            stop.cancel();
            work.await
        }
        outcome = &mut work => outcome,
    }
}

/// Works and answers until `stop` is cancelled.
async fn work(program: Program, doors: Doors, stop: CancellationToken) -> Outcome {
    let Doors { socket, monitor, figures } = doors;
    let desk = program.desk();
    let answering = socket.serve(Arc::clone(&desk), stop.clone());
    let measuring = async {
        if let Some(monitor) = monitor {
            let registry = Arc::new(figures.registry(Arc::clone(&desk)));
            monitor.serve(registry, Arc::clone(&desk), stop.clone()).await;
        }
    };
    let readiness = Arc::new(Health(Arc::clone(&desk)));
    let telling = async {
        if let Some(systemd) = Systemd::find(std::env::var_os(systemd::VARIABLE)) {
            let told = systemd.tell(Told { readiness, stop: stop.clone() }).await;
            told.unwrap_or_else(|error| tracing::warn!(%error, "the service manager is not told"));
        }
    };
    let working = async {
        let outcome = Box::pin(program.run()).await;
        stop.cancel();
        outcome
    };
    let (outcome, (), (), ()) = tokio::join!(working, answering, measuring, telling);
    outcome.map_err(failed)
}

fn introduce(
    summary: &Summary,
    address: Address,
    monitor: Option<&Monitor>,
    out: Out<'_>,
) -> Outcome {
    let Summary { head, model, tools, open } = summary;
    writeln!(out, "miner  {address}")?;
    writeln!(out, "chain  {} at height {}", head.chain_id, head.height)?;
    writeln!(out, "model  {model}")?;
    writeln!(out, "tools  {}", tools.join(", "))?;
    if let Some(monitor) = monitor {
        writeln!(out, "metrics  http://{}/metrics", monitor.address())?;
    }
    writeln!(out, "open   {open} runs in the journal")?;
    out.flush()?;
    Ok(())
}
