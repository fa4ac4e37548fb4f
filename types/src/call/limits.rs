//! Limits of calls.

use crate::Params;

/// The most members that a call can request.
pub const COMMITTEE_MAX: u8 = 15;
/// The most bytes of a payload and of a result.
pub const CALLDATA_BYTES_MAX: usize = 16_384;
/// The most conditional payments of a call.
pub const ON_RESULT_MAX: usize = 4;
/// The minimum number of blocks in a phase of a call.
pub const PHASE_BLOCKS: u64 = 10;
/// The size in bytes of a CALL_REVEAL without its result, rounded up.
const REVEAL_BYTES: u32 = 2_048;

/// The most bytes of a result that a call can allow (docs/protocol.md section 5.21): a CALL_REVEAL has
/// the result in hex, and must not be larger than `maxTxBytes`.
#[must_use]
pub fn result_bytes_max(params: &Params) -> u64 {
    let in_hex = params.max_tx_bytes.saturating_sub(REVEAL_BYTES) / 2;
    u64::try_from(CALLDATA_BYTES_MAX).unwrap_or(u64::MAX).min(in_hex.into())
}
