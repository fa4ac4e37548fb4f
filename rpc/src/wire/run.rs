//! Agent runs and their steps.

use schemars::JsonSchema;
use serde::Serialize;
use types::tx::{AgentClaim, AgentFinish, AgentRequest, AgentStep, ToolCall};
use types::{Address, Amount, Ender, Hash, Run, RunProtection, Settlement, Step};

use super::{AddressText, AmountText, HashText};

/// The record of a run, without the texts of its transactions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunState {
    /// The id of the run.
    #[schemars(with = "HashText")]
    pub agent_run_id: Hash,
    /// The id of the conversation that the run belongs to.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// The address of the account that requested and paid for the run.
    #[schemars(with = "AddressText")]
    pub submitter: Address,
    /// The escrow at the start.
    #[schemars(with = "AmountText")]
    pub max_fee: Amount,
    /// The maximum number of steps.
    pub max_steps: u64,
    /// The status: `pending`, `claimed`, `running`, `completed`, `failed`, `timeout`,
    /// `insufficient_funds` or `cancelled`.
    pub status: &'static str,
    /// The address of the miner that claimed the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub miner_address: Option<Address>,
    /// The number of recorded steps.
    pub step_count: u64,
    /// The number of output tokens in these steps.
    pub total_tokens_out: u64,
    /// How the escrow was divided.
    #[serde(flatten)]
    pub fees: Option<FeeSplit>,
    /// The block time of the request.
    pub submitted_at: u64,
    /// The block time of the current claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<u64>,
    /// The block time at which the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<u64>,
    /// The block time after which the chain acts if nobody else does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<u64>,
    /// How many times the run was reopened after a claim.
    pub reopens: u32,
    /// The miners that may not claim the run again, because they let a claim lapse or gave the run
    /// up.
    #[schemars(with = "Vec<AddressText>")]
    pub excluded_miners: Vec<Address>,
    /// How the submitter protects the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protection: Option<ProtectionView>,
    /// The part of the miner's bond that is locked for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub locked_bond: Option<Amount>,
    /// The block time until which the submitter may refuse the reward. Present while the reward is
    /// held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_until: Option<u64>,
    /// Whether the submitter refused the reward. A refused reward is burned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub refused: bool,
    /// The id of the agent that the run is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub agent_id: Option<Hash>,
    /// The version of that agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Who ended the run: `submitter`, `miner`, or `sweep` if a deadline did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<&'static str>,
}

/// How a run is protected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProtectionView {
    /// The only miners that may claim the run. If the list is empty, every miner may.
    #[schemars(with = "Vec<AddressText>")]
    pub miners: Vec<Address>,
    /// The amount of the miner's bond that a claim locks.
    #[schemars(with = "AmountText")]
    pub claim_bond: Amount,
    /// The maximum number of output tokens in one step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_step: Option<u64>,
    /// How long the reward is held after the run has ended, in milliseconds.
    pub refuse_ms: u64,
}

impl From<&RunProtection> for ProtectionView {
    fn from(protection: &RunProtection) -> Self {
        let RunProtection { miners, claim_bond, max_tokens_per_step, refuse_ms } = protection;
        Self {
            miners: miners.clone(),
            claim_bond: *claim_bond,
            max_tokens_per_step: *max_tokens_per_step,
            refuse_ms: *refuse_ms,
        }
    }
}

/// How an escrow is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeeSplit {
    /// The reward for the miner.
    #[schemars(with = "AmountText")]
    pub miner_reward: Amount,
    /// The refund to the submitter.
    #[schemars(with = "AmountText")]
    pub user_refund: Amount,
    /// The network fee, which is burned.
    #[schemars(with = "AmountText")]
    pub network_fee: Amount,
}

impl From<Settlement> for FeeSplit {
    fn from(settlement: Settlement) -> Self {
        let Settlement { miner_reward, user_refund, network_fee } = settlement;
        Self { miner_reward, user_refund, network_fee }
    }
}

impl From<&Run> for RunState {
    fn from(run: &Run) -> Self {
        Self {
            agent_run_id: run.agent_run_id,
            conversation_id: run.conversation_id,
            submitter: run.submitter,
            max_fee: run.max_fee,
            max_steps: run.max_steps,
            status: run.status.as_str(),
            miner_address: run.miner,
            step_count: run.step_count,
            total_tokens_out: run.tokens_out,
            fees: run.settlement.map(FeeSplit::from),
            submitted_at: run.submitted_at,
            claimed_at: run.claimed_at,
            finished_at: run.finished_at,
            deadline_at: run.deadline_at.filter(|_| !run.is_held()),
            reopens: run.reopens,
            excluded_miners: run.excluded_miners.clone(),
            protection: run.protection.as_ref().map(ProtectionView::from),
            locked_bond: run.locked_bond,
            held_until: run.deadline_at.filter(|_| run.is_held()),
            refused: run.is_refused,
            agent_id: run.agent.as_ref().map(|it| it.agent_id),
            agent_version: run.agent.as_ref().map(|it| it.version.clone()),
            ended_by: run.ended_by.map(Ender::as_str),
        }
    }
}

