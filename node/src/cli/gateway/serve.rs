//! `ombra gateway` without a command: the gateway at work.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use gateway::program::{Program, ProgramError, Setting};
use gateway::settings::Settings;
use tokio_util::sync::CancellationToken;
use types::Amount;

use super::control::Socket;
use super::place::PlaceArgs;
use super::{Clock, failed};
use crate::cli::client::input::amount;
use crate::cli::client::{CliError, Out, Outcome};
use crate::cli::home;
use crate::config::Log;
use crate::logging;

#[derive(Args, Debug)]
pub(super) struct ServeArgs {
    /// The gateway's configuration (docs/gateway.md)
    #[arg(long, value_name = "FILE", env = "OMBRA_GATEWAY_CONFIG")]
    config: Option<PathBuf>,
    /// Where clients find it; port 0 picks a free one [default: 127.0.0.1:8788]
    #[arg(long, value_name = "ADDR", env = "OMBRA_GATEWAY_LISTEN")]
    listen: Option<SocketAddr>,
    /// It is meant that everything that is asked is public for ever
    #[arg(long, env = "OMBRA_GATEWAY_PUBLIC_PROMPTS")]
    public_prompts: bool,
    /// The most that the wallet may have [default: 10ombra]
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    balance_max: Option<Amount>,
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
    let stop = CancellationToken::new();
    let setting = Setting {
        settings,
        folder: folder.clone(),
        key,
        memory,
        chain_id,
        node: args.place.node.client()?,
        clock: Arc::new(Clock),
        stop: stop.clone(),
    };
    let program = Program::open(setting).await.map_err(failed)?;
    let socket = Socket::bind(&folder)?;
    writeln!(out, "wallet   {wallet}")?;
    writeln!(out, "chain    {}", program.chain())?;
    writeln!(out, "gateway  http://{}/v1", program.address()?)?;
    out.flush()?;
    let answering = socket.serve(Arc::clone(program.desk()), stop.clone());
    let stopping = async {
        tokio::select! {
            biased;
            () = stop.cancelled() => (),
            why = asked => {
                tracing::info!("stopping: {why}; what was begun goes on at the next start");
                stop.cancel();
            }
        }
    };
    let (outcome, (), ()) = tokio::join!(Box::pin(program.run()), answering, stopping);
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
