//! The parts of a call: prices, terms, rounds, members, answers, bill.

use schemars::JsonSchema;
use serde::Serialize;
use types::call::{
    Answer, Appeal, Bill, Call, CallLimits, CallRound, CallTerms, Commitment, Conditional, Group,
};
use types::{Address, Amount, Hash, Prices, Usage};

use crate::wire::{AddressText, AmountText, HashText};

/// What a call pays to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallPricesView {
    /// For the call, whatever it takes.
    #[schemars(with = "AmountText")]
    pub per_call: Amount,
    /// For a million tokens that are read.
    #[schemars(with = "AmountText")]
    pub prompt_per_m: Amount,
    /// For a million tokens that are written.
    #[schemars(with = "AmountText")]
    pub completion_per_m: Amount,
    /// For a billion units of fuel.
    #[schemars(with = "AmountText")]
    pub fuel_per_g: Amount,
}

impl From<Prices> for CallPricesView {
    fn from(prices: Prices) -> Self {
        let Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g } = prices;
        Self { per_call, prompt_per_m, completion_per_m, fuel_per_g }
    }
}

/// What the work on a call may take, nested agents included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitsView {
    /// The most tokens that are read.
    pub input_tokens: u64,
    /// The most tokens that are written.
    pub output_tokens: u64,
    /// The most units of fuel.
    pub fuel: u64,
    /// The most bytes of the result.
    pub result_bytes: u64,
}

impl From<CallLimits> for LimitsView {
    fn from(limits: CallLimits) -> Self {
        let CallLimits { usage: Usage { input_tokens, output_tokens, fuel }, result_bytes } =
            limits;
        Self { input_tokens, output_tokens, fuel, result_bytes }
    }
}

/// The numbers that hold for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TermsView {
    /// What the agent's owner gets for a success.
    #[schemars(with = "AmountText")]
    pub royalty: Amount,
    /// The least bond of a member.
    #[schemars(with = "AmountText")]
    pub min_bond: Amount,
    /// The penalty for dissent, D.
    #[schemars(with = "AmountText")]
    pub dissent_penalty: Amount,
    /// The penalty for no commitment.
    #[schemars(with = "AmountText")]
    pub absence_penalty: Amount,
    /// The penalty for a commitment without a reveal.
    #[schemars(with = "AmountText")]
    pub unrevealed_penalty: Amount,
    /// The penalty for an answer outside the group that decided.
    #[schemars(with = "AmountText")]
    pub outside_penalty: Amount,
    /// What each reveal burns.
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

/// A payment that depends on the answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionalView {
    /// When it is made: on `success`, or on `result:` and the hash of a result.
    pub when: String,
    /// Who gets it.
    #[schemars(with = "AddressText")]
    pub to: Address,
    /// How much.
    #[schemars(with = "AmountText")]
    pub amount: Amount,
    /// Whether it was made; absent before the call is settled.
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
    /// How many members it should have.
    pub size: u8,
    /// How many were drawn; the other seats are empty.
    pub elected: u8,
    /// How many have committed.
    pub committed: u8,
    /// How many have revealed.
    pub revealed: u8,
    /// The block that drew them, whose randomness was used.
    pub elected_in: u64,
    /// That block's time.
    pub elected_at: u64,
    /// SHA-256 over who could be drawn, with which weight.
    #[schemars(with = "HashText")]
    pub candidates_hash: Hash,
    /// Block time of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<u64>,
    /// The group that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupView>,
    /// How many members belong to it.
    pub agreeing: u8,
    /// Its members in the order of the draw; absent in lists.
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
    /// `success` or `failure`.
    pub outcome: &'static str,
    /// Where the majority decides: the answer that all of them gave.
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

/// What a member answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerView {
    /// `success`, `failure` of the agent, or `unable` to execute it.
    pub outcome: &'static str,
    /// SHA-256 of the result's bytes.
    #[schemars(with = "HashText")]
    pub result_hash: Hash,
    /// The result as hex with `0x`; absent where it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Units of fuel that were used.
    pub fuel: u64,
    /// SHA-256 of what has to be kept to do the work again.
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

/// The success of a member, in a call that a threshold decided.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberAnswer {
    /// Whose.
    #[schemars(with = "AddressText")]
    pub member: Address,
    /// What it answered.
    #[serde(flatten)]
    pub answer: AnswerView,
}

/// A member of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    /// The miner.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// Which it was in the order of the draw, from 0.
    pub seat: u8,
    /// Its bond when it was drawn.
    #[schemars(with = "AmountText")]
    pub bond: Amount,
    /// What is locked of its bond for the call; was, once the call is settled.
    #[schemars(with = "AmountText")]
    pub lock: Amount,
    /// What it committed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commitment: Option<CommitmentView>,
    /// What it revealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reveal: Option<RevealView>,
    /// Whether it gave the answer that stands; absent before a round is decided, and where no group
    /// decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed: Option<bool>,
    /// What it got.
    #[schemars(with = "AmountText")]
    pub paid: Amount,
    /// What it lost of its bond.
    #[schemars(with = "AmountText")]
    pub penalty: Amount,
}

/// A member's commitment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitmentView {
    /// Hides the answer.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The block with the CALL_COMMIT.
    pub block_index: u64,
    /// Its place in the block.
    pub position: u32,
}

impl From<Commitment> for CommitmentView {
    fn from(commitment: Commitment) -> Self {
        let Commitment { hash, tx } = commitment;
        Self { hash, block_index: tx.height, position: tx.position }
    }
}

/// What a member revealed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevealView {
    /// The answer. Its result is left out where it is that of the call's `answer` or among its
    /// `answers`.
    #[serde(flatten)]
    pub answer: AnswerView,
    /// With it the answer opens the member's commitment; left out where the CALL_REVEAL was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub salt: Option<Hash>,
    /// Why there is no success, for people; in no hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The block with the CALL_REVEAL.
    pub block_index: u64,
    /// Its place in the block.
    pub position: u32,
}

/// An appeal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppealView {
    /// Who appealed.
    #[schemars(with = "AddressText")]
    pub appellant: Address,
    /// How many members the second round should have.
    pub size: u8,
    /// What it paid for their work.
    #[schemars(with = "AmountText")]
    pub payment: Amount,
    /// What it laid down.
    #[schemars(with = "AmountText")]
    pub deposit: Amount,
    /// The block with the CALL_APPEAL.
    pub block_index: u64,
    /// Its place in the block.
    pub position: u32,
}

impl From<Appeal> for AppealView {
    fn from(appeal: Appeal) -> Self {
        let Appeal { appellant, tx, size, payment, deposit } = appeal;
        let (block_index, position) = (tx.height, tx.position);
        Self { appellant, size, payment, deposit, block_index, position }
    }
}

/// What became of the money of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BillView {
    /// To the members of both rounds.
    #[schemars(with = "AmountText")]
    pub wages: Amount,
    /// To the agent's owner.
    #[schemars(with = "AmountText")]
    pub royalty_paid: Amount,
    /// To those that conditional payments name.
    #[schemars(with = "AmountText")]
    pub conditional_paid: Amount,
    /// Back to the requester.
    #[schemars(with = "AmountText")]
    pub refund: Amount,
    /// To the appellant.
    #[schemars(with = "AmountText")]
    pub appellant_paid: Amount,
    /// Burned, of penalties too.
    #[schemars(with = "AmountText")]
    pub burned: Amount,
    /// What members lost of their bonds.
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
