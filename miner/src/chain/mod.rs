//! What the miner needs from a node, in its own words.

pub mod client;
#[cfg(test)]
pub(crate) mod fake;
mod ports;

use serde::{Deserialize, Serialize};
use types::{Address, Hash, RunStatus};
use wallet::Chain;

pub use ports::{Ledger, Runs, Watch};

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
    /// What each chunk of a blob burns, micro-OMBRA.
    pub blob_chunk_fee_micro: u64,
    /// The most tokens that a step may report.
    pub step_tokens_max: u64,
    /// Time of the newest block, milliseconds since 1970.
    pub block_ms: u64,
}

impl Head {
    /// Which chain it is.
    #[must_use]
    pub fn chain(&self) -> Chain {
        Chain { chain_id: self.chain_id.clone(), genesis_hash: self.genesis }
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
    Included,
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
    /// Somebody's claim waits in the pool.
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
    /// The chain's rules refuse the transaction.
    #[error("{code}: {message}")]
    Refused {
        /// The code of docs/protocol.md section 9.
        code: String,
        /// The sentence for people.
        message: String,
    },
    /// The node is away, busy or not serving; the same may succeed later.
    #[error("the node cannot answer now: {0}")]
    Away(String),
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
            Self::Refused { .. } | Self::Strange(_) => false,
        }
    }
}
