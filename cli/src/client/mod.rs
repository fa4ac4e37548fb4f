//! The commands that talk to a node: keys, transactions, runs, conversations, queries.
//!
//! Every command writes its answer to the given writer; prompts go to the terminal, and nothing is
//! asked for when standard input is not one. Private keys never leave this process.

pub mod agents;
pub mod call;
pub mod chat;
pub mod command;
pub(super) mod demonstration;
mod error;
pub(crate) mod input;
pub mod keys;
pub(crate) mod model;
pub mod options;
pub(crate) mod output;
pub mod query;
pub mod run;
mod signals;
mod signer;
mod stdin;
pub mod tx;
pub mod verify;

pub use error::{CliError, Outcome};
pub(crate) use input::first_line;
pub use output::Out;
use signals::Interrupts;
pub(crate) use signer::{Signer, advised};

#[cfg(test)]
mod tests;
