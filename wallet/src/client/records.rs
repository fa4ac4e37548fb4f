//! The records whose fields programs use. Unknown fields are ignored, so newer nodes can be read.

use serde::Deserialize;
use serde_json::Value;
use types::{Address, Amount, Hash};

use crate::ChainIdentity;

/// What `ombra_chainInfo` tells.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainInfo {
    /// The chain's name.
    pub chain_id: String,
    /// Hash of the genesis file.
    pub genesis_hash: Hash,
    /// Index of the newest block.
    pub height: u64,
    /// Hash of the newest block.
    pub latest_block_hash: Hash,
    /// Time of the newest block, Unix milliseconds.
    pub latest_block_time: u64,
    /// True while the node is catching up.
    #[serde(default)]
    pub syncing: bool,
    /// Version of the node's program.
    #[serde(default)]
    pub version: String,
    /// Genesis parameters.
    #[serde(default)]
    pub params: Value,
}

impl ChainInfo {
    /// The chain, as the node names it.
    #[must_use]
    pub fn chain(&self) -> ChainIdentity {
        ChainIdentity { chain_id: self.chain_id.clone(), genesis_hash: self.genesis_hash }
    }
}

/// What `ombra_getAccount` tells.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// The account.
    pub address: Address,
    /// Micro-OMBRA after the newest block.
    pub balance: Amount,
    /// The next nonce after the newest block.
    pub nonce: u64,
    /// The next nonce when all pending transactions are counted: what a new transaction takes.
    pub pending_nonce: u64,
    /// The balance when all pending transactions are counted.
    pub pending_balance: Amount,
    /// Whether the account is in the miner directory.
    #[serde(default)]
    pub is_miner: bool,
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// In the pool.
    Pending,
    /// In a block, which is final.
    Included,
    /// Removed from the pool; it will not be included unless it is sent again.
    Dropped,
}

/// Why a transaction was dropped.
#[derive(Clone, Debug, Deserialize)]
pub struct Dropped {
    /// The code of docs/protocol.md section 9.
    pub code: String,
    /// The sentence for people.
    pub message: String,
}

/// What `ombra_getTransaction` and `ombra_waitForTransaction` tell.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionStatus {
    /// The transaction.
    pub hash: Hash,
    /// Where it is.
    pub status: Status,
    /// Its block, once it is included.
    pub block_index: Option<u64>,
    /// Hash of its block.
    pub block_hash: Option<Hash>,
    /// Place in its block, from 0.
    pub position: Option<u64>,
    /// Time of its block, Unix milliseconds.
    pub timestamp: Option<u64>,
    /// What it burned for its place in the block, from fork v7 on, if the node can tell.
    pub inclusion_fee: Option<Amount>,
    /// The reason, when it was dropped.
    pub dropped: Option<Dropped>,
}

/// The amounts that AGENT_FINISH must state now, of `ombra_settlement`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settlement {
    /// Sum of the steps' output tokens.
    pub total_tokens_out: u64,
    /// Number of recorded steps.
    pub step_count: u64,
    /// Micro-OMBRA for the miner.
    pub miner_reward: Amount,
    /// Micro-OMBRA back to the submitter.
    pub user_refund: Amount,
    /// Micro-OMBRA burned.
    pub network_fee: Amount,
}

