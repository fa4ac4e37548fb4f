//! Notifications to subscribers.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::{Address, Amount, Hash};

use super::{AddressText, AmountText, BlockSummary, DropView, FeeSplit, HashText, TxObject};

/// Notification of a new block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockEvent {
    /// The index of the block.
    pub block_index: u64,
    /// The hash of the previous block.
    #[schemars(with = "HashText")]
    pub previous_hash: Hash,
    /// The block without its transactions.
    #[serde(flatten)]
    pub block: BlockSummary,
}

/// Notification of an included transaction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TxEvent {
    /// The index of the block.
    pub block_index: u64,
    /// The position of the transaction in its block, starting at 0.
    pub position: u32,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The hash of the transaction.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The type of the transaction.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The address of the sender.
    #[schemars(with = "AddressText")]
    pub from: Address,
    /// The signed transaction object.
    #[schemars(with = "TxObject")]
    pub tx: Box<RawValue>,
}

/// What happened to a transaction in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PoolNoticeKind {
    /// The pool accepted the transaction.
    Accepted,
    /// The pool dropped the transaction.
    Dropped,
}

/// Where a transaction stands that the pool accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PoolNoticeStanding {
    /// The next blocks may include the transaction.
    Pending,
    /// The transaction waits, for example until the sender's transactions with lower nonces are in the
    /// pool.
    Queued,
}

/// Notification of a change in the pool.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolNotice {
    /// What happened.
    pub event: PoolNoticeKind,
    /// The index of the latest block at that time.
    pub block_index: u64,
    /// The hash of the transaction.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The type of the transaction.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The address of the sender.
    #[schemars(with = "AddressText")]
    pub from: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// Whether the next blocks may include the transaction. Only for `accepted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<PoolNoticeStanding>,
    /// The signed transaction object. Only for `accepted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TxObject>")]
    pub tx: Option<Box<RawValue>>,
    /// Why and when the pool dropped the transaction. Only for `dropped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DropView>,
}

/// What happened to a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RunEventKind {
    /// The submitter requested the run.
    Created,
    /// A miner claimed the run.
    Claimed,
    /// The miner reported a step.
    Step,
    /// The miner ended the run.
    Finished,
    /// A deadline passed: the run ended with status `timeout`, or is `pending` again.
    Expired,
    /// The submitter cancelled the run.
    Cancelled,
    /// The chain paid the held reward to the miner.
    Paid,
    /// The submitter refused the held reward.
    Refused,
    /// The miner gave up the run before it reported a step, and the run is `pending` again.
    GivenBack,
}

/// An event of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    /// What happened.
    pub event: RunEventKind,
    /// The index of the block.
    pub block_index: u64,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The id of the run.
    #[schemars(with = "HashText")]
    pub agent_run_id: Hash,
    /// The id of the run's conversation.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// The address of the account that requested the run.
    #[schemars(with = "AddressText")]
    pub submitter: Address,
    /// The status of the run after the event.
    pub status: &'static str,
    /// The address of the miner that caused the event, or that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub miner_address: Option<Address>,
    /// The hash of the transaction that caused the event. Absent if a deadline caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub hash: Option<Hash>,
    /// The signed transaction that caused the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TxObject>")]
    pub tx: Option<Box<RawValue>>,
    /// The escrow. Only for `created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub max_fee: Option<Amount>,
    /// The index of the step. Only for `step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_index: Option<u64>,
    /// The number of output tokens in the step. Only for `step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// How the escrow was divided. Only for `finished`, and for `expired` if it ended the run.
    #[serde(flatten)]
    pub fees: Option<FeeSplit>,
}

/// Tells a subscriber that it was too slow and lost events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lagged {
    /// The number of lost events.
    pub lagged: u64,
    /// The index of the latest block.
    pub block_index: u64,
}
