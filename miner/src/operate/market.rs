//! What a miner tells of the market: its offers, its bond, its calls.

use std::collections::BTreeMap;

use agent::executor::Executors;
use serde::{Deserialize, Serialize};
use types::agent::ExecutorId;
use types::{Address, Hash};

use crate::journal::call::{CallEntry, CallPhase, Paused, Said, Served};
use crate::journal::{Journal, JournalError};
use crate::market::{Fitness, MarketConfig};

use super::tell::Wanted;

/// Whether an offer of the configuration is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfferState {
    /// It is.
    Offered,
    /// It is not: this program does not have the executor, or it cannot work now.
    NotHere,
    /// It is not: this machine fails the executor's test, in this way.
    Unsound(String),
    /// It is not since this miner dissented.
    Paused(Paused),
}

/// An offer of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferFact {
    /// For which executor.
    pub executor: ExecutorId,
    /// At how many calls at once the miner works.
    pub capacity: u64,
    /// The least for a call, micro-OMBRA.
    pub per_call_micro: u64,
    /// The least for a million tokens that are read.
    pub prompt_per_m_micro: u64,
    /// The least for a million tokens that are written.
    pub completion_per_m_micro: u64,
    /// The least for a billion units of fuel.
    pub fuel_per_g_micro: u64,
    /// Whether it is made.
    pub state: OfferState,
}

impl OfferFact {
    /// Those of a configuration.
    #[must_use]
    pub fn all(
        config: &MarketConfig,
        executors: &Executors,
        (paused, unsound): (&BTreeMap<String, Paused>, &BTreeMap<ExecutorId, String>),
    ) -> Vec<Self> {
        let fact = |it: &crate::market::OfferConfig| {
            let executor = it.executor;
            let state = match (paused.get(&executor.to_string()), unsound.get(&executor)) {
                (_, Some(fault)) => OfferState::Unsound(fault.clone()),
                (Some(paused), None) => OfferState::Paused(*paused),
                (None, None) if !executors.is_ready(&executor) => OfferState::NotHere,
                (None, None) => OfferState::Offered,
            };
            Self {
                executor,
                capacity: it.capacity,
                per_call_micro: it.per_call_micro,
                prompt_per_m_micro: it.prompt_per_m_micro,
                completion_per_m_micro: it.completion_per_m_micro,
                fuel_per_g_micro: it.fuel_per_g_micro,
                state,
            }
        };
        config.offers.iter().map(fact).collect()
    }
}

/// What a bond is kept at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BondFact {
    /// What it is kept at, micro-OMBRA; none if it follows from the chain's least.
    pub keep_micro: Option<u64>,
    /// What stays in the account, micro-OMBRA.
    pub balance_micro_min: u64,
}

/// The market, on one page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarketFact {
    /// What the configuration offers; empty where no miner runs.
    pub offers: Vec<OfferFact>,
    /// What the bond is kept at; none without a table `[market]`, and where no miner runs.
    pub bond: Option<BondFact>,
    /// The executors that are not offered after dissents.
    pub paused: BTreeMap<String, Paused>,
    /// What became of all calls.
    pub served: Served,
    /// Calls that are not over.
    pub open: u64,
}

/// A call of the journal, on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignmentLine {
    /// The call.
    pub call: Hash,
    /// The round for which the miner was drawn.
    pub round: u8,
    /// The agent.
    pub agent: Hash,
    /// Its version.
    pub version: String,
    /// The phase as one word.
    pub phase: String,
    /// How far it is, in words.
    pub state: String,
    /// What the member says, once that is fixed.
    pub outcome: Option<String>,
    /// What it got, micro-OMBRA, once it is settled.
    pub paid_micro: Option<u64>,
    /// What it lost of its bond, micro-OMBRA, once it is settled.
    pub penalty_micro: Option<u64>,
    /// When it was noticed that the miner was drawn, milliseconds since 1970.
    pub assigned_ms: u64,
}

