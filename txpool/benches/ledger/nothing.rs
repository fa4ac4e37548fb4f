//! A chain without blocks, and events that nobody hears.

use txpool::ports::{CommittedChain, EventSink};
use txpool::{PoolEvent, PoolFault};
use types::Hash;

/// Both.
pub(crate) struct Nothing;

impl CommittedChain for Nothing {
    fn is_included(&self, _: Hash) -> Result<bool, PoolFault> {
        Ok(false)
    }
}

impl EventSink for Nothing {
    fn executable(&self) {}

    fn publish(&self, _: Vec<PoolEvent>) {}
}
