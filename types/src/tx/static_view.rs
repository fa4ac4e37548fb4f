//! What the static check of a transaction may look at.

use crate::{Address, Params};

/// What the static check of a kind may read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticView<'a> {
    pub(crate) params: &'a Params,
    pub(crate) signer: Address,
    /// The transaction's own timestamp.
    pub(crate) timestamp: u64,
}
