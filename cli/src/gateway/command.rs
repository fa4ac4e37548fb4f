//! The commands of `ombra gateway`.

use clap::{Args, Subcommand};

use super::{books, key, money, requests, serve, tool};
use crate::client::{Out, Outcome};

/// Serve the OpenAI API, and pay miners for the answers
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: ombra keys new till\n         \
                  ombra gateway fund 1ombra --wallet alice --to ADDRESS\n         \
                  ombra gateway key new --name cursor --budget 0.5ombra --per day --wallet \
                  till\n         \
                  ombra gateway --wallet till --public-prompts\n\n\
                  Everything you ask through it stays public on the chain forever \
                  (docs/gateway.md)."
)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: Option<GatewayCommand>,
    #[command(flatten)]
    run: serve::ServeArgs,
}

#[derive(Debug, Subcommand)]
enum GatewayCommand {
    /// Manage the keys of clients
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Move money from another wallet to the gateway's wallet
    Fund(money::FundArgs),
    /// Move money that no request needs from the gateway's wallet to another one
    Drain(money::DrainArgs),
    /// Show the newest requests and their outcome
    Requests(requests::RequestsArgs),
    /// Show a method of an agent as an MCP tool, with the settings that make it one
    Tool(tool::ToolArgs),
    /// Compare the gateway's books with the chain's; exit code 1 if they do not agree
    Check(books::CheckArgs),
}

pub(crate) async fn run(args: GatewayArgs, out: Out<'_>) -> Outcome {
    match args.command {
        None => serve::run(args.run, out).await,
        Some(GatewayCommand::Key(command)) => key::run(command, out).await,
        Some(GatewayCommand::Fund(args)) => money::fund(args, out).await,
        Some(GatewayCommand::Drain(args)) => Box::pin(money::drain(args, out)).await,
        Some(GatewayCommand::Requests(args)) => requests::run(args, out).await,
        Some(GatewayCommand::Tool(args)) => tool::run(args, out).await,
        Some(GatewayCommand::Check(args)) => books::run(args, out).await,
    }
}
