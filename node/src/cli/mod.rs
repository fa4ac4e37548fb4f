//! The command line: one binary, `ombra`.

pub mod client;
mod config;
mod db;
mod demo;
mod dev;
mod gateway;
mod genesis;
mod health;
mod home;
mod http;
mod lock;
mod mcp;
mod miner;
mod model;
mod signed;
mod terminal;
mod testnet;
mod validator;
mod version;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use client::output::printable;
use client::{CliError, ClientCommand, Outcome};

use crate::node::StartError;
use crate::supervisor::ShutdownReason;

/// A chain on which people buy work from AI agents: the node, and its tools.
#[derive(Debug, Parser)]
#[command(
    name = "ombra",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, \
                  3 node not reachable, 4 refused by the chain, \
                  5 stopped for safety, or before a fork that it does not know: do not restart."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a whole chain for one person, with funded accounts
    Dev(Box<dev::DevCommand>),
    /// Run a chain with a miner, and show one agent run on it, worked on by a language model
    Demo(Box<demo::DemoArgs>),
    /// Make a home: settings, keys, data folder
    Init(home::InitArgs),
    /// Run a node from its home
    Start(home::StartArgs),
    /// Ask the node of a home whether it can serve, or whether it is alive
    Health(health::HealthArgs),
    /// Write everything for a chain of several nodes
    Testnet(testnet::TestnetArgs),
    /// Write, check and print genesis files
    #[command(subcommand)]
    Genesis(genesis::GenesisCommand),
    /// What the holder of a consensus key does with it
    #[command(subcommand)]
    Validator(validator::ValidatorCommand),
    /// Work on agent runs for their fee
    Miner(Box<miner::MinerArgs>),
    /// Let programs for the `OpenAI` interface pay miners on the chain
    Gateway(Box<gateway::GatewayArgs>),
    /// Let an MCP client on this machine pay miners on the chain, over standard input and output
    Mcp(Box<mcp::McpArgs>),
    /// The file of the model that can run inside the process
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Look after the database of a stopped node
    #[command(subcommand)]
    Db(db::DbCommand),
    /// Show and check the settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print version, commit, protocol and database format
    Version(version::VersionArgs),
    #[command(flatten)]
    Client(ClientCommand),
}

/// What has not stopped in order gets this much longer; then the process ends all the same.
const LEFT_BEHIND: Duration = Duration::from_millis(500);

/// Reads the command line, carries the command out, and answers the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let mut cli = Cli::parse();
    // A confined program must not begin with threads that are not.
    if let Command::Miner(args) = &mut cli.command
        && let Some(arguments) = args.confined()
    {
        return exit(&miner::confine(arguments));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(Box::pin(run(cli.command)));
            runtime.shutdown_timeout(LEFT_BEHIND);
            outcome
        }
        Err(source) => Err(CliError::File { what: "cannot start".to_owned(), source }),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit(&error),
    }
}

/// Says how a command failed.
fn exit(error: &CliError) -> ExitCode {
    if !error.is_quiet() {
        let mut stderr = std::io::stderr().lock();
        // It may quote a stranger.
        drop(writeln!(stderr, "ombra: {}", printable(&error.to_string())));
    }
    ExitCode::from(error.exit_code())
}

/// How a node ended, as the outcome of its command.
fn ended(reason: &ShutdownReason) -> Outcome {
    if let Some(sentence) = reason.unknown_fork() {
        Err(CliError::UnknownFork(sentence))
    } else if reason.forbids_restart() {
        Err(CliError::Unsafe(reason.to_string()))
    } else if reason.is_failure() {
        Err(CliError::Failed(reason.to_string()))
    } else {
        Ok(())
    }
}

/// Why a node did not start, as the outcome of its command.
fn not_started(error: &StartError) -> CliError {
    if let Some(sentence) = error.unknown_fork() {
        return CliError::UnknownFork(sentence);
    }
    let why = error.to_string();
    if error.forbids_restart() { CliError::Unsafe(why) } else { CliError::Failed(why) }
}

async fn run(command: Command) -> Outcome {
    let mut stdout = terminal::output();
    let out: client::Out<'_> = &mut *stdout;
    match command {
        Command::Dev(args) => Box::pin(dev::run(*args, out)).await,
        Command::Demo(args) => Box::pin(demo::run(*args, out)).await,
        Command::Init(args) => home::init(&args, out),
        Command::Start(args) => home::start(&args, out).await,
        Command::Health(args) => health::run(&args, out).await,
        Command::Testnet(args) => testnet::run(&args, out),
        Command::Genesis(command) => genesis::run(command, out),
        Command::Validator(command) => validator::run(command, out),
        Command::Miner(args) => Box::pin(miner::run(*args, out)).await,
        Command::Gateway(args) => Box::pin(gateway::run(*args, out)).await,
        Command::Mcp(args) => Box::pin(mcp::run(*args)).await,
        Command::Model(command) => model::run(command, out).await,
        Command::Db(command) => db::run(command, out),
        Command::Config(command) => config::run(command, out),
        Command::Version(args) => version::run(&args, out),
        Command::Client(command) => client::run(command, out).await,
    }
}
