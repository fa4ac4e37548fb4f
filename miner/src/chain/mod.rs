//! What the miner needs from a node, in its own words.

mod calls;
pub mod client;
#[cfg(test)]
pub(crate) mod fake;
mod ports;

use serde::{Deserialize, Serialize};
use types::{Address, Hash, RunStatus};
use wallet::ChainIdentity;

pub use calls::{CallView, CallWatch, Calls, MemberView, RoundView};
pub use ports::{Ledger, Runs, Watch};

/// How the submitter protects a run, from fork v7 on (docs/protocol.md section 5.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// The only miners that may claim it; everybody may if there are none.
    pub miners: Vec<Address>,
    /// What a claim locks of the miner's bond, micro-OMBRA.
    pub claim_bond_micro: u64,
    /// The most output tokens of one step, where the run has a bound of its own.
    pub step_tokens_max: Option<u64>,
    /// How long the reward is held after the end, milliseconds.
    pub refuse_ms: u64,
}

/// A run as the chain has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// The run's id.
    pub id: Hash,
    /// Its conversation.
    pub conversation_id: Hash,
    /// Who pays.
    pub submitter: Address,
    /// What is asked.
    pub prompt: String,
    /// A blob with a longer prompt.
    pub prompt_blob_id: Option<String>,
    /// The tools that may be used.
    pub tools: Vec<String>,
    /// The model wished for.
    pub model_hint: Option<String>,
    /// The escrow, micro-OMBRA.
    pub max_fee_micro: u64,
    /// The most steps.
    pub steps_max: u64,
    /// Where it is in its life.
    pub status: RunStatus,
    /// Who works on it.
    pub miner: Option<Address>,
    /// Miners that may not claim it any more.
    pub excluded: Vec<Address>,
    /// Recorded steps.
    pub steps: u64,
    /// Sum of their output tokens.
    pub tokens: u64,
    /// When the chain acts if nobody does, milliseconds since 1970.
    pub deadline_ms: Option<u64>,
    /// What the miner got, once it is settled, micro-OMBRA.
    pub reward_micro: Option<u64>,
    /// How it is protected; none in journals that were written before there was such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// Until when its reward is held, milliseconds since 1970; none if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until_ms: Option<u64>,
    /// Whether its submitter refused the reward: then nobody gets it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refused: bool,
    /// The agent of which it is a run, as `agent:AGENTID@VERSION`; none if it is of no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl RunView {
    /// What a claim locks of the miner's bond, micro-OMBRA.
    #[must_use]
    pub fn claim_bond_micro(&self) -> u64 {
        self.protection.as_ref().map_or(0, |it| it.claim_bond_micro)
    }

    /// How long the reward is held after the end, milliseconds.
    #[must_use]
    pub fn refuse_ms(&self) -> u64 {
        self.protection.as_ref().map_or(0, |it| it.refuse_ms)
    }

    /// The most tokens of one step, where the chain takes `chain_max` of any.
    #[must_use]
    pub fn step_tokens_max(&self, chain_max: u64) -> u64 {
        let own = self.protection.as_ref().and_then(|it| it.step_tokens_max);
        own.unwrap_or(chain_max).min(chain_max)
    }
}

/// What an account has at stake as a miner, and what it did as a submitter of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stake {
    /// Its bond, micro-OMBRA.
    pub bonded_micro: u64,
    /// The part that is locked for runs.
    pub locked_micro: u64,
    /// What it took out of its bond and is not paid yet; of more than 100 payments, the first 100.
    pub unbonding_micro: u64,
    /// Its runs, as a submitter, whose reward was held.
    pub rewards_held: u64,
    /// Rewards that it refused as a submitter.
    pub rewards_refused: u64,
}

impl Stake {
    /// The part of the bond that is not locked, micro-OMBRA.
    #[must_use]
    pub const fn free_micro(&self) -> u64 {
        self.bonded_micro.saturating_sub(self.locked_micro)
    }
}

