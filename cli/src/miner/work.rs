//! `ombra miner` without a command: the miner at work.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use miner::program::{Program, ProgramError, Setting, Summary, make_folder};
use miner::settings::Settings;
use miner::waiting::Waiting;
use node::config::Log;
use node::logging;
use node::systemd::{self, Systemd, Told};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::client::{CliError, Out, Outcome};
use super::super::clock::Clock;
use super::super::home;
use super::super::monitor::MonitorPort;
use super::confinement::wrapper;
use super::control::Socket;
use super::error::failed;
use super::figures::Figures;
use super::monitor::{self, Health};
use super::place::PlaceArgs;
use super::start::StartSocket;

#[derive(Args, Debug)]
pub(super) struct WorkArgs {
    /// The miner's configuration (docs/miner.md); `ombra miner check` checks it
    #[arg(long, value_name = "FILE", env = "OMBRA_MINER_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
    /// Metrics and health over HTTP; port 0 picks a free one [default: metrics.address]
    #[arg(long, value_name = "ADDR", env = "OMBRA_MINER_METRICS")]
    metrics: Option<SocketAddr>,
    /// Stop when standard input ends, as it does when the process that started this one ends
    #[arg(long, hide = true)]
    until_input_ends: bool,
    /// What to log
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
}

/// Where a miner is asked, from its start to its end.
struct Doors {
    health: Arc<Health>,
    figures: Arc<Figures>,
    systemd: Option<Systemd>,
}

pub(super) async fn run(args: WorkArgs, out: Out<'_>) -> Outcome {
    let WorkArgs { config, place, metrics, until_input_ends, log } = args;
    let config = config.ok_or_else(|| {
        CliError::Usage("no model is configured: give --config FILE (docs/miner.md)".into())
    })?;
    let log = Log { filter: log, ..Log::default() };
    let _log = logging::start(&log).map_err(|error| CliError::Usage(error.to_string()))?;
    let mut asked = Box::pin(asked(until_input_ends)?);
    let settings = Settings::read(&config).map_err(ProgramError::from).map_err(failed)?;
    let (key, memory, chain_id) = place.signer.signer()?.into_parts();
    let address = key.address();
    let stop = CancellationToken::new();
    let folder = place.folder(address)?;
    let waiting = Arc::new(Waiting::new(Arc::new(Clock)));
    let doors = Doors::new(Arc::clone(&waiting));
    let setting = Setting {
        config,
        folder: folder.clone(),
        key,
        memory,
        chain_id,
        node: place.node.client()?,
        clock: Arc::new(Clock),
        wrapper: Some(wrapper()?),
        counters: Arc::<Figures>::clone(&doors.figures),
        backend: None,
        waiting,
        stop: stop.clone(),
    };
    writeln!(out, "miner  {address}")?;
    let measuring = doors.measure(metrics.or(settings.metrics.address), &stop, out).await?;
    let opened = tokio::select! {
        biased;
        why = &mut asked => {
            tracing::info!("stopped before the start: {why}");
            return Ok(());
        }
        opened = Box::pin(open(setting, &folder, &doors)) => opened?,
    };
    introduce(&opened.0.summary, out)?;
    let mut work = Box::pin(work(opened, doors, measuring, stop.clone()));
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

/// Ends when the miner is to stop, and says why.
fn asked(until_input_ends: bool) -> Result<impl Future<Output = &'static str>, CliError> {
    let by_signal = home::asked()?;
    let (ended, input) = oneshot::channel();
    if until_input_ends {
        // A thread of its own, which the end of the program does not wait for.
        std::thread::spawn(move || {
            drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
            ended.send(()).ok();
        });
    }
    Ok(async move {
        tokio::select! {
            why = by_signal => why,
            Ok(()) = input => "standard input has ended",
        }
    })
}

impl Doors {
    fn new(waiting: Arc<Waiting>) -> Self {
        let systemd = Systemd::find(std::env::var_os(systemd::VARIABLE));
        Self { health: Arc::new(Health::new(waiting)), figures: Arc::default(), systemd }
    }

    /// The program is asked from now on.
    fn works(&self, program: &Program) {
        let status_service = program.status_service();
        self.figures.works(&status_service);
        self.health.works(status_service);
    }

    /// Begins to serve metrics and health, if they are to be served, and says where.
    async fn measure(
        &self,
        address: Option<SocketAddr>,
        stop: &CancellationToken,
        out: Out<'_>,
    ) -> Result<Option<JoinHandle<()>>, CliError> {
        let Some(address) = address else { return Ok(None) };
        let port = MonitorPort::bind(address).await?;
        writeln!(out, "metrics  http://{}/metrics", port.address())?;
        out.flush()?;
        let registry = Arc::new(self.figures.registry(Arc::clone(&self.health)));
        let serving = monitor::serve(port, registry, Arc::clone(&self.health), stop.clone());
        Ok(Some(tokio::spawn(serving)))
    }
}

/// Opens the program, and answers meanwhile what that waits for.
async fn open(
    setting: Setting,
    folder: &Path,
    doors: &Doors,
) -> Result<(Program, Socket), CliError> {
    make_folder(folder).map_err(failed)?;
    let answering = StartSocket::bind(folder)?.serve(Arc::clone(&setting.waiting));
    let opening = async {
        let program = Program::open(setting).await.map_err(failed)?;
        let socket = Socket::bind(folder)?;
        doors.works(&program);
        Ok((program, socket))
    };
    let telling = async {
        if let Some(systemd) = &doors.systemd {
            systemd.tell_start(Arc::<Health>::clone(&doors.health)).await;
        }
    };
    let answering = async {
        tokio::join!(answering, telling);
        // The start goes on where nobody can ask.
        std::future::pending().await
    };
    tokio::select! {
        biased;
        opened = Box::pin(opening) => opened,
        never = answering => never,
    }
}

/// Works and answers until `stop` is cancelled.
async fn work(
    (program, socket): (Program, Socket),
    doors: Doors,
    measuring: Option<JoinHandle<()>>,
    stop: CancellationToken,
) -> Outcome {
    let Doors { health, figures: _, systemd } = doors;
    let answering = socket.serve(program.status_service(), stop.clone());
    let telling = async {
        if let Some(systemd) = systemd {
            let told = systemd.tell(Told { readiness: health, stop: stop.clone() }).await;
            told.unwrap_or_else(
                |error| tracing::warn!(%error, "cannot notify the service manager"),
            );
        }
    };
    let measuring = async {
        if let Some(Err(ended)) = futures::future::OptionFuture::from(measuring).await {
            tracing::error!(%ended, "the metrics port stopped working");
        }
    };
    let working = async {
        let outcome = program.run().await;
        stop.cancel();
        outcome
    };
    let (outcome, (), (), ()) = tokio::join!(working, answering, measuring, telling);
    outcome.map_err(failed)
}

fn introduce(summary: &Summary, out: Out<'_>) -> Outcome {
    let Summary { head, model, tools, open } = summary;
    writeln!(out, "chain  {} at height {}", head.chain(), head.height)?;
    writeln!(out, "model  {model}")?;
    writeln!(out, "tools  {}", tools.join(", "))?;
    writeln!(out, "open   {open} runs in the journal")?;
    out.flush()?;
    Ok(())
}
