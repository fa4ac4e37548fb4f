//! What the node measures, for Prometheus. The RPC's own figures are in the crate `rpc`, the
//! engine's in the engine; one registry shows them all.

mod condition;

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use txpool::Pool;

pub(crate) use condition::{Condition, encode_process, gauge};

/// From 0.2 ms to 3.3 s.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.0002, 2.0, 15))
}

/// How long the steps of a block take, and how large blocks are.
#[derive(Clone, Debug)]
pub(crate) struct BlockMetrics {
    pub(crate) build: Histogram,
    pub(crate) execute: Histogram,
    pub(crate) commit: Histogram,
    pub(crate) pool: Histogram,
    pub(crate) transactions: Counter,
    pub(crate) height: Gauge,
    pub(crate) size: Histogram,
}

impl BlockMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            build: seconds(),
            execute: seconds(),
            commit: seconds(),
            pool: seconds(),
            transactions: Counter::default(),
            height: Gauge::default(),
            size: Histogram::new(exponential_buckets(1.0, 2.0, 14)),
        };
        let Self { build, execute, commit, pool, transactions, height, size } = metrics.clone();
        let registry = registry.sub_registry_with_prefix("chain");
        registry.register("height", "Height of the last committed block", height);
        registry.register("transactions", "Transactions in committed blocks", transactions);
        registry.register("block_transactions", "Transactions of a block", size);
        registry.register("build_seconds", "Building and executing a proposal", build);
        registry.register("execute_seconds", "Executing a block of another validator", execute);
        registry.register("commit_seconds", "Writing a block and its state, synced", commit);
        registry.register("pool_seconds", "Bringing the pool up to a new block", pool);
        metrics
    }
}

/// The pool's figures, read when Prometheus asks.
#[derive(Debug)]
pub(crate) struct PoolCollector(pub(crate) Arc<Pool>);

impl Collector for PoolCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let stats = self.0.stats();
        let count = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let mut gauge = |name, help, value: usize| {
            let metric = ConstGauge::new(count(value));
            let encoder = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(encoder)
        };
        gauge("txpool_pending", "Executable transactions", stats.pending)?;
        gauge("txpool_queued", "Transactions that wait for a nonce", stats.queued)?;
        gauge("txpool_bytes", "Bytes of pooled transactions", stats.bytes)?;
        gauge("txpool_senders", "Senders with pooled transactions", stats.senders)?;
        let refused = stats.refused_total.values().fold(0_u64, |a, b| a.saturating_add(*b));
        let dropped = stats.dropped_total.values().fold(0_u64, |a, b| a.saturating_add(*b));
        let mut counter = |name, help, value: u64| {
            let metric = ConstCounter::new(value);
            let encoder = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(encoder)
        };
        counter("txpool_accepted", "Transactions accepted", stats.accepted_total)?;
        counter("txpool_known", "Submissions of known transactions", stats.known_total)?;
        counter(
            "txpool_included",
            "Pooled transactions that got into blocks",
            stats.included_total,
        )?;
        counter("txpool_refused", "Transactions refused", refused)?;
        counter("txpool_dropped", "Transactions dropped", dropped)?;
        counter("txpool_evicted", "Transactions evicted", stats.evicted_total)?;
        counter(
            "txpool_rebuilds",
            "Times the pool executed its content again",
            stats.rebuilds_total,
        )
    }
}
