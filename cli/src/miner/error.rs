//! How the miner's work failed, as the failure of a command.

use miner::journal::JournalError;
use miner::program::ProgramError;
use types::Hash;

use crate::client::{CliError, advised};

/// The same failure with its exit code.
pub(crate) fn failed(error: ProgramError) -> CliError {
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

pub(super) fn not_answered(error: miner::chain::ChainError) -> CliError {
    match error {
        miner::chain::ChainError::Rejected { code, message } => {
            CliError::Rejected { code, message }
        }
        miner::chain::ChainError::Away(why) => CliError::Away(why),
        miner::chain::ChainError::NoHistory(_) | miner::chain::ChainError::Strange(_) => {
            CliError::Failed(error.to_string())
        }
    }
}

/// A run or a call that the journal does not know.
pub(super) fn unknown(id: &Hash) -> CliError {
    CliError::Failed(format!("the journal has no run or call {id}"))
}
