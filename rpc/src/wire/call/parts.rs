//! The parts of a call: prices, terms, rounds, members, answers, and the division of its money.

use schemars::JsonSchema;
use serde::Serialize;
use types::call::{
    Answer, Appeal, Bill, Call, CallLimits, CallRound, CallTerms, Commitment, Conditional, Group,
};
use types::{Address, Amount, Hash, Prices, Usage};

use crate::wire::{AddressText, AmountText, HashText};

/// The prices that a call pays to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallPricesView {
    /// The fixed price of a call, independent of the work.
    #[schemars(with = "AmountText")]
    pub per_call: Amount,
    /// The price of a million input tokens.
    #[schemars(with = "AmountText")]
    pub prompt_per_m: Amount,
    /// The price of a million output tokens.
    #[schemars(with = "AmountText")]
    pub completion_per_m: Amount,
    /// The price of a billion units of fuel.
    #[schemars(with = "AmountText")]
    pub fuel_per_g: Amount,
}

impl From<Prices> for CallPricesView {
    fn from(prices: Prices) -> Self {
        let Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g } = prices;
        Self { per_call, prompt_per_m, completion_per_m, fuel_per_g }
    }
}

/// Limits on the work that one member does for a call, including nested agents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitsView {
    /// The maximum number of input tokens.
    pub input_tokens: u64,
    /// The maximum number of output tokens.
    pub output_tokens: u64,
    /// The maximum number of units of fuel.
    pub fuel: u64,
    /// The maximum size of the result in bytes.
    pub result_bytes: u64,
}

impl From<CallLimits> for LimitsView {
    fn from(limits: CallLimits) -> Self {
        let CallLimits { usage: Usage { input_tokens, output_tokens, fuel }, result_bytes } =
            limits;
        Self { input_tokens, output_tokens, fuel, result_bytes }
    }
}

/// The amounts and times that apply to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TermsView {
    /// The royalty that the agent's owner gets for a success.
    #[schemars(with = "AmountText")]
    pub royalty: Amount,
    /// The minimum bond of a member.
    #[schemars(with = "AmountText")]
    pub min_bond: Amount,
    /// The penalty for dissent.
    #[schemars(with = "AmountText")]
    pub dissent_penalty: Amount,
    /// The penalty for not committing.
    #[schemars(with = "AmountText")]
    pub absence_penalty: Amount,
    /// The penalty for committing without revealing.
    #[schemars(with = "AmountText")]
    pub unrevealed_penalty: Amount,
    /// The penalty for an answer outside the deciding group.
    #[schemars(with = "AmountText")]
    pub outside_penalty: Amount,
    /// The fee that each reveal burns.
    #[schemars(with = "AmountText")]
    pub reveal_fee: Amount,
    /// How long members have to reveal, in milliseconds.
    pub reveal_ms: u64,
    /// How long a decision can be appealed, in milliseconds.
    pub appeal_ms: u64,
}

impl From<CallTerms> for TermsView {
    fn from(terms: CallTerms) -> Self {
        let CallTerms {
            budget: _,
            royalty,
            min_bond,
            dissent_penalty,
            absence_penalty,
            unrevealed_penalty,
            outside_penalty,
            reveal_fee,
            reveal_ms,
            appeal_ms,
        } = terms;
        Self {
            royalty,
            min_bond,
            dissent_penalty,
            absence_penalty,
            unrevealed_penalty,
            outside_penalty,
            reveal_fee,
            reveal_ms,
            appeal_ms,
        }
    }
}

/// A payment that depends on the result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionalView {
    /// The condition: `success`, or `result:` followed by the hash of a result.
    pub when: String,
    /// The address of the recipient.
    #[schemars(with = "AddressText")]
    pub to: Address,
    /// The amount to pay.
    #[schemars(with = "AmountText")]
    pub amount: Amount,
    /// Whether the payment was made. Absent before the call is settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paid: Option<bool>,
}

impl ConditionalView {
    pub(super) fn new(conditional: &Conditional, call: &Call) -> Self {
        let Conditional { when, to, amount } = conditional;
        let fires = || call.standing().is_some_and(|(_, group)| when.fires(group));
        let paid = call.is_settled().then(fires);
        Self { when: when.to_string(), to: *to, amount: *amount, paid }
    }
}

/// A round of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoundView {
    /// The number of seats, including empty ones.
    pub size: u8,
    /// The number of members that were drawn. The other seats are empty.
    pub elected: u8,
    /// The number of members that have committed.
    pub committed: u8,
    /// The number of members that have revealed.
    pub revealed: u8,
    /// The index of the block that drew the members. Its randomness decided the draw.
    pub elected_in: u64,
    /// The time of that block, in milliseconds since 1970.
    pub elected_at: u64,
    /// The SHA-256 over the candidates and their weights.
    #[schemars(with = "HashText")]
    pub candidates_hash: Hash,
    /// The block time of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<u64>,
    /// The group that decided the round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupView>,
    /// The number of members in that group.
    pub agreeing: u8,
    /// The members in the order of the draw. Absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<MemberView>>,
}

impl From<&CallRound> for RoundView {
    fn from(round: &CallRound) -> Self {
        let CallRound {
            size,
            members,
            committed,
            revealed,
            elected_in,
            elected_at,
            candidates_hash,
            decided_at,
            group,
            agreeing,
        } = *round;
        Self {
            size,
            elected: members,
            committed,
            revealed,
            elected_in,
            elected_at,
            candidates_hash,
            decided_at,
            group: group.map(GroupView::from),
            agreeing,
            members: None,
        }
    }
}

/// What the members of a group have in common.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupView {
    /// The outcome that all of them gave: `success` or `failure`.
    pub outcome: &'static str,
    /// The answer that all of them gave. Present only with the consensus `majority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
}

