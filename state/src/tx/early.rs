//! Transactions about a call that come before the phase in which a block takes them.

use types::{Body, Transaction};

use super::{call_commit, call_reveal};
use crate::error::StorageError;
use crate::view::Read;

/// Whether a transaction that is refused for the phase of its call may be taken in a later one: a member's
/// reveal before its round reveals, or a bonded miner's commitment before the members are drawn.
pub(crate) fn is_early(tx: &Transaction, state: &dyn Read) -> Result<bool, StorageError> {
    if let Body::CallCommit(commit) = tx.body() {
        return call_commit::is_early(commit, tx.from(), state);
    }
    if let Body::CallReveal(reveal) = tx.body() {
        return call_reveal::is_early(reveal, tx.from(), state);
    }
    Ok(false)
}
