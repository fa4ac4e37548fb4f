//! Why a node did not start.

use crate::fault::NodeFault;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database.
    #[error(transparent)]
    Storage(#[from] state::StorageError),
    /// A part of the node.
    #[error(transparent)]
    Fault(#[from] NodeFault),
    /// Consensus.
    #[error("consensus: {0}")]
    Consensus(#[from] consensus::StartError),
    /// The transaction network.
    #[error(transparent)]
    Gossip(#[from] p2p::StartError),
    /// The pool's journal.
    #[error(transparent)]
    Journal(#[from] txpool::JournalError),
    /// The pool's journal could not be taken up again.
    #[error(transparent)]
    Restore(#[from] txpool::RestoreError),
    /// The interfaces.
    #[error(transparent)]
    Rpc(#[from] rpc::StartError),
    /// Genesis names validators that cannot decide anything.
    #[error("genesis: {0}")]
    Validators(#[from] consensus::ValidatorSetError),
    /// The threads that it was to start on have ended.
    #[error("the process is stopping")]
    Stopping,
    /// Files and threads.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl StartError {
    /// Whether starting again could make this validator contradict itself.
    #[must_use]
    pub fn forbids_restart(&self) -> bool {
        let is_unsafe = match self {
            Self::Consensus(error) => error.forbids_restart(),
            Self::Fault(fault) => matches!(fault, NodeFault::OtherChain(_)),
            Self::Storage(_)
            | Self::Gossip(_)
            | Self::Journal(_)
            | Self::Restore(_)
            | Self::Rpc(_)
            | Self::Validators(_)
            | Self::Stopping
            | Self::Io { .. } => false,
        };
        is_unsafe || self.unknown_fork().is_some()
    }

    /// The sentence about a fork that this program does not know, if that is why.
    #[must_use]
    pub fn unknown_fork(&self) -> Option<String> {
        match self {
            Self::Storage(fault) if fault.is_unknown_fork() => Some(fault.to_string()),
            Self::Fault(fault) => fault.unknown_fork(),
            Self::Storage(_)
            | Self::Consensus(_)
            | Self::Gossip(_)
            | Self::Journal(_)
            | Self::Restore(_)
            | Self::Rpc(_)
            | Self::Validators(_)
            | Self::Stopping
            | Self::Io { .. } => None,
        }
    }
}
