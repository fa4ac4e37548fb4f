//! How far a request is, as those who wait for it see it.

use std::sync::Arc;

use types::Hash;

use super::Ended;

/// How far a request is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The run, once its request is signed.
    pub run: Option<Hash>,
    /// The call, once its request is signed.
    pub call: Option<Hash>,
    /// The transaction that asked for it, once it is in a block.
    pub request_tx: Option<Hash>,
    /// Whether a miner took the run, or a committee the call.
    pub is_claimed: bool,
    /// When the request came, seconds since 1970.
    pub created_s: u64,
    /// How many steps of the run are recorded; how many members have answered the call.
    pub steps: u64,
    /// How it ended, once it has.
    pub ended: Option<Arc<Ended>>,
}

impl Progress {
    /// It has ended.
    pub(super) fn end(&mut self, ended: Ended) {
        self.ended = Some(Arc::new(ended));
    }
}
