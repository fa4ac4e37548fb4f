//! What can go wrong that is no transaction's fault.

use std::fmt;
use std::path::PathBuf;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Trouble of our own in the ledger or the chain: storage, or a broken invariant. After a fault the
/// pool's content is not to be relied on; the node stops.
pub struct PoolFault(Source);

impl PoolFault {
    /// Wraps the error of whoever implements a port.
    pub fn new(error: impl Into<Source>) -> Self {
        Self(error.into())
    }

    /// The error that it wraps.
    #[must_use]
    pub fn cause(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Debug for PoolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fault({:?})", self.0)
    }
}

impl fmt::Display for PoolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for PoolFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// Why the journal cannot be read or written. The pool goes on without: what it cannot write is
/// kept and tried again at the next flush.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system said no.
    #[error("pool journal: cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is of another version of this program.
    #[error("pool journal: {} is of a format that this version does not know", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
    },
}

/// Why the journal could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The ledger failed.
    #[error("replay of the pool journal: {0}")]
    Fault(#[from] PoolFault),
}