/// Rewards of a miner that are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Of how many runs.
    pub runs: u64,
    /// Their sum, micro-OMBRA.
    pub micro: u64,
}

impl Held {
    /// What is held of these runs.
    #[must_use]
    pub fn of(runs: &[RunView]) -> Self {
        runs.iter().filter(|run| run.held_until_ms.is_some()).fold(Self::default(), |sum, run| {
            let reward_micro = run.reward_micro.unwrap_or_default();
            Self { runs: sum.runs.saturating_add(1), micro: sum.micro.saturating_add(reward_micro) }
        })
    }
}

/// A recorded step, as far as receipts need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepView {
    /// Its index.
    pub index: u64,
    /// Tokens that were paid for.
    pub output_tokens: u64,
    /// SHA-256 of the output.
    pub output_hash: Hash,
    /// Per tool call the hashes of arguments and result.
    pub calls: Vec<(Hash, Hash)>,
}

/// A blob's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobView {
    /// Who pays for it.
    pub owner: Address,
    /// How many chunks are there.
    pub received: u64,
    /// Whether it is closed.
    pub is_final: bool,
    /// SHA-256 of the bytes, as announced.
    pub content_hash: Hash,
}

/// What blobs burn in the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobFees {
    /// The announcement of one, micro-OMBRA; 0 before fork v7.
    pub init_micro: u64,
    /// Each chunk, micro-OMBRA.
    pub chunk_micro: u64,
    /// What a place of 1,024 bytes in a block costs, micro-OMBRA; none before fork v7, when it costs nothing.
    pub base_fee: Option<u64>,
}

/// The chain and its newest block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The chain's name.
    pub chain_id: String,
    /// The hash of its genesis file.
    pub genesis: Hash,
    /// Index of the newest block.
    pub height: u64,
    /// The node is catching up.
    pub syncing: bool,
    /// The most tokens that a step may report.
    pub step_tokens_max: u64,
    /// Time of the newest block, milliseconds since 1970.
    pub block_ms: u64,
}

impl Head {
    /// Which chain it is.
    #[must_use]
    pub fn chain(&self) -> ChainIdentity {
        ChainIdentity { chain_id: self.chain_id.clone(), genesis_hash: self.genesis }
    }
}

/// An account with everything pending counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funds {
    /// Micro-OMBRA.
    pub balance_micro: u64,
    /// The nonce that the next transaction takes.
    pub nonce: u64,
}

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// In a block.
    Included {
        /// What it burned for its place in the block, micro-OMBRA; 0 before fork v7, and where the node
        /// cannot tell.
        inclusion_micro: u64,
    },
    /// In the pool.
    Pending,
    /// Dropped from the pool, with the code.
    Dropped(String),
    /// The node does not know it.
    Unknown,
}

/// Something that happened on the chain or in the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A run waits for a miner.
    Open(Hash),
    /// A claim is in a block.
    Claimed {
        /// The run.
        run: Hash,
        /// Who has it now.
        miner: Address,
    },
    /// Somebody's claim is in the pool, and the next blocks may hold it.
    Claim {
        /// The run.
        run: Hash,
        /// Whose claim it is.
        miner: Address,
    },
}

/// Why the node did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The chain's rules reject the transaction.
    #[error("{code}: {message}")]
    Rejected {
        /// The code of docs/protocol.md section 9.
        code: String,
        /// The sentence for people.
        message: String,
    },
    /// The node is away, busy or not serving; the same may succeed later.
    #[error("the node cannot answer now: {0}")]
    Away(String),
    /// What was asked for is in blocks that the node does not have: it began with a snapshot. Asking it
    /// again does not help.
    #[error("{0}")]
    NoHistory(String),
    /// The node answered what no node should.
    #[error("the node's answer makes no sense: {0}")]
    Strange(String),
}

impl ChainError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Away(_) => true,
            Self::Rejected { .. } | Self::NoHistory(_) | Self::Strange(_) => false,
        }
    }
}
