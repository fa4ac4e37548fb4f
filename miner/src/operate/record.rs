//! What is told about a miner: plain data, the same from a running miner and from a journal.

use serde::{Deserialize, Serialize};
use types::{Address, Hash};

use super::market::MarketFact;
use crate::chain::{ChainError, Funds, Head, Held, Ledger};
use crate::journal::entry::{Day, Entry, Noted, Outcome, Phase, Swept};

/// A run of the journal in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLine {
    /// The run.
    pub run: Hash,
    /// How far it is, in words.
    pub state: String,
    /// Whether something is left to do.
    pub open: bool,
    /// Who pays.
    pub requester: Address,
    /// The escrow, micro-OMBRA.
    pub max_fee_micro: u64,
    /// Steps of this miner that are on the chain.
    pub steps: u64,
    /// The sum of their output tokens.
    pub tokens: u64,
    /// What this miner got, micro-OMBRA; none while it is open or if it got nothing.
    pub reward_micro: Option<u64>,
    /// When its slot was reserved, milliseconds since 1970.
    pub reserved_ms: u64,
}

impl RunLine {
    /// The line of a run.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        let reward_micro = match entry.phase {
            Phase::Over(Outcome::Ended { reward_micro, .. }) => Some(reward_micro),
            Phase::Over(_)
            | Phase::Reserved
            | Phase::ClaimSigned
            | Phase::Working
            | Phase::StepSigned
            | Phase::Ending(_)
            | Phase::FinishSigned(_) => None,
        };
        Self {
            run: entry.run.id,
            state: entry.state(),
            open: !entry.is_over(),
            requester: entry.run.submitter,
            max_fee_micro: entry.run.max_fee_micro,
            steps: entry.steps,
            tokens: entry.tokens,
            reward_micro,
            reserved_ms: entry.reserved_ms,
        }
    }
}

/// Why a run was claimed or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyRecord {
    /// The last decisions, oldest first.
    pub decisions: Vec<Noted>,
    /// How far the work is, if there is any.
    pub state: Option<String>,
}

/// How the node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It was not asked yet.
    #[default]
    Unknown,
    /// It answers, and has the newest block that it knows of.
    Ready,
    /// It answers, and is behind the chain.
    Syncing,
    /// It does not answer.
    Away,
}

/// The node, as it answered last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFact {
    /// How it is.
    pub state: NodeState,
    /// Why it is away.
    pub why: Option<String>,
    /// The chain's name.
    pub chain_id: Option<String>,
    /// Index of its newest block.
    pub height: Option<u64>,
    /// Time of its newest block, milliseconds since 1970. An idle chain makes few blocks.
    pub block_ms: Option<u64>,
    /// What the wallet has with everything pending counted, micro-OMBRA.
    pub balance_micro: Option<u64>,
    /// What it has at stake; none while the chain has no bonds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stake: Option<StakeFact>,
}

/// What a miner has at stake, and what of its rewards is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StakeFact {
    /// Its bond, micro-OMBRA.
    pub bonded_micro: u64,
    /// The part that runs have locked.
    pub locked_micro: u64,
    /// What was taken out of the bond and is not paid yet.
    pub unbonding_micro: u64,
    /// Rewards that are held, among the 100 runs that were asked for last.
    pub held: Held,
}

/// What a node says of itself and of a miner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAnswers {
    /// The chain.
    pub head: Head,
    /// The account.
    pub funds: Funds,
    /// The stake; none while the chain has no bonds.
    pub stake: Option<StakeFact>,
}

impl NodeAnswers {
    /// Asks a node about a miner.
    ///
    /// # Errors
    /// When the node cannot answer.
    pub async fn ask(ledger: &dyn Ledger, miner: &Address) -> Result<Self, ChainError> {
        let (head, funds) = (ledger.head().await?, ledger.funds(miner).await?);
        let stake = match ledger.stake(miner).await? {
            None => None,
            Some(stake) => Some(StakeFact {
                bonded_micro: stake.bonded_micro,
                locked_micro: stake.locked_micro,
                unbonding_micro: stake.unbonding_micro,
                held: ledger.held(miner).await?,
            }),
        };
        Ok(Self { head, funds, stake })
    }
}

