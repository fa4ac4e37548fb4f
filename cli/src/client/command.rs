//! The commands that talk to a node, and the one that is carried out.

use clap::Subcommand;

use super::{Out, Outcome, agents, call, chat, keys, query, tx, verify};

/// The commands of wallets, users and scripts.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Make, keep and use wallets in encrypted files
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Build, sign and send one transaction, and wait until it is in a block
    #[command(subcommand)]
    Tx(Box<tx::TxCommand>),
    /// Ask for an agent run and follow it until it is settled
    Run(Box<super::run::RunArgs>),
    /// Read and write a conversation
    Chat(Box<chat::ChatArgs>),
    /// Ask a committee of miners for an agent's answer, and wait for it
    Call(Box<call::CallArgs>),
    /// Execute the agent of a call again, and compare with what its members answered
    Verify(verify::VerifyArgs),
    /// Find, check and publish agents
    #[command(subcommand)]
    Agents(agents::AgentsCommand),
    /// Ask the node
    #[command(subcommand)]
    Query(Box<query::QueryCommand>),
}

/// Carries out a command.
///
/// # Errors
/// [`super::CliError`], which knows the exit code.
pub async fn run(command: ClientCommand, out: Out<'_>) -> Outcome {
    match command {
        ClientCommand::Keys(command) => keys::run(command, out),
        ClientCommand::Tx(command) => Box::pin(tx::run(*command, out)).await,
        ClientCommand::Run(args) => Box::pin(super::run::run(*args, out)).await,
        ClientCommand::Chat(args) => Box::pin(chat::run(*args, out)).await,
        ClientCommand::Call(args) => Box::pin(call::run(*args, out)).await,
        ClientCommand::Verify(args) => Box::pin(verify::run(args, out)).await,
        ClientCommand::Agents(command) => Box::pin(agents::run(command, out)).await,
        ClientCommand::Query(command) => Box::pin(query::run(*command, out)).await,
    }
}
