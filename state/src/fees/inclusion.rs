//! For which of its bytes a transaction pays, and at which base fees a block may take it.

use types::{Rejection, Transaction, for_kind};

use super::price::above_max;
use crate::tx::{Inclusion, envelope};

/// For how many bytes a transaction of a block pays. The first vote of a validator in a block pays for
/// none, so of a vote it is asked whether its sender had voted before it in the same block.
#[must_use]
pub fn charged_bytes(tx: &Transaction, has_voted: impl FnOnce() -> bool) -> u64 {
    let (bytes, inclusion) = inclusion(tx);
    match inclusion {
        Inclusion::Paid | Inclusion::Floor => bytes,
        Inclusion::FreeVote if has_voted() => bytes,
        Inclusion::FreeVote | Inclusion::Free => 0,
    }
}

/// The highest base fee at which a block may take a transaction, in micro-OMBRA per KiB. None if there is
/// a block that takes it at any: it pays for no bytes, it pays the lowest base fee there is, or it is a vote,
/// which may be the first one of its sender in the block (docs/protocol.md sections 15.1 and 15.4).
#[must_use]
pub fn highest_base_fee(tx: &Transaction) -> Option<u64> {
    let bid = tx.bid().ok().filter(|_| !is_at_floor(tx) && charged_bytes(tx, || false) > 0)?;
    Some(bid.highest().get())
}

/// Refuses a transaction that a block with this base fee may not take.
///
/// # Errors
/// FEE_ABOVE_MAX if [`highest_base_fee`] is lower.
pub fn check_base_fee(tx: &Transaction, base_fee: u64) -> Result<(), Rejection> {
    match highest_base_fee(tx) {
        Some(highest) if highest < base_fee => Err(above_max(highest, base_fee)),
        Some(_) | None => Ok(()),
    }
}

/// Whether a transaction pays `baseFeeFloor` for its bytes, whatever the base fee of the block.
#[must_use]
pub fn is_at_floor(tx: &Transaction) -> bool {
    inclusion(tx).1 == Inclusion::Floor
}

/// Whether validators vote with a transaction: such ones are only in blocks if a validator sent them.
#[must_use]
pub fn is_vote(tx: &Transaction) -> bool {
    inclusion(tx).1 == Inclusion::FreeVote
}

fn inclusion(tx: &Transaction) -> (u64, Inclusion) {
    for_kind!(tx.body(), kind => envelope::charged_bytes_and_inclusion(kind, tx))
}
