//! Why a port does not answer.

use std::error::Error;
use std::sync::Arc;

/// Why a port does not answer: a fault of this node (storage, a broken invariant), which is logged and
/// never shown to clients; or, with [`PortFault::missing`], that the node does not have what was asked for,
/// which clients are told.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{doing}")]
pub struct PortFault {
    /// What the node was doing.
    pub doing: &'static str,
    /// Why it failed.
    #[source]
    pub source: Arc<dyn Error + Send + Sync>,
    /// What the node does not have, if that is why.
    pub missing: Option<Missing>,
}

impl PortFault {
    /// `source` happened while `doing`.
    pub fn new(doing: &'static str, source: impl Error + Send + Sync + 'static) -> Self {
        Self { doing, source: Arc::new(source), missing: None }
    }

    /// What was asked for stands before `earliest`, the first block that the node has.
    #[must_use]
    pub fn history(earliest: u64) -> Self {
        let source = Arc::new(Began(earliest));
        Self {
            doing: "reading blocks that the node does not have",
            source,
            missing: Some(Missing::BlocksBefore(earliest)),
        }
    }

    /// The events that were asked for stand before `from`, the first block whose events the node has.
    #[must_use]
    pub fn no_events(from: u64) -> Self {
        let source = Arc::new(Began(from));
        let missing = Some(Missing::EventsBefore(from));
        Self { doing: "reading events that the node does not have", source, missing }
    }
}

/// What a node does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Blocks before this one: it began with a snapshot.
    BlocksBefore(u64),
    /// Events of blocks before this one: a program before 0.3 committed them.
    EventsBefore(u64),
}

/// The node's chain begins later than what was asked for.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the first block here is {0}")]
struct Began(u64);
