//! When somebody has to look, and why. Pure; the time is given.

use std::collections::BTreeMap;
use std::fmt;

use types::Hash;

use super::config::AlarmConfig;
use super::record::{AlarmFact, BackendFact, NodeFact, NodeState};
use super::tally::Counts;
use crate::journal::call::Paused;
use crate::policy::Policy;

/// What alarms follow from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The time, milliseconds since 1970.
    pub now_ms: u64,
    /// The thresholds.
    pub config: &'a AlarmConfig,
    /// The policy in force.
    pub policy: &'a Policy,
    /// The node.
    pub node: &'a NodeFact,
    /// The back end.
    pub backend: &'a BackendFact,
    /// What happened.
    pub counts: &'a Counts,
    /// Executors that are not offered after dissents.
    pub paused: &'a BTreeMap<String, Paused>,
    /// Whether agents are served: the settings have offers.
    pub serves: bool,
    /// When the oldest transaction was signed whose fate is not known, milliseconds since 1970; none if
    /// there is none.
    pub oldest_signed_ms: Option<u64>,
}

/// How long a transaction may be in no block while the chain makes blocks, milliseconds.
const STUCK_MS: u64 = 600_000;

/// Something that somebody has to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The account is nearly empty.
    BalanceLow {
        /// What it has, micro-OMBRA.
        got_micro: u64,
        /// What it should have.
        min_micro: u64,
    },
    /// Others agreed about another answer than this miner's: its machine may compute wrongly.
    Dissent {
        /// The executors that are not offered since.
        executors: Vec<String>,
        /// The first call of the first of them.
        call: Hash,
    },
    /// Nothing was worked on for long.
    NoWork {
        /// For how long, seconds.
        idle_s: u64,
        /// Why.
        why: Idle,
    },
    /// A signed transaction is in no block, although the chain has made blocks for long since.
    OutboxStuck {
        /// From its signature to the newest block, seconds.
        waits_s: u64,
    },
}

/// Why there is no work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Idle {
    /// The node does not answer.
    NodeAway(String),
    /// The node is behind the chain.
    NodeSyncing,
    /// The operator switched claiming off.
    Paused,
    /// The model cannot be asked.
    BackendDown(String),
    /// No run is claimed, as the operator wants it, and no call came.
    NoCalls,
    /// Nobody asks for anything.
    NoPendingRuns,
    /// Every claim was lost to others.
    ClaimsLost(u64),
    /// Runs were looked at and not claimed.
    NotClaimed {
        /// The most frequent reason.
        code: &'static str,
        /// How often it was the reason.
        times: u64,
        /// Decisions in all.
        of: u64,
    },
}

impl Alarm {
    /// All names, for metrics.
    pub const NAMES: [&'static str; 4] = ["balance_low", "dissent", "no_work", "outbox_stuck"];

    /// A fixed word for programs and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::BalanceLow { .. } => "balance_low",
            Self::Dissent { .. } => "dissent",
            Self::NoWork { .. } => "no_work",
            Self::OutboxStuck { .. } => "outbox_stuck",
        }
    }
}

impl Idle {
    /// A fixed word for programs and metrics; for runs that were not claimed the code of the reason.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::NodeAway(_) => "node_away",
            Self::NodeSyncing => "node_syncing",
            Self::Paused => "paused",
            Self::BackendDown(_) => "backend_down",
            Self::NoCalls => "no_calls",
            Self::NoPendingRuns => "no_pending_runs",
            Self::ClaimsLost(_) => "claims_lost",
            Self::NotClaimed { code, .. } => code,
        }
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BalanceLow { got_micro, min_micro } => write!(
                formatter,
                "the account has {got_micro} micro, less than balance_micro_min {min_micro}"
            ),
            Self::Dissent { executors, call } => write!(
                formatter,
                "the answer to the call {call} differed from the others' answers; {} paused; after \
                 you have found the cause: `ombra miner offers --resume EXECUTOR`",
                executors.join(", ")
            ),
            Self::NoWork { idle_s, why } => write!(formatter, "no work for {idle_s} s: {why}"),
            Self::OutboxStuck { waits_s } => write!(
                formatter,
                "a transaction is in no block, although the chain has made blocks for {waits_s} s since \
                 it was signed"
            ),
        }
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeAway(why) => write!(formatter, "the node is away: {why}"),
            Self::NodeSyncing => formatter.write_str("the node is behind the chain"),
            Self::Paused => formatter.write_str("the policy has claiming = false"),
            Self::BackendDown(why) => write!(formatter, "the back end is down: {why}"),
            Self::NoCalls => formatter
                .write_str("the policy has claiming = false, and no call came for the offers"),
            Self::NoPendingRuns => formatter.write_str("no run waits for a miner"),
            Self::ClaimsLost(times) => write!(formatter, "all {times} claims were lost to others"),
            Self::NotClaimed { code, times, of } => {
                write!(formatter, "no run was claimed, {times} of {of} times for {code}")
            }
        }
    }
}

