//! What is measured of a miner, for Prometheus: events as they are counted, and the miner's state
//! when it is asked for.

use std::collections::BTreeSet;
use std::fmt::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use miner::journal::call::{CallStanding, Served};
use miner::operate::{
    Alarm, BackendFact, MarketFact, NodeState, Process, StakeFact, Status, StatusService,
};
use miner::ports::{Counters, Event};
use node::metrics::{encode_process, gauge};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use rpc::ports::Readiness as _;

use super::monitor::Health;

/// The label of a tool that is not this miner's: any text that a model called.
const OTHER: &str = "other";

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct CodeLabel {
    code: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct StatusLabel {
    status: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct CallLabels {
    tool: String,
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct ToolLabel {
    tool: String,
}

/// Counters and histograms of a miner. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    decisions: Family<CodeLabel, Counter>,
    claims: Counter,
    claims_lost: Counter,
    runs: Family<StatusLabel, Counter>,
    run_seconds: Histogram,
    steps: Counter,
    step_tokens: Counter,
    prompt_tokens: Counter,
    output_tokens: Counter,
    answer_seconds: Histogram,
    tool_calls: Family<CallLabels, Counter>,
    tool_seconds: Family<ToolLabel, Histogram, fn() -> Histogram>,
    backend_failures: Counter,
    earned_micro: Counter,
    sweeps: Counter,
    swept_micro: Counter,
    journal_write_seconds: Histogram,
    /// Names of this miner's tools.
    tools: Arc<OnceLock<BTreeSet<String>>>,
}

/// From 10 ms to 5.8 min.
fn long() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 16))
}

/// From 0.1 ms to 3.3 s.
fn short() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 16))
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            decisions: Family::default(),
            claims: Counter::default(),
            claims_lost: Counter::default(),
            runs: Family::default(),
            run_seconds: Histogram::new(exponential_buckets(0.1, 2.0, 16)),
            steps: Counter::default(),
            step_tokens: Counter::default(),
            prompt_tokens: Counter::default(),
            output_tokens: Counter::default(),
            answer_seconds: long(),
            tool_calls: Family::default(),
            tool_seconds: Family::new_with_constructor(long),
            backend_failures: Counter::default(),
            earned_micro: Counter::default(),
            sweeps: Counter::default(),
            swept_micro: Counter::default(),
            journal_write_seconds: short(),
            tools: Arc::default(),
        }
    }
}

impl Figures {
    /// The miner works from now on: calls of its tools are counted by their names.
    pub(super) fn works(&self, status_service: &StatusService) {
        self.tools.get_or_init(|| status_service.tool_labels().into_iter().collect());
    }

    /// Everything in a registry, with the state of the miner.
    pub(super) fn registry(&self, health: Arc<Health>) -> Registry {
        let mut registry = Registry::with_prefix("ombra_miner");
        self.register_runs(&mut registry);
        self.register_work(&mut registry);
        registry.register_collector(Box::new(State(health)));
        registry
    }

    fn register_runs(&self, registry: &mut Registry) {
        let help = "Decisions about pending runs, by code: CLAIM or a reason not to claim";
        registry.register("decisions", help, self.decisions.clone());
        registry.register("claims", "Claims that were included", self.claims.clone());
        let help = "Claims that came too late or were rejected";
        registry.register("claims_lost", help, self.claims_lost.clone());
        registry.register("runs", "Settled runs, by how they ended", self.runs.clone());
        let help = "From the decision to claim a run to its settlement";
        registry.register("run_seconds", help, self.run_seconds.clone());
        let help = "Rewards of settled runs, micro-OMBRA";
        registry.register("earned_micro", help, self.earned_micro.clone());
        registry.register("sweeps", "Transfers to the cold address", self.sweeps.clone());
        let help = "Money sent to the cold address, micro-OMBRA";
        registry.register("swept_micro", help, self.swept_micro.clone());
    }

    fn register_work(&self, registry: &mut Registry) {
        registry.register("steps", "Steps that were included", self.steps.clone());
        let help = "Output tokens of included steps, which are paid";
        registry.register("step_tokens", help, self.step_tokens.clone());
        let help = "Tokens that the model read, as its server counts them";
        registry.register("prompt_tokens", help, self.prompt_tokens.clone());
        let help = "Tokens that the model wrote, as its server counts them";
        registry.register("output_tokens", help, self.output_tokens.clone());
        let help = "Time that the model took for an answer";
        registry.register("answer_seconds", help, self.answer_seconds.clone());
        let help = "Tool calls, by tool and outcome: ok or failed";
        registry.register("tool_calls", help, self.tool_calls.clone());
        registry.register("tool_seconds", "Duration of a tool call", self.tool_seconds.clone());
        let help = "Requests to the model that gave no output";
        registry.register("backend_failures", help, self.backend_failures.clone());
        let help = "Duration of a synced write to the journal";
        registry.register("journal_write_seconds", help, self.journal_write_seconds.clone());
    }

