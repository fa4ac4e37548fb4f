//! What the node measures, for Prometheus. The RPC's own figures are in the crate `rpc`, the
//! engine's in the engine; one registry shows them all.

mod condition;
mod validators;

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use txpool::Pool;
use types::call::{CallChange, CallStatus};
use types::{BlockEvents, BlockFees, Event};

pub(crate) use condition::Condition;
pub use condition::{encode_process, gauge};
pub(crate) use validators::ValidatorCollector;

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
    /// Of the next block; 0 before fork v7.
    pub(crate) base_fee: Gauge,
    /// What transactions burned for their places, in micro-OMBRA.
    pub(crate) places_burned: Counter,
    /// Calls of agents that were settled, by status.
    pub(crate) calls: Family<CallLabels, Counter>,
}

/// How a call of an agent ended.
type CallLabels = [(&'static str, &'static str); 1];

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
            base_fee: Gauge::default(),
            places_burned: Counter::default(),
            calls: Family::default(),
        };
        for status in CallStatus::ALL.into_iter().filter(|status| status.is_decided()) {
            drop(metrics.calls.get_or_create(&[("status", status.as_str())]));
        }
        let Self {
            build,
            execute,
            commit,
            pool,
            transactions,
            height,
            size,
            base_fee,
            places_burned,
            calls,
        } = metrics.clone();
        let help = "Settled calls of agents; for unassigned ones too few members could be drawn";
        registry.register("calls", help, calls);
        let registry = registry.sub_registry_with_prefix("chain");
        registry.register("height", "Height of the last committed block", height);
        registry.register("transactions", "Transactions in committed blocks", transactions);
        registry.register("block_transactions", "Transactions of a block", size);
        let help = "Base fee of the next block, in micro-OMBRA per KiB; 0 before fork v7";
        registry.register("base_fee_micro", help, base_fee);
        let help = "Inclusion fees that transactions burned, in micro-OMBRA";
        registry.register("places_burned_micro", help, places_burned);
        registry.register("build_seconds", "Building and executing a proposal", build);
        registry.register("execute_seconds", "Executing a block of another validator", execute);
        registry.register("commit_seconds", "Writing a block and its state, synced", commit);
        registry.register("pool_seconds", "Bringing the pool up to a new block", pool);
        metrics
    }

    /// Counts what the places in a committed block cost.
    pub(crate) fn count_fees(&self, events: &BlockEvents) {
        let Some(BlockFees { burned, next_base_fee, .. }) = events.fees() else { return };
        self.base_fee.set(i64::try_from(next_base_fee).unwrap_or(i64::MAX));
        self.places_burned.inc_by(burned.get());
    }

    /// Counts the calls of agents that a committed block has settled.
    pub(crate) fn count_calls(&self, events: &BlockEvents) {
        for (_, event) in events.iter() {
            let Event::CallChanged { change, .. } = event else { continue };
            let status = if let CallChange::Settled { status, .. } = change {
                *status
            } else if let CallChange::Unassigned { .. } = change {
                CallStatus::Unassigned
            } else {
                continue;
            };
            self.calls.get_or_create(&[("status", status.as_str())]).inc();
        }
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
        gauge(
            "txpool_pending",
            "Executable transactions that the next block could take",
            stats.pending,
        )?;
        let help = "Executable transactions that wait for the base fee to fall";
        gauge("txpool_waiting", help, stats.waiting)?;
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
        counter("txpool_refused", "Transactions rejected", refused)?;
        counter("txpool_dropped", "Transactions dropped", dropped)?;
        counter("txpool_evicted", "Transactions evicted", stats.evicted_total)?;
        counter(
            "txpool_rebuilds",
            "Times the pool executed its content again",
            stats.rebuilds_total,
        )
    }
}

#[cfg(test)]
mod tests {
    use types::{Address, Amount, Hash};

    use super::*;

    #[test]
    fn the_base_fee_is_that_of_the_next_block_and_what_was_burned_adds_up() {
        let metrics = BlockMetrics::register(&mut Registry::default());
        let mut block = BlockEvents::default();
        metrics.count_fees(&block);
        assert_eq!((0, 0), (metrics.base_fee.get(), metrics.places_burned.get()));
        let (burned, tips) = (Amount::new(7), Amount::ZERO);
        block.end.push(Event::FeesCharged { base_fee: 10, burned, tips, next_base_fee: 11 });
        metrics.count_fees(&block);
        metrics.count_fees(&block);
        assert_eq!((11, 14), (metrics.base_fee.get(), metrics.places_burned.get()));
    }

    #[test]
    fn calls_are_counted_when_they_are_settled_by_how_they_ended() {
        let metrics = BlockMetrics::register(&mut Registry::default());
        let (requester, refund) = (Address::default(), Amount::ZERO);
        let settled = |status| CallChange::Settled { requester, status, bill: Default::default() };
        let changes = [
            CallChange::Revealing { until: 1 },
            CallChange::Unassigned { requester, refund },
            settled(CallStatus::Success),
            settled(CallStatus::Success),
        ];
        let event = |change| Event::CallChanged { call_id: Hash::ZERO, change };
        let end = changes.into_iter().map(event).collect();
        let block = BlockEvents { end, ..BlockEvents::default() };
        metrics.count_calls(&block);
        let counted =
            |status: CallStatus| metrics.calls.get_or_create(&[("status", status.as_str())]).get();
        let statuses = [CallStatus::Success, CallStatus::Unassigned, CallStatus::Failed];
        assert_eq!(statuses.map(counted), [2, 1, 0]);
    }
}
