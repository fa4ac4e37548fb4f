//! `ombra miner`: works on agent runs for their fee, and tells about it.

mod control;
mod figures;
mod market;
mod monitor;
mod place;
mod policy;
mod selftest;
mod start;
mod status;
mod tell;
mod work;

pub(super) use control::{SameUser, Socket};

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use miner::journal::JournalError;
use miner::program::ProgramError;
use miner::tools::sandbox::{self, Wrapper};
use types::Hash;

use super::client::{CliError, Out, Outcome, advised};
use crate::clock::now_ms;

/// Work on agent runs for their fee
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: ombra miner --wallet worker --config miner.toml\n         \
                  ombra miner status\n         ombra miner why RUN\n\n\
                  status, runs, assignments, why, receipt and earnings need no password, and no --wallet where \
                  the folder has one miner."
)]
pub(super) struct MinerArgs {
    #[command(subcommand)]
    command: Option<MinerCommand>,
    #[command(flatten)]
    run: work::WorkArgs,
}

#[derive(Debug, Subcommand)]
enum MinerCommand {
    /// Check a configuration file; with all that is wrong with it
    Check {
        /// The miner's configuration
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Ask each executor of this program questions whose answers are known
    Selftest(selftest::SelftestArgs),
    /// Try a policy
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// How the miner is: node, model, money, alarms, open runs; whether it runs or not
    Status(tell::PlainArgs),
    /// The runs of the journal, newest first
    Runs(tell::RunsArgs),
    /// Why a run was claimed or not, and how far it is; or what became of a call
    Why(tell::RunArgs),
    /// Print the receipt of a run or a call: all that was said and done
    Receipt(tell::RunArgs),
    /// Hash a receipt's texts again and compare them with the chain
    Verify(tell::VerifyArgs),
    /// What this wallet's runs have paid, as the chain has it, and what calls have
    Earnings(tell::PlainArgs),
    /// What the wallet offers to work for, and what is paused after a dissent
    Offers(market::OffersArgs),
    /// The wallet's bond: how much is at stake, locked and free, and the amount that the miner keeps it at
    Bond(tell::PlainArgs),
    /// The calls of agents for which the miner was drawn, newest first
    Assignments(tell::RunsArgs),
    /// Confine this process and become a program: how servers of tools are started
    #[command(hide = true)]
    Sandbox {
        /// The confinement as JSON, the program, its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// The time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock;

impl miner::ports::Clock for Clock {
    fn now_ms(&self) -> u64 {
        now_ms()
    }
}

pub(super) async fn run(args: MinerArgs, out: Out<'_>) -> Outcome {
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
    pub(super) fn confined(&mut self) -> Option<Vec<OsString>> {
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

/// Becomes a confined program; answers only why not.
pub(super) fn confine(arguments: Vec<OsString>) -> CliError {
    match sandbox::enter(arguments) {
        Ok(never) => match never {},
        Err(error) => CliError::Failed(error.to_string()),
    }
}

fn check(config: &Path, out: Out<'_>) -> Outcome {
    miner::settings::Settings::read(config).map_err(|error| CliError::Usage(error.to_string()))?;
    writeln!(out, "{}: no faults", config.display())?;
    Ok(())
}

/// How this program confines others.
pub(super) fn wrapper() -> Result<Wrapper, CliError> {
    let program = std::env::current_exe()
        .map_err(|source| CliError::File { what: "this program".to_owned(), source })?;
    Ok(Wrapper { program, arguments: vec!["miner".into(), "sandbox".into()] })
}

/// The same failure with its exit code.
pub(super) fn failed(error: ProgramError) -> CliError {
    match error {
        ProgramError::Settings(_)
        | ProgramError::Policy(_)
        | ProgramError::Tools(_)
        | ProgramError::Sweep(_)
        | ProgramError::Embedded(_) => CliError::Usage(error.to_string()),
        ProgramError::Node(error) => not_answered(error),
        ProgramError::Chain(error) => advised(error),
        ProgramError::JournalFile { source: JournalError::Foreign { .. }, .. } => {
            CliError::Usage(error.to_string())
        }
        ProgramError::Folder { .. }
        | ProgramError::Journal(_)
        | ProgramError::JournalFile { .. }
        | ProgramError::Backend(_)
        | ProgramError::Engine(_) => CliError::Failed(error.to_string()),
    }
}

fn not_answered(error: miner::chain::ChainError) -> CliError {
    match error {
        miner::chain::ChainError::Refused { code, message } => CliError::Refused { code, message },
        miner::chain::ChainError::Away(why) => CliError::Away(why),
        miner::chain::ChainError::Strange(_) => CliError::Failed(error.to_string()),
    }
}

/// A run or a call that the journal does not know.
fn unknown(id: &Hash) -> CliError {
    CliError::Failed(format!("the journal does not know the run or the call {id}"))
}
