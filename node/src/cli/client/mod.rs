//! The commands that talk to a node: keys, transactions, runs, conversations, queries.
//!
//! Every command writes its answer to the given writer; prompts go to the terminal, and nothing is
//! asked for when standard input is not one. Private keys never leave this process.

pub mod agents;
pub mod call;
pub mod chat;
pub(super) mod demonstration;
mod error;
pub(in crate::cli) mod input;
pub mod keys;
pub(in crate::cli) mod model;
pub mod options;
pub(in crate::cli) mod output;
pub mod query;
pub mod run;
mod signer;
mod stdin;
pub mod tx;
pub mod verify;

use std::io::Write;

use clap::Subcommand;

pub use error::CliError;
pub(in crate::cli) use input::first_line;
pub(in crate::cli) use signer::{Signer, advised};

/// Where a command writes its answer.
pub type Out<'a> = &'a mut (dyn Write + Send);

/// What a command ends with.
pub type Outcome = Result<(), CliError>;

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
    Run(Box<run::RunArgs>),
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
/// [`CliError`], which knows the exit code.
pub async fn run(command: ClientCommand, out: Out<'_>) -> Outcome {
    match command {
        ClientCommand::Keys(command) => keys::run(command, out),
        ClientCommand::Tx(command) => Box::pin(tx::run(*command, out)).await,
        ClientCommand::Run(args) => Box::pin(run::run(*args, out)).await,
        ClientCommand::Chat(args) => Box::pin(chat::run(*args, out)).await,
        ClientCommand::Call(args) => Box::pin(call::run(*args, out)).await,
        ClientCommand::Verify(args) => Box::pin(verify::run(args, out)).await,
        ClientCommand::Agents(command) => Box::pin(agents::run(command, out)).await,
        ClientCommand::Query(command) => Box::pin(query::run(*command, out)).await,
    }
}

/// What a future answers, or nothing if ctrl-C comes first: also while a call to the node runs.
async fn until_interrupted<T>(work: impl Future<Output = T>) -> Result<Option<T>, CliError> {
    tokio::select! {
        answer = work => Ok(Some(answer)),
        signal = tokio::signal::ctrl_c() => {
            signal.map_err(|source| CliError::file("listening to ctrl-C", source))?;
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests;