impl NodeFact {
    /// What the answers of a node say. What an absent node said before is kept.
    #[must_use]
    pub fn after(self, answers: Result<NodeAnswers, ChainError>) -> Self {
        match answers {
            Ok(NodeAnswers { head, funds, stake }) => {
                let Head { chain_id, genesis: _, height, syncing, block_ms, step_tokens_max: _ } =
                    head;
                Self {
                    state: if syncing { NodeState::Syncing } else { NodeState::Ready },
                    why: None,
                    chain_id: Some(chain_id),
                    height: Some(height),
                    block_ms: Some(block_ms),
                    balance_micro: Some(funds.balance_micro),
                    stake,
                }
            }
            Err(error) => Self { state: NodeState::Away, why: Some(error.to_string()), ..self },
        }
    }
}

/// How the back end is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum BackendFact {
    /// It was not asked yet.
    Unknown,
    /// It can be asked.
    Ready,
    /// It answers, with failures.
    Degraded {
        /// The last one.
        why: String,
    },
    /// It is left alone.
    Down {
        /// Why.
        why: String,
    },
}

/// A tool, or an MCP server with its tools, and whether it can be had now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFact {
    /// Its name; of a server with two underscores and a star.
    pub name: String,
    /// Whether it is there.
    pub there: bool,
}

/// The policy in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyFact {
    /// Its file.
    pub file: String,
    /// When it was read, milliseconds since 1970.
    pub read_ms: u64,
    /// Why the newest version of the file is not in force; none if it is.
    pub refused: Option<String>,
    /// Whether anything is claimed at all.
    pub claiming: bool,
}

/// How often a decision was taken since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionCount {
    /// The code of the decision.
    pub code: String,
    /// How often.
    pub times: u64,
}

/// An alarm in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmFact {
    /// `balance_low`, `dissent`, `no_work` or `outbox_stuck`.
    pub name: String,
    /// When it began, milliseconds since 1970.
    pub since_ms: u64,
    /// What is wrong, as a sentence.
    pub text: String,
}

/// What goes to the cold address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepFact {
    /// The cold address.
    pub address: Address,
    /// What stays in the wallet, micro-OMBRA.
    pub keep_micro: u64,
}

/// A running miner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its process.
    pub pid: u32,
    /// When it started, milliseconds since 1970.
    pub started_ms: u64,
    /// The model, as claims name it.
    pub model: String,
    /// The back end.
    pub backend: BackendFact,
    /// The tools that runs may use.
    pub tools: Vec<ToolFact>,
    /// How many runs may be worked on at once.
    pub slots_max: u64,
    /// The policy.
    pub policy: PolicyFact,
    /// Alarms in force.
    pub alarms: Vec<AlarmFact>,
    /// Decisions since the start, the most frequent first.
    pub decisions: Vec<DecisionCount>,
    /// When a pending run was last looked at, milliseconds since 1970; none if none was.
    pub run_seen_ms: Option<u64>,
    /// The cold address, if there is one.
    pub sweep: Option<SweepFact>,
}

/// Something that a miner needs at its start, and waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFact {
    /// `node` or `backend`.
    pub what: String,
    /// When it was first asked, milliseconds since 1970.
    pub since_ms: u64,
    /// How asking it failed last; none if it has not answered at all yet.
    pub why: Option<String>,
}

/// A miner that starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starting {
    /// Its process.
    pub pid: u32,
    /// When it started, milliseconds since 1970.
    pub started_ms: u64,
    /// What it waits for; empty if that is there, and it opens what is its own.
    pub waits: Vec<WaitFact>,
}

/// How a miner is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The wallet that signs and earns.
    pub wallet: Address,
    /// When this was told, milliseconds since 1970.
    pub now_ms: u64,
    /// The running miner; none if it does not run.
    pub process: Option<Process>,
    /// The miner that starts; none if none does.
    #[serde(default)]
    pub starting: Option<Starting>,
    /// The node.
    pub node: NodeFact,
    /// The runs that are not over, oldest first.
    pub open: Vec<RunLine>,
    /// Signed transactions whose fate is not known.
    pub outbox: u64,
    /// What happened today (UTC).
    pub today: Day,
    /// What was sent to the cold address.
    pub swept: Swept,
    /// The market.
    #[serde(default)]
    pub market: MarketFact,
}
