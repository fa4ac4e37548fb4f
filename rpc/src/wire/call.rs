//! Calls of agents: their records, their members, and what these answered.

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

/// A call as far as its record tells, without its members and the texts of its transactions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallState {
    /// The call's id.
    #[schemars(with = "HashText")]
    pub call_id: Hash,
    /// The agent.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// The version of it that is called.
    pub agent_version: String,
    /// The agent's owner, who gets the royalty.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// Who asked and paid.
    #[schemars(with = "AddressText")]
    pub requester: Address,
    /// `electing`, `committing`, `revealing`, `success`, `failed`, `timedOut` or `unassigned`.
    pub status: &'static str,
    /// Whether all of its money has moved.
    pub settled: bool,
    /// Who decides: the `majority`, or a `threshold` of members.
    pub consensus: &'static str,
    /// `threshold`: how many members decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u8>,
    /// How many members the first round has, empty seats included.
    pub committee_size: u8,
    /// Whether a decision can be appealed.
    pub appealable: bool,
    /// What it pays to each member.
    pub prices: CallPricesView,
    /// What the work on it may take.
    pub limits: LimitsView,
    /// The escrow at the start.
    #[schemars(with = "AmountText")]
    pub max_fee: Amount,
    /// How long members have to commit, in milliseconds.
    pub timeout_ms: u64,
    /// Payments that depend on the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ConditionalView>>")]
    pub on_result: Vec<ConditionalView>,
    /// The conversation that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub conversation_id: Option<Hash>,
    /// SHA-256 of the payload's bytes.
    #[schemars(with = "HashText")]
    pub payload_hash: Hash,
    /// What one member can cost: the price of work at the limits.
    #[schemars(with = "AmountText")]
    pub budget: Amount,
    /// The numbers that hold for it, whatever votes change meanwhile.
    pub terms: TermsView,
    /// Block time of the AGENT_CALL.
    pub created_at: u64,
    /// The block with the AGENT_CALL.
    pub block_index: u64,
    /// Block time at which the phase ends; absent while the call waits for an election, and once it is
    /// settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<u64>,
    /// The first block at whose end the phase can end by its deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_block: Option<u64>,
    /// Its rounds: none before the first election, two after an appeal.
    pub rounds: Vec<RoundView>,
    /// The appeal, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub appeal: Option<AppealView>,
    /// The answer that stands, where the majority decided; of a settled call it is final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
    /// How many members gave the answer that stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreeing: Option<u8>,
    /// The sum of their bonds when they were drawn; in lists only of settled calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub bond_behind: Option<Amount>,
    /// What became of its money, once it is settled.
    #[serde(flatten)]
    pub bill: Option<BillView>,
    /// SHA-256 over the records of the members of a settled call, in the order of the draw.
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
    /// The record. Its rounds have their members.
    #[serde(flatten)]
    pub state: CallState,
    /// The AGENT_CALL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub request_tx: Option<Hash>,
    /// What was asked: a method's selector and its arguments, as hex with `0x`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// With the consensus `threshold`: the successes of those who decided, by member's address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<MemberAnswer>>")]
    pub answers: Vec<MemberAnswer>,
    /// Why texts are left out that the chain has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<String>>")]
    pub notes: Vec<String>,
}
