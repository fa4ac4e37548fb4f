//! Calls of agents: their records, their members, and the members' answers.

mod event;
mod parts;
mod query;

use schemars::JsonSchema;
use serde::Serialize;
use types::call::{Call, Consensus, Group};
use types::{Address, Amount, Hash};

pub use self::event::{AgentEvent, AgentEventKind, CallEvent, CallEventKind};
pub use self::parts::{
    AnswerView, AppealView, BillView, CallPricesView, CommitmentView, ConditionalView, GroupView,
    LimitsView, MemberAnswer, MemberView, RevealView, RoundView, TermsView,
};
pub use self::query::{CallQuery, CallWaitOptions, CommitmentQuery, RandomnessView, WaitUntil};
use super::{AddressText, AmountText, HashText};

/// The record of a call, without its members and the texts of its transactions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallState {
    /// The call's id.
    #[schemars(with = "HashText")]
    pub call_id: Hash,
    /// The id of the agent.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// The version of the agent.
    pub agent_version: String,
    /// The address of the agent's owner, who gets the royalty.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// The address of the account that requested and paid for the call.
    #[schemars(with = "AddressText")]
    pub requester: Address,
    /// The status: `electing`, `committing`, `revealing`, `success`, `failed`, `timedOut` or
    /// `unassigned`.
    pub status: &'static str,
    /// Whether the call is settled: all of its money has been paid out, returned or burned.
    pub settled: bool,
    /// How the committee decides: by `majority`, or by a `threshold` of members.
    pub consensus: &'static str,
    /// The number of members that must agree. Present only with the consensus `threshold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u8>,
    /// The number of members in the first round, including empty seats.
    pub committee_size: u8,
    /// Whether the decision can be appealed.
    pub appealable: bool,
    /// The prices at which the call pays each member.
    pub prices: CallPricesView,
    /// The limits on the work of each member.
    pub limits: LimitsView,
    /// The escrow at the start.
    #[schemars(with = "AmountText")]
    pub max_fee: Amount,
    /// How long members have to commit, in milliseconds.
    pub timeout_ms: u64,
    /// Payments to others that depend on the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ConditionalView>>")]
    pub on_result: Vec<ConditionalView>,
    /// The id of the conversation that the call belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub conversation_id: Option<Hash>,
    /// The SHA-256 of the payload.
    #[schemars(with = "HashText")]
    pub payload_hash: Hash,
    /// The most that one member's work can cost: its price at the call's limits.
    #[schemars(with = "AmountText")]
    pub budget: Amount,
    /// The amounts and times that apply to this call. Later changes of parameters do not affect
    /// them.
    pub terms: TermsView,
    /// The block time of the AGENT_CALL.
    pub created_at: u64,
    /// The index of the block that contains the AGENT_CALL.
    pub block_index: u64,
    /// The block time at which the current phase ends. Absent while the call waits for an election,
    /// and once it is settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<u64>,
    /// The first block at whose end `deadlineAt` can end the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_block: Option<u64>,
    /// The rounds of the call: none before the first election, two after an appeal.
    pub rounds: Vec<RoundView>,
    /// The appeal, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub appeal: Option<AppealView>,
    /// The answer that currently stands, if the consensus is `majority`. Once the call is settled,
    /// it is final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
    /// The number of members that gave the standing answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreeing: Option<u8>,
    /// The sum of the bonds that the agreeing members had when they were drawn. In lists, present
    /// only for settled calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub bond_behind: Option<Amount>,
    /// How the money of the call was divided. Present once the call is settled.
    #[serde(flatten)]
    pub bill: Option<BillView>,
    /// The SHA-256 over the records of the call's members, in the order of the draw. Present once
    /// the call is settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub members_digest: Option<Hash>,
}

impl From<&Call> for CallState {
    fn from(call: &Call) -> Self {
        let standing = call.standing();
        let answer = standing.and_then(|(_, group)| match group {
            Group::Same(answer) => Some(AnswerView::from(answer)),
            Group::Of(_) => None,
        });
        let bill = call.bill.as_ref().filter(|_| standing.is_some());
        let agreeing = standing.map(|(round, _)| bill.map_or(round.agreeing, |it| it.agreeing));
        Self {
            call_id: call.call_id,
            agent_id: call.agent_id,
            agent_version: call.agent_version.clone(),
            owner: call.owner,
            requester: call.requester,
            status: call.status.as_str(),
            settled: call.is_settled(),
            consensus: call.consensus.as_str(),
            threshold: match call.consensus {
                Consensus::Majority => None,
                Consensus::Threshold(needed) => Some(needed),
            },
            committee_size: call.committee_size,
            appealable: call.is_appealable,
            prices: call.prices.into(),
            limits: call.limits.into(),
            max_fee: call.max_fee,
            timeout_ms: call.timeout_ms,
            on_result: call.on_result.iter().map(|it| ConditionalView::new(it, call)).collect(),
            conversation_id: call.conversation_id,
            payload_hash: call.payload_hash,
            budget: call.terms.budget,
            terms: call.terms.into(),
            created_at: call.created_at,
            block_index: call.request.height,
            deadline_at: call.deadline.map(|it| it.at),
            deadline_block: call.deadline.map(|it| it.height),
            rounds: call.rounds.iter().map(RoundView::from).collect(),
            appeal: call.appeal.map(AppealView::from),
            answer,
            agreeing,
            bond_behind: bill.map(|it| it.bond_behind),
            bill: call.bill.map(BillView::from),
            members_digest: Some(call.members_digest).filter(|it| *it != Hash::ZERO),
        }
    }
}

/// A call with its members and the texts of its transactions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallView {
    /// The record of the call. Its rounds include their members.
    #[serde(flatten)]
    pub state: CallState,
    /// The hash of the AGENT_CALL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub request_tx: Option<Hash>,
    /// The payload in hex with `0x`: a method's selector followed by the encoded arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The successful answers of the deciding members, in the order of the members' addresses.
    /// Present only with the consensus `threshold`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<MemberAnswer>>")]
    pub answers: Vec<MemberAnswer>,
    /// Why the node left out texts that the chain has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<String>>")]
    pub notes: Vec<String>,
}