/// An agent run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The run's id.
    pub agent_run_id: Hash,
    /// The conversation it belongs to.
    pub conversation_id: Hash,
    /// Who pays.
    pub submitter: Address,
    /// What was asked.
    pub prompt: String,
    /// A blob with a longer prompt, if there is one.
    pub prompt_blob_id: Option<String>,
    /// Tools that the miner may use.
    #[serde(default)]
    pub tools_whitelist: Vec<String>,
    /// The model asked for, if any.
    pub model_hint: Option<String>,
    /// The escrow, micro-OMBRA.
    pub max_fee: Amount,
    /// The highest number of steps.
    pub max_steps: u64,
    /// `pending`, `claimed`, `running`, or how it ended.
    pub status: String,
    /// Who works on it.
    pub miner_address: Option<Address>,
    /// The miner's model, as it says.
    pub model_info: Option<String>,
    /// The miner's machine, as it says.
    pub hardware_tier: Option<String>,
    /// Number of recorded steps.
    pub step_count: u64,
    /// Sum of the steps' output tokens.
    pub total_tokens_out: u64,
    /// What the miner got, once settled.
    pub miner_reward: Option<Amount>,
    /// What the submitter got back, once settled.
    pub user_refund: Option<Amount>,
    /// What was burned, once settled.
    pub network_fee: Option<Amount>,
    /// The answer, when it is kept in the run.
    pub final_answer_inline: Option<String>,
    /// The answer's blob, when it is kept in one.
    pub final_answer_blob_id: Option<String>,
    /// Block time of the request, Unix milliseconds.
    pub submitted_at: u64,
    /// Block time of the end, Unix milliseconds.
    pub finished_at: Option<u64>,
    /// When the chain ends or re-opens the run by itself, Unix milliseconds.
    pub deadline_at: Option<u64>,
    /// How often the run was re-opened.
    #[serde(default)]
    pub reopens: u64,
    /// Miners whose claim lapsed and that may not claim it again.
    #[serde(default)]
    pub excluded_miners: Vec<Address>,
    /// How the submitter protects it, if it does.
    pub protection: Option<RunProtection>,
    /// What is locked of the miner's bond for it, if anything is.
    pub locked_bond: Option<Amount>,
    /// Until when the reward is held and can be refused, Unix milliseconds; none if it is not held.
    pub held_until: Option<u64>,
    /// Whether the submitter refused the reward: then it was burned.
    #[serde(default)]
    pub refused: bool,
    /// The agent of which it is a run, if it is one.
    pub agent_id: Option<Hash>,
    /// The version of that agent.
    pub agent_version: Option<String>,
}

/// How a run is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunProtection {
    /// The only miners that may claim it; everybody may if there are none.
    #[serde(default)]
    pub miners: Vec<Address>,
    /// What a claim locks of the miner's bond, micro-OMBRA.
    pub claim_bond: Amount,
    /// The most output tokens of one step, where the run has a bound of its own.
    pub max_tokens_per_step: Option<u64>,
    /// How long the reward is held after the end, milliseconds.
    pub refuse_ms: u64,
}

/// What `ombra_getBond` tells of an account.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stake {
    /// Its bond, micro-OMBRA.
    pub bonded: Amount,
    /// The part that is locked for runs.
    pub locked: Amount,
    /// The part that is not.
    pub free: Amount,
    /// What it took out of its bond and is not paid yet, at most 100 payments.
    #[serde(default)]
    pub unbonding: Vec<Unbonding>,
    /// Its runs, as a submitter, whose reward was held.
    #[serde(default)]
    pub rewards_held: u64,
    /// Rewards that it refused as a submitter.
    #[serde(default)]
    pub rewards_refused: u64,
}

/// A payment out of a bond.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Unbonding {
    /// When it is paid: block time, Unix milliseconds.
    pub due: u64,
    /// How much, micro-OMBRA.
    pub amount: Amount,
}

impl Run {
    /// True once the run has ended and its escrow is paid out.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !matches!(self.status.as_str(), "pending" | "claimed" | "running")
    }
}

/// One tool call of a step.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// SHA-256 of the arguments.
    pub args_hash: Hash,
    /// SHA-256 of the result.
    pub result_hash: Hash,
    /// How long it took, milliseconds.
    pub duration_ms: u64,
    /// Whether it succeeded.
    pub ok: bool,
}

/// One recorded step of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The step's index.
    pub step_index: u64,
    /// Tokens that the miner says it produced.
    pub output_tokens: u64,
    /// SHA-256 of the step's output.
    pub output_hash: Hash,
    /// The blob with the output, where the miner kept it.
    pub output_blob_id: Option<String>,
    /// The blob with what the model thought first, where the miner kept it.
    pub thought_blob_id: Option<String>,
    /// Tools used.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// The block that recorded it.
    pub block_index: u64,
    /// The transaction that recorded it.
    pub tx: Hash,
}

/// One page of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Items<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// Where the next page begins; absent at the end.
    pub next_cursor: Option<String>,
}

/// One turn of a conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// The turn's transaction.
    pub hash: Hash,
    /// Who wrote it.
    pub from: Address,
    /// The role it was written in.
    pub role: String,
    /// The text.
    pub content: String,
    /// The blob with more, if any.
    pub content_blob_id: Option<String>,
    /// The run it belongs to, if any.
    pub agent_run_id: Option<Hash>,
    /// The sender's relation to that run: `submitter`, `miner` or `other`.
    pub relation: Option<String>,
    /// Block time, Unix milliseconds.
    pub timestamp: u64,
    /// The block that holds it.
    pub block_index: u64,
}
