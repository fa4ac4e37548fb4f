//! The commands of `ombra`, and the exit code of the one that is carried out.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use super::client::command::{self as client, ClientCommand};
use super::client::output::printable;
use super::client::{CliError, Out, Outcome};
use super::{
    config, db, demo, dev, gateway, genesis, health, home, mcp, miner, model, terminal, testnet,
    validator, version,
};

/// A chain on which people buy work from AI agents: the node, and its tools.
#[derive(Debug, Parser)]
#[command(
    name = "ombra",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 node not \
                  reachable, 4 rejected by the chain, 5 stopped for safety, or before a fork that \
                  this program does not know: do not restart automatically."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a single-validator development chain, with funded accounts
    Dev(Box<dev::DevCommand>),
    /// Run a chain with four miners, and show an agent run and a call of an agent
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
    /// Sign your consent to become a validator
    #[command(subcommand)]
    Validator(validator::ValidatorCommand),
    /// Work on agent runs for their fee
    Miner(Box<miner::MinerArgs>),
    /// Serve the OpenAI API, and pay miners for the answers
    Gateway(Box<gateway::GatewayArgs>),
    /// Let an MCP client on this machine pay miners on the chain, over standard input and output
    Mcp(Box<mcp::McpArgs>),
    /// Download and show the model that can run inside the process
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Maintain the database of a stopped node
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

impl Cli {
    /// Carries the command out.
    pub(super) async fn run(self) -> Outcome {
        let mut stdout = terminal::output();
        let out: Out<'_> = &mut *stdout;
        match self.command {
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
            let outcome = runtime.block_on(Box::pin(cli.run()));
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
