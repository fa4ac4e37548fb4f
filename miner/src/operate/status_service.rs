//! Where a running miner is asked how it is.

use std::path::PathBuf;
use std::sync::Arc;

use agent::clock::Clock;
use agent::tools::Toolbox;
use parking_lot::Mutex;
use tokio::sync::watch;
use types::agent::ExecutorId;
use types::{Address, Hash};

use super::alarm::InForce;
use super::config::{AlarmConfig, SweepConfig};
use super::market::{AssignmentLine, MarketFact, WhyCall};
use super::record::{
    BackendFact, DecisionCount, NodeFact, NodeState, PolicyFact, Process, RunLine, Status,
    SweepFact, ToolFact, WhyRecord,
};
use super::tally::{Counts, Tally};
use super::tell::{self, Wanted};
use crate::engine::PolicyNews;
use crate::engine::receipt::{self, Receipt};
use crate::journal::call::{CallEntry, CallPhase};
use crate::journal::{Journal, JournalError};
use crate::market::MarketParts;
use crate::policy::Policy;

/// What a status service tells about.
#[derive(Debug)]
pub struct Plan {
    /// The wallet that signs and earns.
    pub wallet: Address,
    /// The model, as claims name it.
    pub model: String,
    /// The configuration file.
    pub config: PathBuf,
    /// Thresholds of alarms.
    pub alarms: AlarmConfig,
    /// The cold address.
    pub sweep: Option<SweepConfig>,
    /// Names of the built-in tools that runs may use.
    pub tools: Vec<String>,
    /// All tools.
    pub toolbox: Toolbox,
    /// The journal.
    pub journal: Arc<Journal>,
    /// The policy in force.
    pub policy: watch::Receiver<Arc<Policy>>,
    /// What became of its file.
    pub news: Arc<Mutex<PolicyNews>>,
    /// What happened since the start.
    pub tally: Arc<Tally>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The market.
    pub market: MarketParts,
}

/// Why something that a miner keeps cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file.
    #[error("a receipt: {0}")]
    File(#[from] std::io::Error),
}

/// What was seen last of what is outside.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) node: NodeFact,
    pub(super) backend: BackendFact,
    pub(super) alarms: InForce,
}

/// Answers questions about a running miner.
#[derive(Debug)]
pub struct StatusService {
    pub(super) plan: Plan,
    pub(super) seen: Mutex<Seen>,
    started_ms: u64,
}

/// One check of whether the miner can work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// `node`, `backend`, `policy`, `balance` or `journal`.
    pub name: &'static str,
    /// Whether it passed.
    pub is_ok: bool,
    /// What was found, for people.
    pub detail: String,
}

