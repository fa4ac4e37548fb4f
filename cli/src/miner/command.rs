//! The commands of `ombra miner`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::confinement::confine;
use super::report::{PlainArgs, RunsArgs};
use super::{market, policy, selftest, status, tell, work};
use crate::client::{CliError, Out, Outcome};

/// Work on agent runs for their fee
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: ombra miner --wallet worker --config miner.toml\n         \
                  ombra miner status\n         \
                  ombra miner why RUN\n\n\
                  status, runs, assignments, why, receipt and earnings need no password, and no \
                  --wallet if the folder has only one miner."
)]
pub(crate) struct MinerArgs {
    #[command(subcommand)]
    command: Option<MinerCommand>,
    #[command(flatten)]
    run: work::WorkArgs,
}

#[derive(Debug, Subcommand)]
enum MinerCommand {
    /// Check a configuration file, and list everything that is wrong with it
    Check {
        /// The miner's configuration
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Test each executor of this program with questions whose answers are known
    Selftest(selftest::SelftestArgs),
    /// Try a policy
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Show the miner's state, running or not: node, model, money, alarms, open runs
    Status(PlainArgs),
    /// List the runs of the journal, newest first
    Runs(RunsArgs),
    /// Show why a run was claimed or not and how far it is, or what became of a call
    Why(tell::RunArgs),
    /// Print the receipt of a run or a call: everything that was said and done
    Receipt(tell::RunArgs),
    /// Hash a receipt's texts again and compare them with the chain
    Verify(tell::VerifyArgs),
    /// Show what this wallet earned with runs, according to the chain, and with calls
    Earnings(PlainArgs),
    /// Show what the wallet offers to work for, and what is paused after a dissent
    Offers(market::OffersArgs),
    /// Show the wallet's bond: how much is at stake, locked and free, and the amount that the miner
    /// keeps it at
    Bond(PlainArgs),
    /// List the calls of agents for which the miner was drawn, newest first
    Assignments(RunsArgs),
    /// Confine this process, then run a program in its place: tool servers are started this way
    #[command(hide = true)]
    Sandbox {
        /// The confinement as JSON, the program, its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

pub(crate) async fn run(args: MinerArgs, out: Out<'_>) -> Outcome {
    match args.command {
        None => work::run(args.run, out).await,
        Some(MinerCommand::Check { config }) => check(&config, out),
        Some(MinerCommand::Selftest(args)) => selftest::run(args, out).await,
        Some(MinerCommand::Policy(command)) => policy::run(command, out).await,
        Some(MinerCommand::Status(args)) => status::run(&args, out).await,
        Some(MinerCommand::Runs(args)) => tell::runs(&args, out).await,
        Some(MinerCommand::Why(args)) => tell::why(&args, out).await,
        Some(MinerCommand::Receipt(args)) => tell::receipt(&args, out).await,
        Some(MinerCommand::Verify(args)) => tell::verify(args, out).await,
        Some(MinerCommand::Earnings(args)) => tell::earnings(&args, out).await,
        Some(MinerCommand::Offers(args)) => market::offers(&args, out).await,
        Some(MinerCommand::Bond(args)) => market::bond(&args, out).await,
        Some(MinerCommand::Assignments(args)) => market::assignments(&args, out).await,
        Some(MinerCommand::Sandbox { arguments }) => Err(confine(arguments)),
    }
}

impl MinerArgs {
    /// What is to be confined, if that is the command.
    pub(crate) fn confined(&mut self) -> Option<Vec<OsString>> {
        match &mut self.command {
            Some(MinerCommand::Sandbox { arguments }) => Some(std::mem::take(arguments)),
            Some(
                MinerCommand::Check { .. }
                | MinerCommand::Selftest(_)
                | MinerCommand::Policy(_)
                | MinerCommand::Status(_)
                | MinerCommand::Runs(_)
                | MinerCommand::Why(_)
                | MinerCommand::Receipt(_)
                | MinerCommand::Verify(_)
                | MinerCommand::Earnings(_)
                | MinerCommand::Offers(_)
                | MinerCommand::Bond(_)
                | MinerCommand::Assignments(_),
            )
            | None => None,
        }
    }
}

fn check(config: &Path, out: Out<'_>) -> Outcome {
    miner::settings::Settings::read(config).map_err(|error| CliError::Usage(error.to_string()))?;
    writeln!(out, "{}: no faults", config.display())?;
    Ok(())
}
