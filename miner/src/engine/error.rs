//! Why the engine or a worker ends, and pauses between attempts.

pub(crate) use crate::backoff::{Halt, Pauses, patiently};
use crate::journal::JournalError;

/// Why the engine cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// What it does could not be written down before it is done.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
