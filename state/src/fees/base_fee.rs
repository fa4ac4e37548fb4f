//! What a block used, and how the base fee follows it.

use types::Params;
use types::params::BASE_FEE_MAX;

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
