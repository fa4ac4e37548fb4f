//! How long ago the last block was made.

use std::time::Instant;

/// How long ago the last block was made: at least since its commit here, and longer by what its
/// timestamp lay behind the clock then. Later changes of the clock do not matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TipAge {
    committed: Instant,
    at_commit_ms: u64,
}

impl TipAge {
    /// The age of a block that was committed at `now_ms`, by the clock, with `timestamp`.
    pub(crate) fn new(timestamp: u64, now_ms: u64) -> Self {
        Self { committed: Instant::now(), at_commit_ms: now_ms.saturating_sub(timestamp) }
    }

    /// How long ago this node learned of the block, in milliseconds.
    pub(crate) fn known_ms(&self) -> u64 {
        u64::try_from(self.committed.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The age in milliseconds.
    pub(crate) fn ms(&self) -> u64 {
        self.at_commit_ms.saturating_add(self.known_ms())
    }
}