impl AssignmentLine {
    /// The line of an entry.
    #[must_use]
    pub fn of(entry: &CallEntry) -> Self {
        let settled = match &entry.phase {
            CallPhase::Over(outcome) => Some(outcome),
            CallPhase::Assigned
            | CallPhase::Executed
            | CallPhase::CommitSigned
            | CallPhase::Committed
            | CallPhase::RevealSigned
            | CallPhase::Revealed
            | CallPhase::Missed(_) => None,
        };
        Self {
            call: entry.call,
            round: entry.round,
            agent: entry.agent,
            version: entry.version.clone(),
            phase: word(&entry.phase).to_owned(),
            state: entry.state(),
            outcome: entry.said.as_ref().map(|said| said.outcome().as_str().to_owned()),
            paid_micro: settled.map(|it| it.paid_micro),
            penalty_micro: settled.map(|it| it.penalty_micro),
            assigned_ms: entry.assigned_ms,
        }
    }
}

/// Everything that the journal has of a call but its secrets: a salt that is not revealed stays here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyCall {
    /// How far it is.
    pub line: AssignmentLine,
    /// Who asked.
    pub requester: Address,
    /// What a member gets at most, micro-OMBRA.
    pub budget_micro: u64,
    /// What executes the agent.
    pub executor: Option<ExecutorId>,
    /// Why there is no success.
    pub reason: Option<String>,
    /// How this miner stands, since its round was decided.
    pub standing: Option<String>,
}

impl WhyCall {
    /// That of an entry.
    #[must_use]
    pub fn of(entry: &CallEntry) -> Self {
        let reason = |said: &Said| said.reason.clone();
        Self {
            line: AssignmentLine::of(entry),
            requester: entry.requester,
            budget_micro: entry.budget_micro,
            executor: entry.executor,
            reason: entry.said.as_ref().and_then(reason),
            standing: entry.standing.map(|it| it.to_string()),
        }
    }
}

const fn word(phase: &CallPhase) -> &'static str {
    match phase {
        CallPhase::Assigned => "assigned",
        CallPhase::Executed | CallPhase::CommitSigned => "executed",
        CallPhase::Committed | CallPhase::RevealSigned => "committed",
        CallPhase::Revealed => "revealed",
        CallPhase::Missed(_) => "missed",
        CallPhase::Over(_) => "over",
    }
}

/// The calls of the journal, newest first.
///
/// # Errors
/// When the journal cannot be read.
pub fn assignments(journal: &Journal, wanted: Wanted) -> Result<Vec<AssignmentLine>, JournalError> {
    let entries = if wanted.only_open { journal.open_calls()? } else { journal.calls()? };
    let mut lines: Vec<_> = entries.iter().map(AssignmentLine::of).collect();
    lines.sort_by_key(|line| (std::cmp::Reverse(line.assigned_ms), line.call));
    lines.truncate(wanted.limit);
    Ok(lines)
}

/// What is known of a call, for each round; empty if the journal does not know it.
///
/// # Errors
/// When the journal cannot be read.
pub fn why_call(journal: &Journal, call: &Hash) -> Result<Vec<WhyCall>, JournalError> {
    Ok(journal.rounds_of(call)?.iter().map(WhyCall::of).collect())
}

/// The market as the journal has it; `running` is what the configuration of a running miner says.
///
/// # Errors
/// When the journal cannot be read.
pub fn market(
    journal: &Journal,
    running: Option<(&MarketConfig, &Executors, &Fitness)>,
) -> Result<MarketFact, JournalError> {
    let paused = journal.paused()?;
    let bond = |(config, _, _): (&MarketConfig, &Executors, &Fitness)| BondFact {
        keep_micro: config.bond_micro,
        balance_micro_min: config.balance_micro_min,
    };
    Ok(MarketFact {
        offers: running.map_or_else(Vec::new, |(config, executors, fitness)| {
            OfferFact::all(config, executors, (&paused, &fitness.unsound()))
        }),
        bond: running.map(bond),
        served: journal.served()?,
        open: u64::try_from(journal.open_calls()?.len()).unwrap_or(u64::MAX),
        paused,
    })
}
