//! Why a node does not begin with a snapshot.

use store::snapshots::ImportError;

/// Why a node does not begin with a snapshot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    /// Nobody offers one.
    #[error("no peer offers a snapshot that can be verified")]
    NoOffers,
    /// All that are offered pass over the block that the settings trust.
    #[error(
        "the offered snapshots, the newest of them of block {height}, are later than block {trusted}, \
         which `sync.trusted` names: a node that began with one could not compare the two. To use a \
         snapshot, set `sync.trusted` to a newer block, from `ombra query trusted`, remove the database \
         and start the node again"
    )]
    AboveTrusted {
        /// The height of the newest.
        height: u64,
        /// The height of `sync.trusted`.
        trusted: u64,
    },
    /// One is offered, and too few of the named peers have its block.
    #[error("too few of the named peers have the block of an offered snapshot")]
    Unheard,
    /// Those who offered it do not give it.
    #[error("the chunks of the offered snapshots did not arrive")]
    Incomplete,
    /// The node was asked to stop.
    #[error("the node was asked to stop")]
    Stopped,
    /// The network did not start.
    #[error(transparent)]
    Network(#[from] p2p::StartError),
    /// The database could not be made.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Genesis names validators that cannot decide anything.
    #[error(transparent)]
    Validators(#[from] consensus::ValidatorSetError),
    /// A thread ended without an answer.
    #[error("a thread of the import ended early")]
    Thread,
}
