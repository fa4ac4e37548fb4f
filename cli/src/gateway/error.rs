//! How the gateway's work failed, as the failure of a command.

use gateway::program::ProgramError;

use crate::client::{CliError, advised};

/// The same failure with its exit code.
pub(crate) fn failed(error: ProgramError) -> CliError {
    match error {
        ProgramError::Node(error) => error.into(),
        ProgramError::Chain(error) => advised(error),
        ProgramError::Settings(_)
        | ProgramError::Tool { .. }
        | ProgramError::Public { .. }
        | ProgramError::TooRich { .. } => CliError::Usage(error.to_string()),
        ProgramError::Open(_)
        | ProgramError::Store(_)
        | ProgramError::Folder { .. }
        | ProgramError::Agent { .. }
        | ProgramError::Http(_)
        | ProgramError::Listen { .. } => CliError::Failed(error.to_string()),
    }
}
