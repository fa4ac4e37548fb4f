//! Notifications about calls of agents, and about agents.

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
    /// An AGENT_CALL requested the call.
    Created,
    /// The chain drew the members of a round.
    Elected,
    /// Too few members could be drawn, and the escrow was returned.
    Unassigned,
    /// A member committed to its answer.
    Committed,
    /// Members may reveal.
    Revealing,
    /// A member revealed its answer.
    Revealed,
    /// The members of a round reached a decision, or the round ended without one.
    Decided,
    /// An account appealed the decision.
    Appealed,
    /// The call is settled: all of its money has been paid out, returned or burned.
    Settled,
    /// Too few miners were eligible for the second round. The decision can be appealed again.
    AppealFailed,
}

/// An event of a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallEvent {
    /// What happened.
    pub event: CallEventKind,
    /// The index of the block.
    pub block_index: u64,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The id of the call.
    #[schemars(with = "HashText")]
    pub call_id: Hash,
    /// The id of the agent.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// The version of the agent.
    pub agent_version: String,
    /// The address of the account that requested the call.
    #[schemars(with = "AddressText")]
    pub requester: Address,
    /// The status of the call after the event.
    pub status: &'static str,
    /// The hash of the transaction that caused the event. Absent if the block itself caused it.
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
    /// The round: 0, or 1 after an appeal. Only for `elected`, `committed`, `revealed` and
    /// `decided`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u8>,
    /// The members in the order of the draw. Only for `elected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AddressText>>")]
    pub members: Option<Vec<Address>>,
    /// The block time until which members may commit (`elected`) or reveal (`revealing`), or until which
    /// the decision can be appealed (`appealFailed`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// The address of the member. Only for `committed` and `revealed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub member: Option<Address>,
    /// The answer, without the result, which is in `tx`. Only for `revealed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
    /// The number of members that agreed. Only for `decided` and `settled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreeing: Option<u8>,
    /// The amount that was returned to the requester (`unassigned`) or to the appellant (`appealFailed`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub returned: Option<Amount>,
    /// The address of the appellant. Only for `appealed` and `appealFailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AddressText>")]
    pub appellant: Option<Address>,
    /// The number of members that the second round should have. Only for `appealed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u8>,
    /// What the appellant paid for the work of the second round. Only for `appealed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub payment: Option<Amount>,
    /// The appellant's deposit. Only for `appealed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub deposit: Option<Amount>,
    /// How the money of the call was divided. Only for `settled`.
    #[serde(flatten)]
    pub bill: Option<BillView>,
}

impl CallEvent {
    /// An event without the members that only some events have.
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
    /// The owner published the agent or a new version of it.
    Registered,
    /// The owner retired the agent.
    Retired,
}

/// An event of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    /// What happened.
    pub event: AgentEventKind,
    /// The index of the block.
    pub block_index: u64,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The id of the agent.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// The address of the agent's owner.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// The registered version. Only for `registered`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The hash of the transaction that caused the event.
    #[schemars(with = "HashText")]
    pub hash: Hash,
}
