//! What is measured of a gateway, for Prometheus: events as they are counted, and how the gateway was
//! seen last when it is asked for. Labels have a few values each, whatever clients send and however many
//! keys there are.

use std::fmt::Error;
use std::sync::Arc;
use std::time::Duration;

use gateway::operate::{Counters, Event, PHASES, Seen};
use gateway::request_service::RequestService;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use node::metrics::{encode_process, gauge};

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct AskedLabels {
    interface: &'static str,
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct LimitLabel {
    limit: &'static str,
}

/// Counters and histograms of a gateway. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    requests: Family<AskedLabels, Counter>,
    refusals: Family<LimitLabel, Counter>,
    ended: Family<OutcomeLabel, Counter>,
    spent_micro: Counter,
    claim_seconds: Histogram,
    answer_seconds: Histogram,
    request_seconds: Histogram,
}

/// From 50 ms to 27 min.
fn long() -> Histogram {
    Histogram::new(exponential_buckets(0.05, 2.0, 16))
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            refusals: Family::default(),
            ended: Family::default(),
            spent_micro: Counter::default(),
            claim_seconds: long(),
            answer_seconds: long(),
            request_seconds: long(),
        }
    }
}

impl Figures {
    /// Everything in a registry, with the state of the gateway, which started then.
    pub(super) fn registry(&self, service: Arc<RequestService>, started_ms: u64) -> Registry {
        let mut registry = Registry::with_prefix("ombra_gateway");
        self.register(&mut registry);
        registry.register_collector(Box::new(State { service, started_ms }));
        registry
    }

    fn register(&self, registry: &mut Registry) {
        let help = "Requests by interface (chat, agents, mcp, stdio) and by outcome: answered, \
                    running, hung_up, or the code of an error";
        registry.register("requests", help, self.requests.clone());
        let help = "Requests turned down because of a limit of the key or the wallet, by limit";
        registry.register("refusals", help, self.refusals.clone());
        let help = "Ended requests: paid, or why nobody was paid";
        registry.register("ended", help, self.ended.clone());
        let help = "Cost of ended requests, micro-OMBRA";
        registry.register("spent_micro", help, self.spent_micro.clone());
        let help = "From a request to the first claim of its run";
        registry.register("claim_seconds", help, self.claim_seconds.clone());
        let help = "From the first claim of a run to its settlement";
        registry.register("answer_seconds", help, self.answer_seconds.clone());
        let help = "From a request to its end";
        registry.register("request_seconds", help, self.request_seconds.clone());
    }
}

fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

impl Counters for Figures {
    fn count(&self, event: Event) {
        match event {
            Event::Asked { interface, outcome } => {
                let labels = AskedLabels { interface: interface.word(), outcome };
                self.requests.get_or_create(&labels).inc();
            }
            Event::Refused { limit } => {
                self.refusals.get_or_create(&LimitLabel { limit }).inc();
            }
            Event::Claimed { after_ms } => self.claim_seconds.observe(seconds(after_ms)),
            Event::Ended { outcome, micro, after_ms, answer_ms } => {
                self.ended.get_or_create(&OutcomeLabel { outcome }).inc();
                self.spent_micro.inc_by(micro);
                self.request_seconds.observe(seconds(after_ms));
                if let Some(answer_ms) = answer_ms {
                    self.answer_seconds.observe(seconds(answer_ms));
                }
            }
        }
    }
}

