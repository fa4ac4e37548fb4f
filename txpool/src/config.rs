//! The operator's settings of the pool. Consensus rules are not here but in genesis.

use serde::{Deserialize, Serialize};

/// Limits of the pool. Every count is of transactions, every size in bytes as
/// [`types::Transaction::encoded_bytes`] counts them, every time in milliseconds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The most transactions, executable and queued together. A pooled transaction of 600 bytes
    /// takes about 2 KB of memory.
    pub count_max: usize,
    /// The most bytes, executable and queued together.
    pub bytes_max: usize,
    /// The most transactions of one sender, executable and queued together.
    pub sender_count_max: usize,
    /// How far a nonce may be beyond the sender's last executable one.
    pub nonce_window: u64,
    /// How long a transaction may be queued. The time begins anew with the node.
    pub queued_age_max_ms: u64,
    /// From fork v7 on, how long a transaction may be in the pool. The time begins anew with the node.
    pub age_max_ms: u64,
    /// While others wait, one sender gets at most one part in this many of a block.
    pub block_share: usize,
    /// How many transactions are executed again in four goes when the draft has to be built anew: in one
    /// go while a block is committed, and in others in between. With the default a go takes about 5 ms,
    /// for which submissions wait. Of transactions that a block has and the pool had not, a commit
    /// executes up to half as many.
    pub rebuild_slice: usize,
    /// How many dropped transactions are remembered with their reason.
    pub dropped_count_max: usize,
    /// How many bytes of dropped transactions are remembered.
    pub dropped_bytes_max: usize,
    /// How long a dropped transaction is remembered.
    pub dropped_age_max_ms: u64,
    /// The hint in `POOL_FULL` and `SENDER_LIMIT`: when to try again.
    pub retry_after_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            count_max: 200_000,
            bytes_max: 256 * 1024 * 1024,
            sender_count_max: 2_048,
            nonce_window: 64,
            queued_age_max_ms: 10_800_000,
            age_max_ms: 3_600_000,
            block_share: 16,
            rebuild_slice: 2_048,
            dropped_count_max: 10_000,
            dropped_bytes_max: 16 * 1024 * 1024,
            dropped_age_max_ms: 600_000,
            retry_after_ms: 1_000,
        }
    }
}