    /// The label of a tool: its own name, that of its server with a star, or one for all others.
    fn tool_label(&self, name: String) -> String {
        let Some(known) = self.tools.get() else { return OTHER.to_owned() };
        if known.contains(&name) {
            return name;
        }
        let server = name.split_once("__").map(|(server, _)| format!("{server}__*"));
        server.filter(|label| known.contains(label)).unwrap_or_else(|| OTHER.to_owned())
    }
}

fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

impl Counters for Figures {
    fn count(&self, event: Event) {
        match event {
            Event::Decided(code) => {
                self.decisions.get_or_create(&CodeLabel { code }).inc();
            }
            Event::Claimed => {
                self.claims.inc();
            }
            Event::LostRace => {
                self.claims_lost.inc();
            }
            Event::Step { tokens } => {
                self.steps.inc();
                self.step_tokens.inc_by(tokens);
            }
            Event::Answered { prompt_tokens, output_tokens, duration_ms } => {
                self.prompt_tokens.inc_by(prompt_tokens);
                self.output_tokens.inc_by(output_tokens);
                self.answer_seconds.observe(seconds(duration_ms));
            }
            Event::ToolCall { name, ok, duration_ms } => {
                let tool = self.tool_label(name);
                let outcome = if ok { "ok" } else { "failed" };
                self.tool_calls.get_or_create(&CallLabels { tool: tool.clone(), outcome }).inc();
                let label = ToolLabel { tool };
                self.tool_seconds.get_or_create(&label).observe(seconds(duration_ms));
            }
            Event::Finished { status, reward_micro, duration_ms } => {
                self.runs.get_or_create(&StatusLabel { status: status.as_str() }).inc();
                self.earned_micro.inc_by(reward_micro);
                self.run_seconds.observe(seconds(duration_ms));
            }
            Event::BackendFailed => {
                self.backend_failures.inc();
            }
            Event::Written { micros } => {
                self.journal_write_seconds.observe(Duration::from_micros(micros).as_secs_f64());
            }
            // Their sums are in the journal, and told from there.
            Event::Drawn | Event::Served { .. } => {}
            Event::Swept { micro } => {
                self.sweeps.inc();
                self.swept_micro.inc_by(micro);
            }
        }
    }
}

/// The state of a miner, read when Prometheus asks.
#[derive(Debug)]
struct State(Arc<Health>);

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let encoder = &mut encoder;
        let version = [("version", env!("CARGO_PKG_VERSION")), ("commit", node::COMMIT)];
        let help = "Always 1; the labels describe the running program";
        let mut build = encoder.encode_descriptor("build", help, None, MetricType::Gauge)?;
        ConstGauge::new(1_i64).encode(build.encode_family(&version)?)?;
        let help = "1 where a check of /readyz passes, 0 where it fails";
        let mut ready = encoder.encode_descriptor("ready_check", help, None, MetricType::Gauge)?;
        for check in self.0.checks() {
            let passes = ConstGauge::new(i64::from(check.is_ok));
            passes.encode(ready.encode_family(&[("check", check.name)])?)?;
        }
        encode_process(encoder, self.0.waiting.started_ms())?;
        let Some(status_service) = self.0.status_service() else { return Ok(()) };
        // A journal that cannot be read is a check that fails.
        let Ok(status) = status_service.status() else { return Ok(()) };
        let Some(process) = &status.process else { return Ok(()) };
        encode_status(encoder, &status)?;
        encode_running(encoder, process, status_service.idle())
    }
}

/// How the process is; `idle` is why there is no work, while that is an alarm.
fn encode_running(
    encoder: &mut DescriptorEncoder<'_>,
    process: &Process,
    idle: Option<&'static str>,
) -> Result<(), Error> {
    let ready = u64::from(process.backend == BackendFact::Ready);
    gauge(encoder, "backend_ready", "1 while the model can answer", Some(ready))?;
    let help = "How many runs the miner may work on at once";
    gauge(encoder, "slots", help, Some(process.slots_max))?;
    if let Some(then_ms) = process.run_seen_ms {
        let help = "When a pending run was last looked at, in seconds since 1970";
        let (name, kind) = ("run_seen_seconds", MetricType::Gauge);
        let seen = ConstGauge::new(seconds(then_ms));
        seen.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
    }
    let help = "1 while an alarm is active";
    let mut alarm = encoder.encode_descriptor("alarm", help, None, MetricType::Gauge)?;
    for name in Alarm::NAMES {
        let is_in_force = process.alarms.iter().any(|alarm| alarm.name == name);
        let value = ConstGauge::new(i64::from(is_in_force));
        value.encode(alarm.encode_family(&[("alarm", name)])?)?;
    }
    if let Some(why) = idle {
        let help = "Always 1, while lack of work is an alarm; the label says why there is no work";
        let name = "no_work";
        let mut idle = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(1_i64).encode(idle.encode_family(&[("reason", why)])?)?;
    }
    Ok(())
}

