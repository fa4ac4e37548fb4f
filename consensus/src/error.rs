//! Why consensus did not start, or stopped.

use std::path::PathBuf;
use std::{fmt, io};

use crate::guard::GuardError;

/// Trouble inside the ledger: storage, or an invariant that does not hold. Never the fault of a
/// peer, and never something to go on after.
pub struct LedgerFault(Box<dyn std::error::Error + Send + Sync>);

impl LedgerFault {
    /// Wraps the ledger's own error.
    pub fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(error.into())
    }

    /// The ledger's own error, if it is of this type.
    #[must_use]
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for LedgerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LedgerFault({:?})", self.0)
    }
}

impl fmt::Display for LedgerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for LedgerFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// Why consensus stopped although nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum ConsensusFault {
    /// The ledger failed.
    #[error("the ledger failed at height {height}: {source}")]
    Ledger {
        /// The height that was being worked on.
        height: u64,
        /// What the ledger said.
        source: LedgerFault,
    },
    /// The guard refused to sign: this key has signed something else, or later, before. Do not
    /// restart automatically.
    #[error("refused to sign: {0}")]
    Guard(GuardError),
    /// The engine stopped its actors because its log cannot be written or read. Do not restart
    /// automatically: it could sign twice.
    #[error("the consensus engine stopped for safety: its log cannot be trusted")]
    Safety,
    /// The engine stopped its actors because the disk of its log is full. It releases no vote before
    /// the log has it, and takes back what it could not write whole; so the next start, with room,
    /// goes on where the log ends.
    #[error("the consensus engine cannot write its log {}: {source}", path.display())]
    LogFull {
        /// The log.
        path: PathBuf,
        /// What the system says of a write beside it.
        source: io::Error,
    },
    /// The engine stopped; a restart may help.
    #[error("the consensus engine stopped")]
    Engine,
    /// The engine did not come up in time: most likely it cannot listen on its address.
    #[error("the consensus engine cannot listen; is its address in use?")]
    NotReady,
    /// Consensus did not start again, with its signer or with a new network.
    #[error("consensus did not start again: {0}")]
    Start(Box<StartError>),
    /// A task of this crate panicked.
    #[error("a consensus task panicked: {0}")]
    Panic(String),
}

impl ConsensusFault {
    /// Whether starting again could make this validator contradict itself.
    #[must_use]
    pub fn forbids_restart(&self) -> bool {
        match self {
            // Nothing is signed before its record is written.
            Self::Guard(GuardError::Io { .. }) => false,
            Self::Guard(_) | Self::Safety => true,
            Self::Start(error) => error.forbids_restart(),
            Self::Ledger { .. }
            | Self::LogFull { .. }
            | Self::Engine
            | Self::NotReady
            | Self::Panic(_) => false,
        }
    }
}

/// Why consensus did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A directory of the engine cannot be made.
    #[error("cannot create {path}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A log that is not of the height that this validator has signed cannot be moved away.
    #[error("cannot move the log in {path} aside: {source}")]
    Aside {
        /// The directory of the log.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another engine holds the log.
    #[error("{path} is in use by another process, or the disk is slow to release it")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The guard's record cannot be used.
    #[error("the record of signed votes cannot be used: {0}")]
    Guard(#[from] GuardError),
    /// This validator decides alone, has signed a height that is not decided, and has lost what it knew
    /// of it. Nobody else can decide that height.
    #[error(
        "this validator decides alone and has signed height {signed}, but its log of that height \
         is lost, so it would wait forever: the chain ends with block {tip} {hash}; \
         docs/operations.md section 8.6 says how to continue from there"
    )]
    Amnesia {
        /// The height that was signed.
        signed: u64,
        /// The height of the last block.
        tip: u64,
        /// Its hash.
        hash: types::Hash,
    },
    /// An address to listen on or to dial is not a multiaddress.
    #[error("{text:?} is not a multiaddress such as /ip4/127.0.0.1/tcp/7100")]
    Multiaddr {
        /// What was written.
        text: String,
    },
    /// The node key seed gives no key.
    #[error("the node key is not usable")]
    NodeKey,
    /// The ledger failed.
    #[error("the ledger failed: {0}")]
    Ledger(LedgerFault),
    /// The engine did not start.
    #[error("the consensus engine did not start: {0}")]
    Engine(String),
}

impl StartError {
    /// Whether starting again could make this validator contradict itself.
    #[must_use]
    pub const fn forbids_restart(&self) -> bool {
        use crate::GuardError::{Conflict, Damaged, Older, Owner};
        match self {
            Self::Guard(error) => {
                matches!(error, Conflict { .. } | Damaged { .. } | Older { .. } | Owner { .. })
            }
            Self::Amnesia { .. } => true,
            Self::Directory { .. }
            | Self::Aside { .. }
            | Self::InUse { .. }
            | Self::Multiaddr { .. }
            | Self::NodeKey
            | Self::Ledger(_)
            | Self::Engine(_) => false,
        }
    }
}
