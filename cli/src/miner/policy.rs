//! `ombra miner policy check`: what a policy would decide about the runs that wait now.

use std::path::PathBuf;
use std::sync::Arc;

use agent::tools::Surroundings;
use agent::tools::ports::SystemNames;
use clap::{Args, Subcommand};
use miner::operate::{Trial, Tried};
use miner::settings::Settings;
use node::clock::now_ms;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use types::Amount;

use super::super::client::options::{NodeArgs, SignerArgs};
use super::super::client::output;
use super::super::client::{CliError, Out, Outcome};
use super::super::clock::Clock;
use super::error::not_answered;
use super::place::chain;

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Check a configuration, and say which pending runs of the node it would claim or skip, and why;
    /// nothing is claimed
    #[command(after_help = "Example: ombra miner policy check --config miner.toml\n\n\
                            The check assumes that the model and the MCP servers are available: it \
                            does not ask the model and does not start the servers. Without a \
                            wallet, it ignores the balance and lapsed claims. It always ignores \
                            claims of other miners, free slots and the counts of the day.")]
    Check(CheckArgs),
}

#[derive(Args, Debug)]
pub(super) struct CheckArgs {
    /// The miner's configuration
    #[arg(long, value_name = "FILE", env = "OMBRA_MINER_CONFIG")]
    config: PathBuf,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    signer: SignerArgs,
}

pub(super) async fn run(command: PolicyCommand, out: Out<'_>) -> Outcome {
    let PolicyCommand::Check(CheckArgs { config, node, signer }) = command;
    let wrong = |error: &dyn std::fmt::Display| CliError::Usage(error.to_string());
    let settings = Settings::read(&config).map_err(|error| wrong(&error))?;
    if !node.json {
        writeln!(out, "{}: no faults", config.display())?;
        out.flush()?;
    }
    let wallet = signer.address_if_given()?;
    if let (Some(sweep), Some(wallet)) = (&settings.sweep, wallet) {
        sweep.check_wallet(wallet).map_err(CliError::Usage)?;
    }
    let around = Surroundings {
        node: node.client()?,
        clock: Arc::new(Clock),
        names: Arc::new(SystemNames),
        // For MCP servers, of which none is started.
        folder: std::env::temp_dir(),
        wrapper: None,
        stop: CancellationToken::new(),
    };
    let trial = Trial::new(settings, &around).map_err(|error| wrong(&error))?;
    let tried = trial.run(&chain(&node)?, wallet, now_ms()).await.map_err(not_answered)?;
    if node.json {
        for Tried { run, max_fee_micro, decision } in &tried {
            let code = decision.code();
            let line = json!({ "run": run, "max_fee_micro": max_fee_micro, "code": code, "decision": decision });
            writeln!(out, "{line}")?;
        }
        return Ok(());
    }
    if tried.is_empty() {
        writeln!(out, "no run waits for a miner")?;
        return Ok(());
    }
    let mut rows = output::table(["RUN", "MAX FEE", "DECISION", "WHY"]);
    for Tried { run, max_fee_micro, decision } in &tried {
        rows.add_row([
            run.to_string(),
            output::ombra(Amount::new(*max_fee_micro)),
            decision.code().to_owned(),
            // A reason may quote the request.
            output::one_line(&decision.to_string(), 160),
        ]);
    }
    writeln!(out, "{rows}")?;
    Ok(())
}
