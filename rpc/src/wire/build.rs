//! What the builders take: the members of each kind that a person decides. The rest is filled in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::Hash;

use super::{AddressText, AmountText, HashText, PublicKeyText, SignatureText, UnsignedTx};

/// Who sends, and when.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildEnvelope {
    /// The sender's address, in the written form that shall stand in the transaction.
    pub from: String,
    /// The sender's key.
    pub public_key: PublicKeyText,
    /// The nonce; the pending one if not given.
    #[serde(default)]
    pub nonce: Option<u64>,
    /// Milliseconds since 1970; now if not given.
    #[serde(default)]
    pub timestamp: Option<u64>,
    /// Binds the transaction to this chain.
    #[serde(default)]
    pub chain_id: Option<String>,
}

/// CHAT_TURN.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildChatTurn {
    /// The conversation.
    pub conversation_id: HashText,
    /// `user`, `assistant`, `system` or `tool`.
    pub role: String,
    /// At most 16,384 bytes.
    pub content: String,
    /// A finalised blob with the content.
    #[serde(default)]
    pub content_blob_id: Option<String>,
    /// A turn of the same conversation.
    #[serde(default)]
    pub parent_turn_hash: Option<HashText>,
    /// An existing run.
    #[serde(default)]
    pub agent_run_id: Option<HashText>,
    /// Finalised blobs shown with the turn.
    #[serde(default)]
    pub attachments: Option<Vec<BuildAttachment>>,
}

/// A blob shown with a turn.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildAttachment {
    /// `image`, `audio` or `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The blob.
    pub blob_id: String,
}

/// AGENT_REQUEST. `agentRunId` is computed.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildAgentRequest {
    /// The conversation; computed from `seed` and the timestamp if not given.
    #[serde(default)]
    pub conversation_id: Option<HashText>,
    /// What a new conversation's id is computed from.
    #[serde(default)]
    pub seed: Option<String>,
    /// What is asked, 1 to 16,384 bytes.
    pub prompt: String,
    /// Tools that the miner may use; none if not given.
    #[serde(default)]
    pub tools_whitelist: Vec<String>,
    /// The escrow.
    pub max_fee: AmountText,
    /// The most steps, 1 to 200.
    pub max_steps: u64,
    /// A finalised blob with a longer prompt.
    #[serde(default)]
    pub prompt_blob_id: Option<String>,
    /// The model that the submitter would like.
    #[serde(default)]
    pub model_hint: Option<String>,
}

/// AGENT_CLAIM.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildAgentClaim {
    /// The run.
    pub agent_run_id: HashText,
    /// The sender; filled in if not given.
    #[serde(default)]
    pub miner_address: Option<String>,
    /// The miner's model.
    pub model_info: String,
    /// `laptop`, `desktop`, `workstation`, `server` or `cluster`.
    pub hardware_tier: String,
}

/// AGENT_STEP.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildAgentStep {
    /// The run.
    pub agent_run_id: HashText,
    /// Greater than the last one.
    pub step_index: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// SHA-256 of the output's text.
    pub output_hash: HashText,
    /// A blob with the model's reasoning.
    #[serde(default)]
    pub thought_blob_id: Option<String>,
    /// The tools that were called.
    #[serde(default)]
    pub tool_calls: Option<Vec<BuildToolCall>>,
    /// A blob with the output.
    #[serde(default)]
    pub output_blob_id: Option<String>,
}

/// One call of a tool.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildToolCall {
    /// The tool.
    pub name: String,
    /// SHA-256 of the arguments.
    pub args_hash: HashText,
    /// SHA-256 of the result.
    pub result_hash: HashText,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Whether it succeeded.
    pub ok: bool,
}

/// AGENT_FINISH. `totalTokensOut` and the amounts are those that the run's steps give, pending
/// ones counted.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildAgentFinish {
    /// The run.
    pub agent_run_id: HashText,
    /// `completed`, `failed`, `timeout`, `insufficient_funds` or `cancelled`.
    pub status: String,
    /// The answer, at most 16,384 bytes.
    #[serde(default)]
    pub final_answer_inline: Option<String>,
    /// A finalised blob with the answer.
    #[serde(default)]
    pub final_answer_blob_id: Option<String>,
}

/// AGENT_CANCEL.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildAgentCancel {
    /// The run.
    pub agent_run_id: HashText,
}

/// TRANSFER.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildTransfer {
    /// The receiver, in the written form that shall stand in the transaction.
    #[schemars(with = "AddressText")]
    pub to: String,
    /// What the receiver gets.
    pub amount: AmountText,
    /// What the proposer gets; nothing if not given.
    #[serde(default)]
    pub fee: Option<AmountText>,
}

/// MINER_REGISTER.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildMinerRegister {
    /// At most 256 bytes.
    pub name: String,
    /// At most 64 entries of 64 bytes.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// At most 256 bytes.
    pub model_info: String,
}

/// SOCIAL_BLOB_INIT. `totalChunks` is computed.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildBlobInit {
    /// A new id.
    pub blob_id: String,
    /// A media type.
    pub content_type: String,
    /// The size.
    pub total_bytes: u64,
    /// SHA-256 of the bytes.
    pub content_hash: HashText,
}

/// SOCIAL_BLOB_CHUNK.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildBlobChunk {
    /// The blob.
    pub blob_id: String,
    /// Which piece, from 0.
    pub chunk_index: u64,
    /// The piece in standard base64.
    pub chunk_data_base64: String,
}

/// SOCIAL_BLOB_FINALIZE.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildBlobFinalize {
    /// The blob.
    pub blob_id: String,
}

/// VALIDATOR_VOTE.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildValidatorVote {
    /// The consensus key of the validator that shall be added, changed or removed.
    pub candidate_key: PublicKeyText,
    /// The power that it shall have, at most 2^48; 0 removes it.
    pub power: u64,
    /// The last block time at which the vote counts; a week after the timestamp if not given.
    #[serde(default)]
    pub expires_at: Option<u64>,
}

/// A transaction that waits for its signature.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Built {
    /// The unsigned object: give it to `ombra_sendSigned` with the signature.
    #[schemars(with = "UnsignedTx")]
    pub tx: Box<RawValue>,
    /// The exact text that is hashed.
    pub payload: String,
    /// SHA-256 of the payload.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The 64 characters to sign.
    pub signing_message: String,
}

/// A built transaction with a signature that was made elsewhere.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedParts {
    /// The `tx` of a builder's answer.
    #[schemars(with = "UnsignedTx")]
    pub tx: Box<RawValue>,
    /// Over the 64 characters of `signingMessage`.
    pub signature: SignatureText,
}
