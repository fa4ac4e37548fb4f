//! The node's side of consensus, as one value.

use std::sync::Arc;

use crate::{Archive, Clock, Counters, Ledger, Pace};

/// The node's side of consensus.
#[derive(Clone)]
pub struct Ports {
    /// The chain.
    pub ledger: Arc<dyn Ledger>,
    /// Kept undecided blocks, and how far back history reaches.
    pub archive: Arc<dyn Archive>,
    /// When blocks are due.
    pub pace: Arc<dyn Pace>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where it is counted what happens.
    pub counters: Counters,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}
