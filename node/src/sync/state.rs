//! What the node says about its height: where it is on its way to the tip of the chain.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Peers that are so few blocks ahead are at the same height: they tell theirs only now and then.
pub(super) const BLOCKS_NEAR: u64 = 3;

/// What the node is doing about its height.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// It takes part in consensus, or follows it.
    Running,
    /// It has started and finds out how far its peers are.
    Meeting,
    /// It executes blocks that its peers send. Nothing can be submitted.
    CatchingUp,
}

/// Where the node is on its way to the tip of the chain.
#[derive(Debug, Default)]
pub(crate) struct SyncState {
    phase: AtomicU8,
    is_behind: AtomicBool,
    /// The height that was believed of the chain when there were peers to believe.
    believed: AtomicU64,
    /// Blocks are missing that too few of the named peers have.
    lacks_voices: AtomicBool,
    pub(super) figures: SyncMetrics,
}

impl SyncState {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self { figures: SyncMetrics::register(registry), ..Self::default() }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Running,
            1 => Phase::Meeting,
            _ => Phase::CatchingUp,
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        let number = match phase {
            Phase::Running => 0,
            Phase::Meeting => 1,
            Phase::CatchingUp => 2,
        };
        self.phase.store(number, Ordering::Release);
        self.show();
    }

    /// Whether the database is being brought up to the peers', so that the pool cannot follow.
    pub(crate) fn is_catching_up(&self) -> bool {
        self.phase() == Phase::CatchingUp
    }

    /// Whether the node is known to be behind the chain.
    pub(crate) fn is_syncing(&self) -> bool {
        self.is_catching_up() || self.is_behind.load(Ordering::Acquire)
    }

    /// Says whether the node, at this height, is behind its peers.
    pub(super) fn set_behind(&self, is_behind: bool, height: u64) {
        if self.is_behind.swap(is_behind, Ordering::AcqRel) != is_behind {
            let peers = self.believed.load(Ordering::Acquire);
            if is_behind {
                tracing::warn!(height, peers, "the node is behind its peers");
            } else {
                tracing::info!(height, peers, "the node is no longer behind its peers");
            }
        }
        self.show();
    }

    /// Remembers the height that is believed of the chain; answers the last one while there is none.
    pub(super) fn heard(&self, believed: Option<u64>) -> u64 {
        if let Some(height) = believed {
            self.believed.store(height, Ordering::Release);
        }
        self.believed.load(Ordering::Acquire)
    }

    /// Says whether the node waits for a second peer that has the same blocks.
    pub(super) fn set_lacks_voices(&self, lacks: bool) {
        self.lacks_voices.store(lacks, Ordering::Release);
    }

    fn show(&self) {
        self.figures.syncing.set(i64::from(self.is_syncing()));
    }

    /// In a few words, for people.
    pub(crate) fn detail(&self, height: u64) -> String {
        let target = self.figures.target.get();
        if self.lacks_voices.load(Ordering::Acquire) {
            return format!(
                "height {height}, waits until two of the named peers have the same blocks"
            );
        }
        match self.phase() {
            Phase::Meeting => format!("height {height}, finding out how far peers are"),
            Phase::CatchingUp => format!("catching up: height {height} of {target}"),
            Phase::Running if self.is_syncing() => {
                format!("behind: height {height}, peers are at {target}")
            }
            Phase::Running => format!("height {height}"),
        }
    }
}

/// Figures of catching up, for Prometheus, as `sync_…`.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncMetrics {
    /// 1 while the node is behind.
    pub(super) syncing: Gauge,
    /// The height that is believed of the chain.
    pub(super) target: Gauge,
    /// Peers that blocks are fetched from.
    pub(super) peers: Gauge,
    /// Bytes of fetched blocks.
    pub(super) bytes: Gauge,
    /// Blocks that were executed while catching up.
    pub(super) blocks: Counter,
    /// Transactions in them.
    pub(super) transactions: Counter,
}

impl SyncMetrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { syncing, target, peers, bytes, blocks, transactions } = metrics.clone();
        let registry = registry.sub_registry_with_prefix("sync");
        registry.register("syncing", "Whether the node is behind the chain", syncing);
        registry.register("target_height", "Height of the chain, as far as the node knows", target);
        registry.register("peers", "Peers that blocks are fetched from", peers);
        registry.register("fetched_bytes", "Bytes of blocks of this catch-up", bytes);
        registry.register("blocks", "Blocks executed while catching up", blocks);
        registry.register("transactions", "Transactions in these blocks", transactions);
        metrics
    }
}

/// A number that a gauge can show.
pub(super) fn gauge(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