fn encode_status(encoder: &mut DescriptorEncoder<'_>, status: &Status) -> Result<(), Error> {
    let Status { wallet: _, now_ms: _, process: _, starting: _, node, .. } = status;
    let Status { open, outbox, today, market, .. } = status;
    let count = u64::try_from(open.len()).unwrap_or(u64::MAX);
    gauge(encoder, "open_runs", "Open runs", Some(count))?;
    let help = "Signed transactions whose outcome is unknown";
    gauge(encoder, "outbox", help, Some(*outbox))?;
    let ready = u64::from(node.state == NodeState::Ready);
    gauge(encoder, "node_ready", "1 while the node answers and is not behind", Some(ready))?;
    gauge(encoder, "node_height", "Height of the node's newest block", node.height)?;
    let help = "Balance of the wallet that the node reported last, micro-OMBRA";
    gauge(encoder, "balance_micro", help, node.balance_micro)?;
    encode_stake(encoder, node.stake)?;
    encode_market(encoder, market)?;
    gauge(encoder, "today_claims", "Claims today (UTC)", Some(today.claims))?;
    let help = "Amount burned by transactions today (UTC), micro-OMBRA";
    gauge(encoder, "today_spent_micro", help, Some(today.spent_micro))
}

/// What became of the calls of the journal: sums that go on where the process before ended.
fn encode_market(encoder: &mut DescriptorEncoder<'_>, market: &MarketFact) -> Result<(), Error> {
    let MarketFact { offers: _, bond: _, paused, served, open } = market;
    let paused = u64::try_from(paused.len()).unwrap_or(u64::MAX);
    gauge(encoder, "open_calls", "Open calls of agents", Some(*open))?;
    let help = "Executors that are not offered because of a dissent";
    gauge(encoder, "paused_offers", help, Some(paused))?;
    let Served { elected, agreed, dissented, undecided, unable, withheld, absent, .. } = *served;
    let Served { penalised, earned_micro, lost_micro, .. } = *served;
    counter(encoder, "calls_elected", "Calls for which the miner was drawn", elected)?;
    let help = "Ended calls, by the miner's standing";
    let mut calls = encoder.encode_descriptor("calls", help, None, MetricType::Counter)?;
    let counts = [
        (CallStanding::Agreed, agreed),
        (CallStanding::Dissented, dissented),
        (CallStanding::Undecided, undecided),
        (CallStanding::Unable, unable),
        (CallStanding::Withheld, withheld),
        (CallStanding::Absent, absent),
    ];
    for (standing, count) in counts {
        let labels = [("standing", standing.word())];
        ConstCounter::new(count).encode(calls.encode_family(&labels)?)?;
    }
    counter(encoder, "calls_penalised", "Calls in which the miner lost bond", penalised)?;
    let help = "Earned with calls, micro-OMBRA";
    counter(encoder, "calls_earned_micro", help, earned_micro)?;
    let help = "Bond lost with calls, micro-OMBRA";
    counter(encoder, "calls_lost_micro", help, lost_micro)
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> Result<(), Error> {
    let encoder = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    ConstCounter::new(value).encode(encoder)
}

/// What is at stake; nothing while the chain has no bonds.
fn encode_stake(
    encoder: &mut DescriptorEncoder<'_>,
    stake: Option<StakeFact>,
) -> Result<(), Error> {
    let Some(stake) = stake else { return Ok(()) };
    let help = "The bond of the wallet, micro-OMBRA";
    gauge(encoder, "bonded_micro", help, Some(stake.bonded_micro))?;
    let help = "The part of the bond that runs have locked, micro-OMBRA";
    gauge(encoder, "locked_micro", help, Some(stake.locked_micro))?;
    let help = "Taken out of the bond and not paid out yet, micro-OMBRA";
    gauge(encoder, "unbonding_micro", help, Some(stake.unbonding_micro))?;
    let help = "Held rewards, micro-OMBRA";
    gauge(encoder, "held_micro", help, Some(stake.held.micro))
}

#[cfg(test)]
mod tests {
    //! What a model calls cannot make labels.

    use super::Figures;

    #[test]
    fn the_label_of_a_tool_is_one_of_a_few() {
        let figures = Figures::default();
        assert_eq!("other", figures.tool_label("now".into()), "before the tools are known");
        figures.tools.set(["now".to_owned(), "time__*".to_owned()].into()).unwrap();
        let cases = [
            ("now", "now"),
            ("time__convert", "time__*"),
            ("time__whatever__else", "time__*"),
            ("space__convert", "other"),
            ("now2", "other"),
            ("", "other"),
        ];
        for (name, label) in cases {
            assert_eq!(label, figures.tool_label(name.into()), "{name}");
        }
    }
}
