//! What one transaction offers for its place, and what it has to offer to take the place of another one.

use types::{Amount, Body, CheckedTx};

use crate::slab::Slot;

/// A tip for each KiB, in micro-OMBRA, rounded down.
pub(crate) type Rate = u64;

/// What everything is worth where tips do not count.
pub(super) const TIPLESS: Rate = 0;

/// What the transaction offers, whatever comes before it.
pub(crate) fn rate(tx: &CheckedTx) -> Rate {
    let tip = if let Body::Transfer(transfer) = tx.body() {
        transfer.fee
    } else {
        tx.bid().ok().and_then(|bid| bid.tip).unwrap_or(Amount::ZERO)
    };
    let bytes = u64::try_from(tx.content_bytes()).unwrap_or(u64::MAX).max(1);
    let rate = u128::from(tip.get()).saturating_mul(1_024).checked_div(u128::from(bytes));
    rate.and_then(|rate| u64::try_from(rate).ok()).unwrap_or(u64::MAX)
}

/// The least that a newcomer must be worth to take the place of what is worth `lowest`: an eighth more.
/// Otherwise one could outbid others by a micro again and again.
fn price_over(lowest: Rate) -> Rate {
    lowest.saturating_add(lowest.div_ceil(8).max(1))
}

/// What has to go first for a newcomer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Least {
    /// It waits for the base fee to fall: it pays nothing now, whatever it offers.
    Waits,
    /// It is worth so much.
    Pays(Rate),
}

/// Whether the least makes room for a newcomer that is worth so much; a newcomer without a worth would
/// wait itself.
pub(crate) fn is_outbid(least: Least, worth: Option<Rate>) -> bool {
    match (worth, least) {
        (None, _) => false,
        (Some(_), Least::Waits) => true,
        (Some(worth), Least::Pays(lowest)) => worth >= price_over(lowest),
    }
}

/// Whether a tenth of the pool and of each block is kept for such transactions: miners report with them
/// what they have done, in time or at a loss, and only a miner with work to report can send one.
pub(crate) fn is_favoured(tx: &CheckedTx) -> bool {
    matches!(
        tx.body(),
        Body::AgentStep(_) | Body::AgentFinish(_) | Body::CallCommit(_) | Body::CallReveal(_)
    )
}

/// An executable transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    pub(crate) slot: Slot,
    pub(crate) nonce: u64,
    pub(crate) arrival: u64,
    pub(crate) bytes: usize,
    pub(crate) rate: Rate,
    /// The highest base fee at which a block may take it, in micro-OMBRA per KiB.
    pub(crate) highest: u64,
    pub(crate) is_favoured: bool,
}