impl From<Group> for GroupView {
    fn from(group: Group) -> Self {
        let answer = match &group {
            Group::Same(answer) => Some(AnswerView::from(answer)),
            Group::Of(_) => None,
        };
        Self { outcome: group.outcome().as_str(), answer }
    }
}

/// A member's answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerView {
    /// The outcome: `success`, `failure` if the agent itself cannot answer, or `unable` if only
    /// this member cannot execute it.
    pub outcome: &'static str,
    /// The SHA-256 of the result.
    #[schemars(with = "HashText")]
    pub result_hash: Hash,
    /// The result in hex with `0x`. Absent if the node did not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The units of fuel used.
    pub fuel: u64,
    /// The SHA-256 of `work` in the member's receipt, with which the work can be repeated.
    #[schemars(with = "HashText")]
    pub receipt_hash: Hash,
}

impl From<&Answer> for AnswerView {
    fn from(answer: &Answer) -> Self {
        let Answer { outcome, result_hash, usage, receipt_hash } = *answer;
        let Usage { input_tokens, output_tokens, fuel } = usage;
        Self {
            outcome: outcome.as_str(),
            result_hash,
            result: None,
            input_tokens,
            output_tokens,
            fuel,
            receipt_hash,
        }
    }
}

/// The successful answer of a member, in a call with the consensus `threshold`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberAnswer {
    /// The address of the member.
    #[schemars(with = "AddressText")]
    pub member: Address,
    /// The member's answer.
    #[serde(flatten)]
    pub answer: AnswerView,
}

/// A member of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    /// The address of the miner.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The member's place in the order of the draw, starting at 0.
    pub seat: u8,
    /// The member's bond when it was drawn.
    #[schemars(with = "AmountText")]
    pub bond: Amount,
    /// The part of the member's bond that is locked for the call, or was until the call was
    /// settled.
    #[schemars(with = "AmountText")]
    pub lock: Amount,
    /// The member's commitment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commitment: Option<CommitmentView>,
    /// The answer that the member revealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reveal: Option<RevealView>,
    /// Whether the member gave the standing answer. Absent before the round is decided, and if no
    /// group decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed: Option<bool>,
    /// What the member was paid.
    #[schemars(with = "AmountText")]
    pub paid: Amount,
    /// The penalty that the member lost from its bond.
    #[schemars(with = "AmountText")]
    pub penalty: Amount,
}

/// A member's commitment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitmentView {
    /// The commitment: a hash that hides the answer until the reveal.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The index of the block that contains the CALL_COMMIT.
    pub block_index: u64,
    /// The position of the CALL_COMMIT in that block.
    pub position: u32,
}

impl From<Commitment> for CommitmentView {
    fn from(commitment: Commitment) -> Self {
        let Commitment { hash, tx } = commitment;
        Self { hash, block_index: tx.height, position: tx.position }
    }
}

/// The answer that a member revealed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevealView {
    /// The answer. Its `result` is left out if it equals that of the call's `answer`, or is among
    /// the call's `answers`.
    #[serde(flatten)]
    pub answer: AnswerView,
    /// The salt: the secret that the member used in its commitment. Absent if the node did not read
    /// the CALL_REVEAL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub salt: Option<Hash>,
    /// Why the outcome is not `success`, for people. Not part of the commitment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The index of the block that contains the CALL_REVEAL.
    pub block_index: u64,
    /// The position of the CALL_REVEAL in that block.
    pub position: u32,
}

/// An appeal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppealView {
    /// The address of the appellant.
    #[schemars(with = "AddressText")]
    pub appellant: Address,
    /// The number of members that the second round should have.
    pub size: u8,
    /// What the appellant paid for the work of the second round.
    #[schemars(with = "AmountText")]
    pub payment: Amount,
    /// The appellant's deposit.
    #[schemars(with = "AmountText")]
    pub deposit: Amount,
    /// The index of the block that contains the CALL_APPEAL.
    pub block_index: u64,
    /// The position of the CALL_APPEAL in that block.
    pub position: u32,
}

impl From<Appeal> for AppealView {
    fn from(appeal: Appeal) -> Self {
        let Appeal { appellant, tx, size, payment, deposit } = appeal;
        let (block_index, position) = (tx.height, tx.position);
        Self { appellant, size, payment, deposit, block_index, position }
    }
}

/// How the money of a call was divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BillView {
    /// What the members of both rounds were paid.
    #[schemars(with = "AmountText")]
    pub wages: Amount,
    /// The royalty that the agent's owner was paid.
    #[schemars(with = "AmountText")]
    pub royalty_paid: Amount,
    /// What the recipients of conditional payments were paid.
    #[schemars(with = "AmountText")]
    pub conditional_paid: Amount,
    /// What was returned to the requester.
    #[schemars(with = "AmountText")]
    pub refund: Amount,
    /// What was paid or returned to the appellant.
    #[schemars(with = "AmountText")]
    pub appellant_paid: Amount,
    /// What was burned, including burned penalties.
    #[schemars(with = "AmountText")]
    pub burned: Amount,
    /// What members lost from their bonds.
    #[schemars(with = "AmountText")]
    pub penalties: Amount,
}

impl From<Bill> for BillView {
    fn from(bill: Bill) -> Self {
        let Bill {
            wages,
            royalty,
            conditional,
            refund,
            appellant,
            burned,
            penalties,
            agreeing: _,
            bond_behind: _,
        } = bill;
        Self {
            wages,
            royalty_paid: royalty,
            conditional_paid: conditional,
            refund,
            appellant_paid: appellant,
            burned,
            penalties,
        }
    }
}
