//! What a transaction makes a node do, in units of about a microsecond of one core (docs/protocol.md
//! section 16). From v7 on a block may take `maxBlockWork` of them.
//!
//! ```text
//! work = TRANSACTION + payload in KiB × PAYLOAD_KIB + what the kind says: rows × ROW, and its own
//! ```
//!
//! The numbers are rules: whoever changes one changes which blocks are valid. They were taken from
//! `./run cargo bench -p state --bench work`.

use types::{Params, Run};

/// So many excluded miners of a run take a unit.
const EXCLUDED_PER_UNIT: u64 = 10;
/// What every transaction takes: its signature, its account's row and its place in the block.
pub const TRANSACTION: u64 = 25;
/// A KiB of payload: reading, hashing and keeping it.
pub const PAYLOAD_KIB: u64 = 3;
/// A row that is read or written besides: in the state, in its tree and on the disk.
pub const ROW: u64 = 2;
/// A KiB of a blob that is decoded and kept, beside the payload that it came in.
pub const STORED_KIB: u64 = 3;
/// A KiB of a blob that is read again and hashed.
pub const HASHED_KIB: u64 = 1;

/// A KiB of the metadata of an agent that is read, checked by its rules, and kept.
pub const METADATA_KIB: u64 = 12;
/// What an election reads of each offer that counts: a part of a scan, and two rows; several make a unit.
const CANDIDATE_ROWS: u64 = 2;
/// What changes of a member: its record, its bond, its assignments, its account, its list of calls.
const MEMBER_ROWS: u64 = 6;

/// What changes of a call when a member does something, and when a phase ends.
const CALL_ROWS: u64 = 8;

/// What the ends of calls' phases may take in a block for each expiry that the block may have: a call has
/// several members, and each of them several rows.
const PHASES_PER_EXPIRY: u64 = 64;
/// The most calls and appeals that fit into a block: twice as many as the elections that a block may hold
/// (`market::draw`), because a block is half full while the base fee stays the same.
const CALLS_OF_FULL_BLOCK: u64 = 512;

/// No transaction takes less: the smallest payload counts as a KiB, and every kind changes a row.
pub const LEAST: u64 = of_any(1).saturating_add(rows(1));

/// So many rows.
#[must_use]
pub const fn rows(count: u64) -> u64 {
    count.saturating_mul(ROW)
}

/// So many bytes at a price for each KiB, rounded up.
#[must_use]
pub const fn bytes(count: u64, per_kib: u64) -> u64 {
    count.saturating_mul(per_kib).div_ceil(1_024)
}

/// A run's row and its deadline's: it grows with the miners that it names.
#[must_use]
pub fn run(run: &Run) -> u64 {
    let excluded = u64::try_from(run.excluded_miners.len()).unwrap_or(u64::MAX);
    rows(2).saturating_add(excluded.div_ceil(EXCLUDED_PER_UNIT))
}

/// The places of a miner's offers where its bond changes: each is left and taken.
#[must_use]
pub fn moved_offers(count: u32) -> u64 {
    rows(u64::from(count).saturating_mul(2))
}

/// An election: for each executor the offers that count, as many as there may be, and for each candidate its
/// bond and its assignments; then the rows of those who are drawn.
#[must_use]
pub fn election(params: &Params, executors: usize, size: u8) -> u64 {
    let executors = u64::try_from(executors).unwrap_or(u64::MAX);
    let offers = u64::from(params.offers_per_executor_max);
    let read = executors.saturating_mul(CANDIDATE_ROWS).saturating_mul(offers);
    rows(u64::from(size).saturating_mul(MEMBER_ROWS)).saturating_add(read)
}

/// What a member of a call does, and its part of the end of the phase, which may be the settlement: the
/// call's rows, and the member's.
#[must_use]
pub const fn member() -> u64 {
    rows(CALL_ROWS.saturating_add(MEMBER_ROWS))
}

/// The least that asks for an election, whatever it reads: else a block with a large budget could ask for
/// more elections than the blocks after it may hold.
#[must_use]
pub const fn least_of_election(params: &Params) -> u64 {
    params.max_block_work.div_ceil(CALLS_OF_FULL_BLOCK)
}

/// What the ends of calls' phases may take in a block.
#[must_use]
pub fn of_phases(params: &Params) -> u64 {
    u64::from(params.max_expiries_per_block).saturating_mul(PHASES_PER_EXPIRY)
}

/// The end of a phase: the call's rows.
#[must_use]
pub const fn phase() -> u64 {
    rows(CALL_ROWS)
}

/// The decision of a round: for each of its members the assignments to so many executors.
#[must_use]
pub fn decision(members: usize, executors: usize) -> u64 {
    rows(u64::try_from(members.saturating_mul(executors)).unwrap_or(u64::MAX))
}

/// What the settlement of a call does to so many members.
#[must_use]
pub fn settlement(members: usize) -> u64 {
    rows(u64::try_from(members).unwrap_or(u64::MAX).saturating_mul(MEMBER_ROWS))
}

/// What every transaction of this size takes.
#[must_use]
pub const fn of_any(size: u64) -> u64 {
    TRANSACTION.saturating_add(bytes(size, PAYLOAD_KIB))
}
