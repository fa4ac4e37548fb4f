//! `ombra gateway`: the interface of language models, paid for out of one wallet.

mod books;
mod control;
mod key;
mod limits;
mod money;
mod place;
mod requests;
mod serve;

use clap::{Args, Subcommand};
use gateway::program::ProgramError;

use super::client::{CliError, Out, Outcome, advised};
use super::miner::Clock;

pub(super) use control::Socket;
pub(super) use limits::LimitArgs;
pub(super) use place::PlaceArgs;

/// Let programs for the `OpenAI` interface pay miners on the chain
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: ombra keys new --name till\n         \
                  ombra gateway fund 1ombra --wallet alice --to ADDRESS\n         \
                  ombra gateway key new --name cursor --budget 0.5ombra --per day --wallet till\n         \
                  ombra gateway --wallet till --public-prompts\n\n\
                  Everything that is asked through it is public for ever (docs/gateway.md)."
)]
pub(super) struct GatewayArgs {
    #[command(subcommand)]
    command: Option<GatewayCommand>,
    #[command(flatten)]
    run: serve::ServeArgs,
}

#[derive(Debug, Subcommand)]
enum GatewayCommand {
    /// Keys of clients
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Move money of another wallet to that of the gateway
    Fund(money::FundArgs),
    /// Move money of the gateway's wallet that no request needs to another
    Drain(money::DrainArgs),
    /// The newest requests, and what became of them
    Requests(requests::RequestsArgs),
    /// Compare the gateway's books with the chain's; exit code 1 if they do not agree
    Check(books::CheckArgs),
}

pub(super) async fn run(args: GatewayArgs, out: Out<'_>) -> Outcome {
    match args.command {
        None => serve::run(args.run, out).await,
        Some(GatewayCommand::Key(command)) => key::run(command, out).await,
        Some(GatewayCommand::Fund(args)) => money::fund(args, out).await,
        Some(GatewayCommand::Drain(args)) => Box::pin(money::drain(args, out)).await,
        Some(GatewayCommand::Requests(args)) => requests::run(args, out).await,
        Some(GatewayCommand::Check(args)) => books::run(args, out).await,
    }
}

/// The same failure with its exit code.
pub(super) fn failed(error: ProgramError) -> CliError {
    match error {
        ProgramError::Node(error) => error.into(),
        ProgramError::Chain(error) => advised(error),
        ProgramError::Settings(_) | ProgramError::Public { .. } | ProgramError::TooRich { .. } => {
            CliError::Usage(error.to_string())
        }
        ProgramError::Open(_)
        | ProgramError::Store(_)
        | ProgramError::Folder { .. }
        | ProgramError::Http(_)
        | ProgramError::Listen { .. } => CliError::Failed(error.to_string()),
    }
}
