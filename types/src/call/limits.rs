//! Limits of calls.

/// The most members that a call can request.
pub const COMMITTEE_MAX: u8 = 15;
/// The most bytes of a payload and of a result.
pub const CALLDATA_BYTES_MAX: usize = 16_384;
/// The most conditional payments of a call.
pub const ON_RESULT_MAX: usize = 4;
/// The minimum number of blocks in a phase of a call.
pub const PHASE_BLOCKS: u64 = 10;