/// What is to be looked at.
#[must_use]
pub fn alarms(facts: &Facts<'_>) -> Vec<Alarm> {
    let Facts { now_ms, config, policy, node, .. } = *facts;
    let mut alarms = Vec::new();
    let min_micro = config.balance_micro_min.max(policy.balance_micro_min);
    if let Some(got_micro) = node.balance_micro.filter(|got| *got < min_micro) {
        alarms.push(Alarm::BalanceLow { got_micro, min_micro });
    }
    if let Some(first) = facts.paused.values().min_by_key(|it| it.since_ms) {
        let executors = facts.paused.keys().cloned().collect();
        alarms.push(Alarm::Dissent { executors, call: first.call });
    }
    let idle_s = now_ms.saturating_sub(facts.counts.worked_ms) / 1_000;
    if config.no_work_s > 0 && idle_s >= config.no_work_s {
        alarms.push(Alarm::NoWork { idle_s, why: idle(facts) });
    }
    // By the chain's time: on a chain that stands still, nothing gets into a block.
    let block_ms = node.block_ms.filter(|_| node.state == NodeState::Ready);
    let waits_ms = block_ms.zip(facts.oldest_signed_ms).map(|(now, then)| now.saturating_sub(then));
    if let Some(waits_ms) = waits_ms.filter(|waits_ms| *waits_ms >= STUCK_MS) {
        alarms.push(Alarm::OutboxStuck { waits_s: waits_ms / 1_000 });
    }
    alarms
}

/// Why there is no work: what stops everything first, then what was decided about runs.
fn idle(facts: &Facts<'_>) -> Idle {
    let Facts { policy, node, backend, counts, .. } = *facts;
    match node.state {
        NodeState::Away => return Idle::NodeAway(node.why.clone().unwrap_or_default()),
        NodeState::Syncing => return Idle::NodeSyncing,
        NodeState::Unknown | NodeState::Ready => (),
    }
    if !policy.claiming && !facts.serves {
        return Idle::Paused;
    }
    match backend {
        BackendFact::Degraded { why } | BackendFact::Down { why } => {
            return Idle::BackendDown(why.clone());
        }
        BackendFact::Unknown | BackendFact::Ready => (),
    }
    if !policy.claiming {
        return Idle::NoCalls;
    }
    let codes = || counts.idle_decisions.iter().filter(|(code, _)| **code != "CLAIM");
    let most = codes().max_by_key(|(_, times)| **times);
    match most {
        Some((code, times)) => {
            let of = codes().fold(0_u64, |sum, (_, times)| sum.saturating_add(*times));
            Idle::NotClaimed { code, times: *times, of }
        }
        None if counts.idle_losses > 0 => Idle::ClaimsLost(counts.idle_losses),
        None => Idle::NoPendingRuns,
    }
}

/// The alarms in force, with their beginnings.
#[derive(Clone, Debug, Default)]
pub(super) struct InForce(BTreeMap<&'static str, (u64, Alarm)>);

impl InForce {
    /// Takes what is to be looked at now; what begins and what ends is one line of the log each.
    pub(super) fn update(&mut self, now: Vec<Alarm>, now_ms: u64) {
        let names: Vec<_> = now.iter().map(Alarm::name).collect();
        self.0.retain(|name, (since_ms, _)| {
            let stays = names.contains(name);
            if !stays {
                let lasted_s = now_ms.saturating_sub(*since_ms) / 1_000;
                tracing::info!(alarm = name, lasted_s, "the alarm is over");
            }
            stays
        });
        for alarm in now {
            let name = alarm.name();
            let since_ms = self.0.get(name).map(|(since_ms, _)| *since_ms);
            if since_ms.is_none() {
                tracing::warn!(alarm = name, "{alarm}");
            }
            self.0.insert(name, (since_ms.unwrap_or(now_ms), alarm));
        }
    }

    pub(super) fn facts(&self) -> Vec<AlarmFact> {
        let fact = |(name, (since_ms, alarm)): (&&str, &(u64, Alarm))| AlarmFact {
            name: (*name).to_owned(),
            since_ms: *since_ms,
            text: alarm.to_string(),
        };
        self.0.iter().map(fact).collect()
    }

    /// Why there is no work, as a fixed word, while that is an alarm.
    pub(super) fn idle(&self) -> Option<&'static str> {
        self.0.values().find_map(|(_, alarm)| match alarm {
            Alarm::NoWork { why, .. } => Some(why.word()),
            Alarm::BalanceLow { .. } | Alarm::Dissent { .. } | Alarm::OutboxStuck { .. } => None,
        })
    }
}
