//! What subscribers are told.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::{Address, Amount, Hash};

use super::{AddressText, AmountText, BlockSummary, DropView, FeeSplit, HashText, TxObject};

/// A block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockEvent {
    /// The block's index.
    pub block_index: u64,
    /// The block before.
    #[schemars(with = "HashText")]
    pub previous_hash: Hash,
    /// The block.
    #[serde(flatten)]
    pub block: BlockSummary,
}

/// An included transaction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TxEvent {
    /// The block's index.
    pub block_index: u64,
    /// The place in the block.
    pub position: u32,
    /// Block time.
    pub timestamp: u64,
    /// Its name.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The sender.
    #[schemars(with = "AddressText")]
    pub from: Address,
    /// The signed object.
    #[schemars(with = "TxObject")]
    pub tx: Box<RawValue>,
}

/// What happened to a transaction in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PoolNoticeKind {
    /// It was taken in.
    Accepted,
    /// It was dropped.
    Dropped,
}

/// What happened to a transaction in the pool.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolNotice {
    /// What happened.
    pub event: PoolNoticeKind,
    /// The index of the latest block at that time.
    pub block_index: u64,
    /// Its name.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The sender.
    #[schemars(with = "AddressText")]
    pub from: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// Accepted: the signed object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TxObject>")]
    pub tx: Option<Box<RawValue>>,
    /// Dropped: why and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DropView>,
}

/// What happened to a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RunEventKind {
    /// It was asked for.
    Created,
    /// A miner took it.
    Claimed,
    /// Its miner reported a step.
    Step,
    /// Its miner ended it.
    Finished,
    /// A deadline passed: it ended with status `timeout`, or is `pending` again.
    Expired,
    /// Its submitter took it back.
    Cancelled,
    /// The reward that was held was paid.
    Paid,
    /// Its submitter refused the reward that was held.
    Refused,
    /// Its miner ended it without having worked on it: it is `pending` again.
    GivenBack,
}

/// Something that happened to a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    /// What happened.
    pub event: RunEventKind,
    /// The block's index.
    pub block_index: u64,
    /// Block time.
    pub timestamp: u64,
    /// The run.
    #[schemars(with = "HashText")]
    pub agent_run_id: Hash,
    /// Its conversation.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// Who asked.
    #[schemars(with = "AddressText")]
    pub submitter: Address,
    /// The status that this leads to.
    pub status: &'static str,
    /// The miner that did this or that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub miner_address: Option<Address>,
    /// The transaction that did this; none for `expired`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub hash: Option<Hash>,
    /// The signed object of that transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TxObject>")]
    pub tx: Option<Box<RawValue>>,
    /// `created`: the escrow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub max_fee: Option<Amount>,
    /// `step`: its index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_index: Option<u64>,
    /// `step`: its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// `finished` and an `expired` that ends the run: how the escrow was divided.
    #[serde(flatten)]
    pub fees: Option<FeeSplit>,
}

/// That a subscriber was too slow and lost events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lagged {
    /// How many events were lost.
    pub lagged: u64,
    /// The index of the latest block.
    pub block_index: u64,
}
