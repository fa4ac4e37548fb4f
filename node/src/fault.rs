//! What can go wrong with the node itself. A fault stops the node.

use state::StorageError;
use store::tools::ToolError;
use types::Hash;

/// Another block than the trusted one was decided at its height.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "block {height} is {found}, but `sync.trusted.hash` is {expected}: this is not the trusted \
     chain, and the node takes no block after it. Compare the setting with `ombra query trusted` \
     of nodes that you trust; if the setting is right, remove the database and name other peers"
)]
pub struct OtherChain {
    /// The height of `sync.trusted`.
    pub height: u64,
    /// The block that was decided there.
    pub found: Hash,
    /// The block that is trusted.
    pub expected: Hash,
}

/// Our own trouble, never a client's or a peer's.
#[derive(Debug, thiserror::Error)]
pub enum NodeFault {
    /// The database.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The engine or its loop.
    #[error(transparent)]
    Consensus(#[from] consensus::ConsensusFault),
    /// The transaction network.
    #[error(transparent)]
    Gossip(#[from] p2p::NetworkFault),
    /// The pool's ledger: what is in the pool is not to be relied on.
    #[error("the pool cannot read the ledger: {0}")]
    Pool(txpool::PoolFault),
    /// The pool's journal, for longer than a moment.
    #[error(transparent)]
    Journal(#[from] txpool::JournalError),
    /// Files and sockets.
    #[error("{doing}: {source}")]
    Io {
        /// What the node was doing.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// Consensus did not start, after the node had caught up.
    #[error("consensus: {0}")]
    ConsensusStart(#[from] consensus::StartError),
    /// Blocks of peers could not be executed, through no fault of theirs.
    #[error("catching up with peers: {0}")]
    CatchUp(Box<ToolError>),
    /// The validators have decided a block that the node cannot execute.
    #[error(
        "catching up with peers: {0}. The state of this node is wrong, or its rules are: remove the \
         database but keep `data/consensus`, and start the node again, with blocks from genesis or with \
         the snapshot of another peer (docs/storage.md section 5.1)"
    )]
    OwnState(Box<ToolError>),
    /// The chain contradicts the block that the settings trust.
    #[error(transparent)]
    OtherChain(#[from] OtherChain),
    /// The node stands still while the chain goes on.
    #[error(
        "the height stays at {height} although the chain goes on: peers are at {ahead}, and {peer} \
         has shown the next block; a restart lets the node catch up"
    )]
    Stalled {
        /// The node's height.
        height: u64,
        /// The highest that a peer claims.
        ahead: u64,
        /// Who has shown that the next height is decided.
        peer: String,
    },
    /// The disk is nearly full.
    #[error(
        "the disk has {free} bytes left, fewer than the {min} that `storage.free_disk_bytes_min` asks for"
    )]
    DiskFull {
        /// What is left.
        free: u64,
        /// What is asked for.
        min: u64,
    },
}

impl NodeFault {
    /// The fault of an execution of peers' blocks that failed through no fault of theirs.
    #[must_use]
    pub fn of_catch_up(error: ToolError) -> Self {
        let error = Box::new(error);
        if error.is_of_own_state() { Self::OwnState(error) } else { Self::CatchUp(error) }
    }

    /// The sentence about a fork that this program does not know, if that is why the node stops.
    #[must_use]
    pub fn unknown_fork(&self) -> Option<String> {
        let fault = match self {
            Self::Consensus(consensus::ConsensusFault::Ledger { source, .. }) => {
                match source.downcast_ref() {
                    Some(Self::Storage(fault)) => Some(fault),
                    Some(_) | None => source.downcast_ref(),
                }
            }
            Self::CatchUp(error) => error.storage(),
            Self::Storage(fault) => Some(fault),
            Self::Consensus(_)
            | Self::Gossip(_)
            | Self::Pool(_)
            | Self::Journal(_)
            | Self::Io { .. }
            | Self::ConsensusStart(_)
            | Self::OwnState(_)
            | Self::OtherChain(_)
            | Self::Stalled { .. }
            | Self::DiskFull { .. } => None,
        };
        fault.filter(|fault| fault.is_unknown_fork()).map(ToString::to_string)
    }

    /// The system refused something.
    #[must_use]
    pub const fn io(doing: &'static str, source: std::io::Error) -> Self {
        Self::Io { doing, source }
    }
}

#[cfg(test)]
mod tests {
    //! What is said of a fault.

    use state::block::BlockError;
    use store::tools::ReplayError;

    use super::*;

    #[test]
    fn a_decided_block_that_cannot_be_executed_is_named_with_what_to_do() {
        let block = BlockError::TooMuchWork { position: 7, max: 9 };
        let source = Box::new(ReplayError::Decided(block));
        let fault = NodeFault::of_catch_up(ToolError::Replay { height: 42, source });
        let text = fault.to_string();
        assert!(text.contains("block 42: the validators have decided it"), "{text}");
        assert!(text.contains("keep `data/consensus`"), "{text}");
        let fault = NodeFault::of_catch_up(StorageError::Empty.into());
        assert!(matches!(fault, NodeFault::CatchUp(_)), "{fault}");
    }
}
