//! The settings and their defaults.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use store::Options;

/// The settings of a node. Every section belongs to the crate that reads it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// JSON-RPC, WebSocket, health, metrics.
    pub rpc: rpc::Config,
    /// Peers.
    pub p2p: P2p,
    /// How long validators wait for each other.
    pub consensus: Consensus,
    /// Catching up with peers.
    pub sync: Sync,
    /// The transaction pool.
    pub txpool: txpool::Config,
    /// The database.
    pub storage: Storage,
    /// Snapshots of the state.
    pub snapshots: Snapshots,
    /// Logs.
    pub log: Log,
    /// Stopping.
    pub shutdown: Shutdown,
}

/// Whom the node talks to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct P2p {
    /// Multiaddress that the consensus engine listens on.
    pub listen: String,
    /// Multiaddresses of the peers that the engine stays connected to.
    pub peers: Vec<String>,
    /// Whether others than those peers may connect to the engine.
    pub open: bool,
    /// The network for transactions, on a port of its own.
    pub gossip: p2p::Config,
}

impl Default for P2p {
    fn default() -> Self {
        Self {
            listen: "/ip4/0.0.0.0/tcp/30777".to_owned(),
            peers: Vec::new(),
            open: false,
            gossip: p2p::Config::default(),
        }
    }
}

/// How long a step of a round may take, in milliseconds, and what is forgiven.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Consensus {
    /// For a whole proposal to arrive.
    pub timeout_propose_ms: u64,
    /// For prevotes to agree.
    pub timeout_prevote_ms: u64,
    /// For precommits to agree.
    pub timeout_precommit_ms: u64,
    /// What each further round adds.
    pub timeout_step_ms: u64,
    /// A height whose contradictory messages the node does not accuse anybody of; 0 for none. For a height
    /// that operators have agreed to sign again.
    pub pardoned_height: u64,
}

impl Default for Consensus {
    fn default() -> Self {
        Self {
            timeout_propose_ms: 1_000,
            timeout_prevote_ms: 500,
            timeout_precommit_ms: 500,
            timeout_step_ms: 250,
            pardoned_height: 0,
        }
    }
}

/// Catching up with peers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sync {
    /// How long a node that starts waits at most until half of its `p2p.gossip.peers` have said how
    /// far they are, in milliseconds.
    pub wait_ms: u64,
    /// The node stops with an error when its height has not moved for so long although peers show
    /// later blocks, in milliseconds; 0 for never.
    pub stalled_ms: u64,
    /// A block of the chain, from somebody whom the operator trusts: `ombra query trusted`.
    pub trusted: Trusted,
    /// A node whose newest block is older than this believes no single peer, in milliseconds.
    pub trust_period_ms: u64,
}

impl Sync {
    /// What `trust_period_ms` may be: a second to ten years.
    pub const TRUST_PERIOD_MS: RangeInclusive<u64> = 1_000..=315_360_000_000;
}

impl Default for Sync {
    fn default() -> Self {
        Self {
            wait_ms: 3_000,
            stalled_ms: 60_000,
            trusted: Trusted::default(),
            trust_period_ms: 14 * 24 * 3_600 * 1_000,
        }
    }
}

/// A block that no chain may contradict; height 0 and no hash trust the keys of genesis alone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trusted {
    /// Its height.
    pub height: u64,
    /// Its hash, 64 lowercase hex characters.
    pub hash: String,
}

/// The database.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// Memory for blocks read from disk, in bytes.
    pub block_cache_bytes: u64,
    /// Memory for writes that wait to be sorted to disk, in bytes.
    pub write_buffer_bytes: u64,
    /// Memory for the hot rows that execution reads, in bytes.
    pub hot_cache_bytes: u64,
    /// The node stops when the disk has less room than this, in bytes.
    pub free_disk_bytes_min: u64,
}

impl Storage {
    /// What the database is opened with.
    pub(crate) fn options(&self) -> Options {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Options {
            block_cache_bytes: size(self.block_cache_bytes),
            write_buffer_bytes: size(self.write_buffer_bytes),
            hot_value_bytes: self.hot_cache_bytes,
            node_cache_bytes: self.hot_cache_bytes.saturating_mul(3) / 2,
            ..Options::default()
        }
    }
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            block_cache_bytes: 64 * 1024 * 1024,
            write_buffer_bytes: 64 * 1024 * 1024,
            hot_cache_bytes: 32 * 1024 * 1024,
            free_disk_bytes_min: 256 * 1024 * 1024,
        }
    }
}

/// Snapshots of the state, for nodes that do not begin with genesis.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Snapshots {
    /// A snapshot is made of every height that is a multiple of this; 0 makes none.
    pub interval_blocks: u64,
    /// How many are kept, 1 to 4.
    pub keep: u32,
    /// Whether a node without a database fetches a snapshot instead of all blocks.
    pub fetch: bool,
}

impl Snapshots {
    /// How many may be kept: peers are told of no more.
    pub const KEEP: RangeInclusive<u32> = 1..=4;
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { interval_blocks: 10_000, keep: 2, fetch: false }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Logs, on standard error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// What is logged, as `level` or `target=level,…`.
    pub filter: String,
    /// `text` or `json`.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { filter: "info".to_owned(), format: LogFormat::Text }
    }
}

/// Stopping.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shutdown {
    /// How long an ordered stop may take, in milliseconds.
    pub time_ms: u64,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { time_ms: 15_000 }
    }
}