impl StatusService {
    /// That of a miner that starts now.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let (node, backend) = (NodeFact::default(), BackendFact::Unknown);
        let seen = Seen { node, backend, alarms: InForce::default() };
        let started_ms = plan.clock.now_ms();
        Self { plan, seen: Mutex::new(seen), started_ms }
    }

    /// How the miner is.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn status(&self) -> Result<Status, JournalError> {
        let Plan { wallet, journal, clock, .. } = &self.plan;
        let node = self.seen.lock().node.clone();
        let status = tell::status(journal, *wallet, clock.now_ms(), Some(self.process()), node)?;
        Ok(Status { market: self.market()?, ..status })
    }

    /// Why a run was claimed or not; none if the journal does not know it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn why(&self, run: &Hash) -> Result<Option<WhyRecord>, JournalError> {
        tell::why(&self.plan.journal, run)
    }

    /// The runs of the journal, newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn runs(&self, wanted: Wanted) -> Result<Vec<RunLine>, JournalError> {
        tell::runs(&self.plan.journal, wanted)
    }

    /// The receipt of a run; none if the journal does not know it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn receipt(&self, run: &Hash) -> Result<Option<Receipt>, JournalError> {
        receipt::receipt(&self.plan.journal, run)
    }

    /// The offers, the bond that is kept, and what became of all calls.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn market(&self) -> Result<MarketFact, JournalError> {
        let MarketParts { config, executors, fitness, .. } = &self.plan.market;
        let config = config.borrow().clone();
        let running = config.as_deref().map(|config| (config, &**executors, fitness));
        super::market::market(&self.plan.journal, running)
    }

    /// The calls of the journal, newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn assignments(&self, wanted: Wanted) -> Result<Vec<AssignmentLine>, JournalError> {
        super::market::assignments(&self.plan.journal, wanted)
    }

    /// What is known of a call, for each round; empty if the journal does not know it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn why_call(&self, call: &Hash) -> Result<Vec<WhyCall>, JournalError> {
        super::market::why_call(&self.plan.journal, call)
    }

    /// The receipt of a call whose answer this miner has revealed; none of another one. Before that it
    /// would tell other members what to answer.
    ///
    /// # Errors
    /// When the journal, or a receipt that is there, cannot be read.
    pub fn published_receipt(&self, call: &Hash) -> Result<Option<serde_json::Value>, Unread> {
        let is_revealed =
            |it: &CallEntry| matches!(it.phase, CallPhase::Revealed | CallPhase::Over(_));
        if !self.plan.journal.rounds_of(call)?.iter().any(is_revealed) {
            return Ok(None);
        }
        Ok(self.plan.market.receipts.of_call(call)?.pop())
    }

    /// Offers an executor again that was paused after dissents, or failed its test, if it passes that
    /// now; whether it was one of these.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn resume_offers(&self, executor: &ExecutorId) -> Result<bool, JournalError> {
        let MarketParts { fitness, .. } = &self.plan.market;
        let was_unsound = fitness.unsound().contains_key(executor);
        fitness.forget(executor);
        let was_paused = self.plan.journal.resume_offers(executor).await?;
        self.plan.market.resumed.notify_one();
        Ok(was_paused || was_unsound)
    }

    /// Whether agents are served: the settings have offers.
    pub(super) fn serves(&self) -> bool {
        self.plan.market.config.borrow().as_ref().is_some_and(|config| !config.offers.is_empty())
    }

    /// What was counted since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.plan.tally.counts()
    }

    /// Why there is no work, as a fixed word, while that is an alarm.
    #[must_use]
    pub fn idle(&self) -> Option<&'static str> {
        self.seen.lock().alarms.idle()
    }

    /// The names by which calls of tools are counted: built-in tools, and MCP servers with two
    /// underscores and a star.
    #[must_use]
    pub fn tool_labels(&self) -> Vec<String> {
        let servers = self.plan.toolbox.servers().iter().map(|it| format!("{}__*", it.name()));
        self.plan.tools.iter().cloned().chain(servers).collect()
    }

    /// Whether the miner can work, check by check.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let Seen { node, backend, alarms: _ } = self.seen.lock().clone();
        let policy = Arc::clone(&self.plan.policy.borrow());
        let refused = self.plan.news.lock().refused.clone();
        let why = || node.why.clone().unwrap_or_default();
        let node_detail = match node.state {
            NodeState::Unknown => "it was not asked yet".to_owned(),
            NodeState::Ready => format!("height {}", node.height.unwrap_or_default()),
            NodeState::Syncing => "it is behind the chain".to_owned(),
            NodeState::Away => why(),
        };
        let (backend_ok, backend_detail) = match &backend {
            BackendFact::Unknown => (false, "it was not asked yet".to_owned()),
            BackendFact::Ready => (true, self.plan.model.clone()),
            BackendFact::Degraded { why } | BackendFact::Down { why } => (false, why.clone()),
        };
        let (works, policy_detail) = match (&refused, policy.claiming, self.serves()) {
            (Some(refused), ..) => {
                (false, format!("the newest version is not in force: {refused}"))
            }
            (None, true, _) => (true, "claiming".to_owned()),
            (None, false, true) => (true, "claiming = false, but agents are served".to_owned()),
            (None, false, false) => (false, "claiming = false".to_owned()),
        };
        let (balance, min) = (node.balance_micro, policy.balance_micro_min);
        let balance_detail = balance.map_or_else(
            || "the node has not reported it yet".to_owned(),
            |micro| format!("{micro} micro, balance_micro_min {min}"),
        );
        let journal = self.plan.journal.day(self.plan.clock.now_ms());
        let journal_detail =
            journal.as_ref().map_or_else(ToString::to_string, |_| "readable".to_owned());
        let check = |name, is_ok, detail| Check { name, is_ok, detail };
        vec![
            check("node", node.state == NodeState::Ready, node_detail),
            check("backend", backend_ok, backend_detail),
            check("policy", works, policy_detail),
            check("balance", balance.is_some_and(|micro| micro >= min), balance_detail),
            check("journal", journal.is_ok(), journal_detail),
        ]
    }

    fn process(&self) -> Process {
        let Plan { model, config, sweep, tools, toolbox, policy, news, tally, .. } = &self.plan;
        let Seen { node: _, backend, alarms } = self.seen.lock().clone();
        let PolicyNews { read_ms, refused } = news.lock().clone();
        let policy = Arc::clone(&policy.borrow());
        let counts = tally.counts();
        let count = |(code, times): (&&str, &u64)| DecisionCount {
            code: (*code).to_owned(),
            times: *times,
        };
        let mut decisions: Vec<_> = counts.decisions.iter().map(count).collect();
        decisions.sort_by_key(|it| std::cmp::Reverse(it.times));
        let built_in = tools.iter().map(|name| ToolFact { name: name.clone(), there: true });
        let servers = toolbox.servers().iter().map(|server| ToolFact {
            name: format!("{}__*", server.name()),
            there: server.is_there(),
        });
        Process {
            pid: std::process::id(),
            started_ms: self.started_ms,
            model: model.clone(),
            backend,
            tools: built_in.chain(servers).collect(),
            slots_max: policy.runs_max,
            policy: PolicyFact {
                file: config.display().to_string(),
                read_ms,
                refused,
                claiming: policy.claiming,
            },
            alarms: alarms.facts(),
            decisions,
            run_seen_ms: counts.run_seen_ms,
            sweep: sweep
                .as_ref()
                .map(|it| SweepFact { address: it.address, keep_micro: it.keep_micro }),
        }
    }
}
