//! Why the engine or a worker ends, and pauses between attempts.

use crate::journal::JournalError;
pub(crate) use crate::patience::{Halt, Pauses, patiently};

/// Why the engine cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// What it does could not be written down before it is done.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
