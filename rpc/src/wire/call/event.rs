//! What subscribers are told of calls of agents, and of agents.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::call::{Call, CallStatus};
use types::{Address, Amount, Hash};

use super::{AnswerView, BillView};
use crate::wire::{AddressText, AmountText, HashText, TxObject};

/// What happened to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CallEventKind {
    /// It was asked for.
    Created,
    /// Members were drawn.
    Elected,
    /// Too few members could be drawn: the escrow went back.
    Unassigned,
    /// A member committed to its answer.
    Committed,
    /// Members may reveal.
    Revealing,
    /// A member revealed its answer.
    Revealed,
    /// A round was decided.
    Decided,
    /// Somebody doubted the decision.
    Appealed,
    /// All of its money has moved.
    Settled,
}

/// Something that happened to a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallEvent {
    /// What happened.
    pub event: CallEventKind,
    /// The block's index.
    pub block_index: u64,
    /// Block time.
    pub timestamp: u64,
    /// The call.
    #[schemars(with = "HashText")]
    pub call_id: Hash,
    /// Its agent.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// The version that is called.
    pub agent_version: String,
    /// Who asked.
    #[schemars(with = "AddressText")]
    pub requester: Address,
    /// The status that this leads to.
    pub status: &'static str,
    /// The transaction that did this; none for what a block does by itself.
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
    /// `elected`, `committed`, `revealed`, `decided`: the round, 0 or 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u8>,
    /// `elected`: the members in the order of the draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AddressText>>")]
    pub members: Option<Vec<Address>>,
    /// `elected`, `revealing`: until when they may commit, or reveal; block time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// `committed`, `revealed`: the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub member: Option<Address>,
    /// `revealed`: the answer; its result is in `tx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
    /// `decided`, `settled`: how many members agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreeing: Option<u8>,
    /// `unassigned`: what went back to the requester.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub returned: Option<Amount>,
    /// `appealed`: who appealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub appellant: Option<Address>,
    /// `appealed`: how many members the second round should have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u8>,
    /// `appealed`: what the appellant paid for their work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub payment: Option<Amount>,
    /// `appealed`: what it laid down.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub deposit: Option<Amount>,
    /// `settled`: what became of the money.
    #[serde(flatten)]
    pub bill: Option<BillView>,
}

impl CallEvent {
    /// An event without what only some have.
    pub(crate) fn new(event: CallEventKind, status: CallStatus, call: &Call) -> Self {
        Self {
            event,
            block_index: 0,
            timestamp: 0,
            call_id: call.call_id,
            agent_id: call.agent_id,
            agent_version: call.agent_version.clone(),
            requester: call.requester,
            status: status.as_str(),
            hash: None,
            tx: None,
            max_fee: None,
            round: None,
            members: None,
            until: None,
            member: None,
            answer: None,
            agreeing: None,
            returned: None,
            appellant: None,
            size: None,
            payment: None,
            deposit: None,
            bill: None,
        }
    }
}

/// What happened to an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentEventKind {
    /// It was published, or a version of it.
    Registered,
    /// It takes no more calls.
    Retired,
}

/// Something that happened to an agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    /// What happened.
    pub event: AgentEventKind,
    /// The block's index.
    pub block_index: u64,
    /// Block time.
    pub timestamp: u64,
    /// The agent.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// Whose it is.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// `registered`: the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The transaction that did this.
    #[schemars(with = "HashText")]
    pub hash: Hash,
}