/// The state of a gateway, read when Prometheus asks.
#[derive(Debug)]
struct State {
    service: Arc<RequestService>,
    started_ms: u64,
}

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let (encoder, service) = (&mut encoder, &self.service);
        let version = [("version", env!("CARGO_PKG_VERSION")), ("commit", node::COMMIT)];
        let help = "Always 1; the labels describe the running program";
        let mut build = encoder.encode_descriptor("build", help, None, MetricType::Gauge)?;
        ConstGauge::new(1_i64).encode(build.encode_family(&version)?)?;
        let help = "1 where a check of /readyz passes, 0 where it fails";
        let mut ready = encoder.encode_descriptor("ready_check", help, None, MetricType::Gauge)?;
        for check in service.checks() {
            let passes = ConstGauge::new(i64::from(check.is_ok));
            passes.encode(ready.encode_family(&[("check", check.name)])?)?;
        }
        encode_process(encoder, self.started_ms)?;
        let open = u64::from(service.is_open());
        gauge(encoder, "open", "1 while the gateway accepts requests", Some(open))?;
        gauge(encoder, "connections", "Connections of clients", Some(service.connections()))?;
        gauge(encoder, "streams", "Answers that are being streamed", Some(service.streams()))?;
        let help = "Requests to the node that got no answer";
        let failures = ConstCounter::new(service.node_failures());
        let (name, kind) = ("node_failures", MetricType::Counter);
        failures.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        encode_seen(encoder, &service.seen())?;
        let help = "The setting balance_micro_min: the least that the wallet should have left, \
             micro-OMBRA";
        gauge(encoder, "balance_micro_min", help, Some(service.balance_micro_min()))?;
        let help = "Time that the oldest signed transaction with an unknown outcome has waited";
        let (name, kind) = ("outbox_oldest_seconds", MetricType::Gauge);
        let oldest = ConstGauge::new(seconds(service.oldest_waits_ms()));
        oldest.encode(encoder.encode_descriptor(name, help, None, kind)?)
    }
}

fn encode_seen(encoder: &mut DescriptorEncoder<'_>, seen: &Seen) -> Result<(), Error> {
    let Seen { open, reserved_micro, escrowed_micro, outstanding_micro: _, .. } = seen;
    let Seen { outbox, oldest_ms: _, balance_micro, is_node_there, is_store_readable: _, .. } =
        seen;
    let help = "Open requests, by phase";
    let mut requests = encoder.encode_descriptor("open_requests", help, None, MetricType::Gauge)?;
    for (phase, count) in PHASES.iter().zip(open) {
        let count = ConstGauge::new(i64::try_from(*count).unwrap_or(i64::MAX));
        count.encode(requests.encode_family(&[("phase", *phase)])?)?;
    }
    let help = "Money reserved for open requests, micro-OMBRA";
    gauge(encoder, "reserved_micro", help, Some(*reserved_micro))?;
    let help = "The part of the reserved money that is in escrow on the chain, micro-OMBRA";
    gauge(encoder, "escrowed_micro", help, Some(*escrowed_micro))?;
    let help = "Balance of the wallet that the node reported last, micro-OMBRA";
    gauge(encoder, "balance_micro", help, *balance_micro)?;
    let help = "The part of the balance that no request needs, micro-OMBRA";
    gauge(encoder, "left_micro", help, seen.left_micro())?;
    let help = "Signed transactions whose outcome is unknown";
    gauge(encoder, "outbox", help, Some(*outbox))?;
    let help = "1 while the node answers";
    gauge(encoder, "node_ready", help, Some(u64::from(*is_node_there)))
}

#[cfg(test)]
mod tests {
    //! What is counted, and where.

    use gateway::operate::{Counters as _, Event, Interface};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::Figures;

    #[test]
    fn events_are_counted_with_their_labels() {
        let (figures, mut registry) = (Figures::default(), Registry::with_prefix("ombra_gateway"));
        figures.register(&mut registry);
        let interface = Interface::Stdio;
        figures.count(Event::Asked { interface, outcome: "no_miner" });
        figures.count(Event::Refused { limit: "budget" });
        figures.count(Event::Claimed { after_ms: 300 });
        let (outcome, answer_ms) = ("paid", Some(700));
        figures.count(Event::Ended { outcome, micro: 137, after_ms: 1_000, answer_ms });
        let outcome = "failed";
        figures.count(Event::Ended { outcome, micro: 3, after_ms: 20, answer_ms: None });
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "requests_total{interface=\"stdio\",outcome=\"no_miner\"} 1",
            "refusals_total{limit=\"budget\"} 1",
            "ended_total{outcome=\"paid\"} 1",
            "ended_total{outcome=\"failed\"} 1",
            "spent_micro_total 140",
            "claim_seconds_sum 0.3",
            "answer_seconds_sum 0.7",
            "answer_seconds_count 1",
            "request_seconds_count 2",
        ] {
            let line = format!("ombra_gateway_{line}");
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }
}
