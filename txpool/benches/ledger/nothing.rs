//! A chain without blocks, and events that nobody hears.

use txpool::ports::{Chain, EventSink};
use txpool::{Fault, PoolEvent};
use types::Hash;

/// Both.
pub(crate) struct Nothing;

impl Chain for Nothing {
    fn is_included(&self, _: Hash) -> Result<bool, Fault> {
        Ok(false)
    }
}

impl EventSink for Nothing {
    fn executable(&self) {}

    fn publish(&self, _: Vec<PoolEvent>) {}
}
