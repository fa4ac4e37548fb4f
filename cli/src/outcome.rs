//! How a node ended, or why it did not start, as the outcome of its command.

use node::StartError;
use node::supervisor::ShutdownReason;

use super::client::{CliError, Outcome};

/// How a node ended, as the outcome of its command.
pub(super) fn ended(reason: &ShutdownReason) -> Outcome {
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
pub(super) fn not_started(error: &StartError) -> CliError {
    if let Some(sentence) = error.unknown_fork() {
        return CliError::UnknownFork(sentence);
    }
    let why = error.to_string();
    if error.forbids_restart() { CliError::Unsafe(why) } else { CliError::Failed(why) }
}
