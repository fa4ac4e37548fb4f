//! `ombra mcp`: the gateway for a client of the Model Context Protocol that starts it itself.
//!
//! Standard output has the protocol and nothing else; logs go to standard error.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use gateway::mcp::serve_stdio;
use gateway::operate::Uncounted;
use gateway::program::{ProgramError, Setting, open_service};
use gateway::settings::Settings;
use miner::outbox::Halt;
use node::config::Log;
use node::logging;
use tokio_util::sync::CancellationToken;
use types::Amount;

use super::client::input::amount;
use super::client::{CliError, Outcome};
use super::clock::Clock;
use super::gateway::{LimitArgs, PlaceArgs, Socket, failed};
use super::home;

/// Let an MCP client on this machine pay miners on the chain, over standard input and output
#[derive(Args, Debug)]
#[command(after_help = "Example: ombra mcp --wallet till --public-prompts --budget 0.5ombra \
                  --per-request 0.01ombra\n\n\
                  The MCP client starts this command; docs/gateway.md has a configuration. Only \
                  one process at a time can use a wallet: several clients can share `ombra \
                  gateway`, at its path /mcp.\n\
                  Everything you ask through it stays public on the chain forever.")]
pub(super) struct McpArgs {
    /// The gateway's configuration (docs/gateway.md)
    #[arg(long, value_name = "FILE", env = "OMBRA_GATEWAY_CONFIG")]
    config: Option<PathBuf>,
    /// Confirm that everything you ask stays public on the chain forever
    #[arg(long, env = "OMBRA_GATEWAY_PUBLIC_PROMPTS")]
    public_prompts: bool,
    /// The most that the wallet may hold [default: 10ombra]
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    balance_max: Option<Amount>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    place: PlaceArgs,
    /// What is logged
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
}

pub(super) async fn run(args: McpArgs) -> Outcome {
    let log = Log { filter: args.log.clone(), ..Log::default() };
    let _log = logging::start(&log).map_err(|error| CliError::Usage(error.to_string()))?;
    let asked = home::asked()?;
    let settings = settings(&args)?;
    let (key, memory, chain_id) = args.place.signer.signer()?.into_parts();
    let folder = args.place.folder.of(key.address())?;
    let stop = CancellationToken::new();
    let setting = Setting {
        settings,
        folder: folder.clone(),
        key,
        memory,
        chain_id,
        node: args.place.node.client()?,
        clock: Arc::new(Clock),
        counters: Arc::new(Uncounted),
        stop: stop.clone(),
    };
    let (service, chain) = open_service(setting).await.map_err(failed)?;
    let socket = Socket::bind(&folder)?;
    let key = service.store().process_key(args.limits.limits()).await;
    let key = key.map_err(|fault| CliError::Failed(fault.to_string()))?;
    tracing::info!(wallet = %service.wallet(), %chain, "serving a client on standard input");
    let answering = socket.serve(Arc::clone(&service), stop.clone());
    let talking = async {
        let talked = serve_stdio(&service, key).await;
        stop.cancel();
        talked
    };
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
    let (worked, talked, (), ()) = tokio::join!(service.run(), talking, answering, stopping);
    match worked {
        Ok(()) | Err(Halt::Stopped) => (),
        Err(Halt::Journal(error)) => return Err(failed(ProgramError::Store(error))),
    }
    talked.map_err(|error| CliError::Failed(error.to_string()))
}

/// Flags before the environment, and that before the file.
fn settings(args: &McpArgs) -> Result<Settings, CliError> {
    let mut settings = match &args.config {
        Some(path) => Settings::read(path).map_err(ProgramError::from).map_err(failed)?,
        None => Settings::default(),
    };
    settings.public_prompts |= args.public_prompts;
    if let Some(most) = args.balance_max {
        settings.balance_micro_max = most.get();
    }
    Ok(settings)
}
