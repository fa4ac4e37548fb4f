//! What a place in a block costs (docs/protocol.md section 15): the inclusion fee of one transaction,
//! and how the base fee follows demand.

use types::params::BASE_FEE_MAX;
use types::{Amount, Bid, Code, Params, Rejection, Transaction, for_kind};

use crate::tx::{Inclusion, envelope};

/// The base fee that holds in a block, in micro-OMBRA per KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Price {
    /// What a block takes.
    pub base_fee: u64,
    /// For the pool: the base fee up to which it sets money of waiting transactions aside.
    pub reserve: Option<u64>,
}

impl Price {
    /// The price that a block takes.
    #[must_use]
    pub const fn of_block(base_fee: u64) -> Self {
        Self { base_fee, reserve: None }
    }

    /// What `charged` bytes cost at this price; of the pool's price, what it sets aside for them, which is
    /// never more than the bid allows: a transaction of the pool waits while the base fee is higher.
    ///
    /// # Errors
    /// FEE_ABOVE_MAX if this is the price of a block and above what the bid allows.
    pub(crate) fn inclusion(self, bid: &Bid, charged: u64) -> Result<Amount, Rejection> {
        // A transaction that pays nothing for its place is accepted at any base fee: a miner's steps
        // must not wait while others pay.
        if charged == 0 {
            return Ok(Amount::ZERO);
        }
        let highest = bid.highest().get();
        let rate = match self.reserve {
            Some(reserve) => reserve.max(self.base_fee).min(highest),
            None if self.base_fee > highest => return Err(above_max(highest, self.base_fee)),
            None => self.base_fee,
        };
        Ok(inclusion_fee(charged, rate))
    }
}

/// `ceil(charged × base fee / 1024)`, in micro-OMBRA.
#[must_use]
pub fn inclusion_fee(charged: u64, base_fee: u64) -> Amount {
    let product = u128::from(charged).saturating_mul(u128::from(base_fee));
    Amount::new(u64::try_from(product.div_ceil(1_024)).unwrap_or(u64::MAX))
}

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

fn above_max(highest: u64, base_fee: u64) -> Rejection {
    let expected = format_args!("at least {base_fee}, the base fee");
    Rejection::new(Code::FeeAboveMax, "maxBaseFee", highest, expected)
        .with("baseFee", Amount::new(base_fee))
}

/// The highest base fee at which a block may take a transaction, in micro-OMBRA per KiB. None if there is
/// a block that takes it at any: it pays for no bytes, it pays the lowest base fee there is, or it is a vote, which may be the first one of its
/// sender in the block (docs/protocol.md sections 15.1 and 15.4).
#[must_use]
pub fn highest_base_fee(tx: &Transaction) -> Option<u64> {
    let is_at_floor = inclusion(tx).1 == Inclusion::Floor;
    let bid = tx.bid().ok().filter(|_| !is_at_floor && charged_bytes(tx, || false) > 0)?;
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

/// Whether validators vote with a transaction: such ones are only in blocks if a validator sent them.
#[must_use]
pub fn is_vote(tx: &Transaction) -> bool {
    inclusion(tx).1 == Inclusion::FreeVote
}

fn inclusion(tx: &Transaction) -> (u64, Inclusion) {
    for_kind!(tx.body(), kind => envelope::charged_bytes_and_inclusion(kind, tx))
}

/// What a block used of what it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Used {
    /// Bytes of payloads and signatures.
    pub bytes: u64,
    /// Units of work.
    pub work: u64,
}

impl Used {
    pub(crate) const fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.work = self.work.saturating_add(other.work);
    }

    /// What the base fee follows of a transaction that used so much and was charged for so many bytes:
    /// these bytes, and its work in the same proportion, rounded down (docs/protocol.md section 15.2).
    #[must_use]
    pub fn priced(self, charged: u64) -> Self {
        let Self { bytes, work } = self;
        let part = u128::from(work).saturating_mul(u128::from(charged));
        let part = part.checked_div(u128::from(bytes)).unwrap_or(0);
        Self { bytes: charged, work: u64::try_from(part).unwrap_or(u64::MAX) }
    }
}

/// The base fee of the block after one whose transactions were charged for so much ([`Used::priced`]).
/// What is free does not count: it does not become less when the price rises, and would raise it for
/// others without end.
#[must_use]
pub fn next_base_fee(base_fee: u64, used: Used, params: &Params) -> u64 {
    let max_bytes = u64::from(params.max_block_bytes);
    let target = u128::from(max_bytes / 2).max(1);
    let work = u128::from(used.work).saturating_mul(u128::from(max_bytes));
    let work = work.checked_div(u128::from(params.max_block_work)).unwrap_or(0);
    let used = u128::from(used.bytes).max(work).min(target.saturating_mul(2));
    let difference = used.abs_diff(target);
    let step = u128::from(base_fee).saturating_mul(difference);
    let step = step.checked_div(target).unwrap_or(0) / 64;
    let step = if difference == 0 { 0 } else { u64::try_from(step).unwrap_or(u64::MAX).max(1) };
    let next =
        if used > target { base_fee.saturating_add(step) } else { base_fee.saturating_sub(step) };
    next.clamp(params.base_fee_floor.min(BASE_FEE_MAX), BASE_FEE_MAX)
}

#[cfg(test)]
mod tests;