/// A run with the texts of its transactions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// The record of the run.
    #[serde(flatten)]
    pub state: RunState,
    /// The prompt.
    pub prompt: String,
    /// The id of a blob with a longer prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_blob_id: Option<String>,
    /// The names of the tools that the miner may use.
    pub tools_whitelist: Vec<String>,
    /// The model that the submitter prefers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_hint: Option<String>,
    /// The model that the miner uses, from its claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_info: Option<String>,
    /// The miner's hardware, from its claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_tier: Option<String>,
    /// The final answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_answer_inline: Option<String>,
    /// The id of a blob with the final answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_answer_blob_id: Option<String>,
    /// The index of the block that contains the AGENT_REQUEST.
    pub block_index: u64,
    /// The hash of the AGENT_REQUEST.
    #[schemars(with = "HashText")]
    pub request_tx: Hash,
    /// The hash of the current AGENT_CLAIM.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub claim_tx: Option<Hash>,
    /// The hash of the AGENT_FINISH or AGENT_CANCEL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub finish_tx: Option<Hash>,
}

/// The transactions that contain the texts of a run, with their hashes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunTexts<'a> {
    pub(crate) request: (Hash, &'a AgentRequest),
    pub(crate) claim: Option<(Hash, &'a AgentClaim)>,
    /// The body is `None` for an AGENT_CANCEL.
    pub(crate) finish: Option<(Hash, Option<&'a AgentFinish>)>,
}

impl RunView {
    pub(crate) fn new(run: &Run, texts: RunTexts<'_>) -> Self {
        let RunTexts { request: (request_tx, request), claim, finish } = texts;
        let answer = finish.and_then(|(_, body)| body);
        Self {
            state: RunState::from(run),
            prompt: request.prompt.clone(),
            prompt_blob_id: request.prompt_blob_id.clone(),
            tools_whitelist: request.tools_whitelist.clone(),
            model_hint: request.model_hint.clone(),
            model_info: claim.map(|(_, body)| body.model_info.clone()),
            hardware_tier: claim.map(|(_, body)| body.hardware_tier.clone()),
            final_answer_inline: answer.and_then(|body| body.final_answer_inline.clone()),
            final_answer_blob_id: answer.and_then(|body| body.final_answer_blob_id.clone()),
            block_index: run.request.height,
            request_tx,
            claim_tx: claim.map(|(hash, _)| hash),
            finish_tx: finish.map(|(hash, _)| hash),
        }
    }
}

/// A recorded step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    /// The index of the step.
    pub step_index: u64,
    /// The number of tokens that the model generated.
    pub output_tokens: u64,
    /// The SHA-256 of the output text.
    #[schemars(with = "HashText")]
    pub output_hash: Hash,
    /// The id of a blob with the model's reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_blob_id: Option<String>,
    /// The tool calls of the step.
    pub tool_calls: Vec<ToolCallView>,
    /// The id of a blob with the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_blob_id: Option<String>,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The index of the block that contains the AGENT_STEP.
    pub block_index: u64,
    /// The hash of the AGENT_STEP.
    #[schemars(with = "HashText")]
    pub tx: Hash,
}

impl StepView {
    /// The view of a step that the transaction `tx` with `body` reported.
    #[must_use]
    pub fn new(step: &Step, tx: Hash, body: &AgentStep) -> Self {
        let calls = body.tool_calls.as_deref().unwrap_or_default();
        Self {
            step_index: step.step_index,
            output_tokens: body.output_tokens,
            output_hash: body.output_hash,
            thought_blob_id: body.thought_blob_id.clone(),
            tool_calls: calls.iter().map(ToolCallView::from).collect(),
            output_blob_id: body.output_blob_id.clone(),
            timestamp: step.timestamp,
            block_index: step.tx.height,
            tx,
        }
    }
}

/// One tool call within a step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallView {
    /// The name of the tool.
    pub name: String,
    /// The SHA-256 of the arguments.
    #[schemars(with = "HashText")]
    pub args_hash: Hash,
    /// The SHA-256 of the result text.
    #[schemars(with = "HashText")]
    pub result_hash: Hash,
    /// How long the call took, in milliseconds.
    pub duration_ms: u64,
    /// Whether the call succeeded.
    pub ok: bool,
}

impl From<&ToolCall> for ToolCallView {
    fn from(call: &ToolCall) -> Self {
        let ToolCall { name, args_hash, result_hash, duration_ms, ok } = call;
        Self {
            name: name.clone(),
            args_hash: *args_hash,
            result_hash: *result_hash,
            duration_ms: *duration_ms,
            ok: *ok,
        }
    }
}

/// The amounts that an AGENT_FINISH must state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettlementView {
    /// The total number of output tokens in the recorded steps.
    pub total_tokens_out: u64,
    /// The number of recorded steps.
    pub step_count: u64,
    /// How the escrow is divided.
    #[serde(flatten)]
    pub fees: FeeSplit,
}

/// The id of a conversation, computed by `ombra_computeConversationId`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationId {
    /// The id of the conversation.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// The time from which the node computed the id, in milliseconds since 1970.
    pub now: u64,
}
