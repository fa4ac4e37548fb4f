//! The parameters that votes can change, and what places in blocks cost.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use types::bid::MAX_BASE_FEE;
use types::{Address, Amount};

use super::{AddressText, AmountText};
use crate::ports::{NextRules, NextValue, ParamState, ParamVoter, ParamVotes};

/// What `ombra_feeEstimate` answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InclusionEstimate {
    /// The next block, which the estimate is for.
    pub block_index: u64,
    /// Whether places in that block cost anything: whether fork v7 is active then.
    pub active: bool,
    /// The first block in which they cost something; absent while none is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_from: Option<u64>,
    /// The base fee of that block, in micro-OMBRA per KiB; 0 before v7.
    #[schemars(with = "AmountText")]
    pub base_fee: Amount,
    /// The bytes of a transaction that the estimate is for: its payload and 64 more.
    pub size: u64,
    /// What so many bytes cost in that block.
    #[schemars(with = "AmountText")]
    pub inclusion_fee: Amount,
    /// A `maxBaseFee` for a transaction that may wait: twice the base fee, and at least what a
    /// transaction without the member allows.
    #[schemars(with = "AmountText")]
    pub suggested_max_base_fee: Amount,
    /// What the latest blocks tipped.
    pub tips: TipsView,
}

impl InclusionEstimate {
    /// The estimate by the rules of the next block; `price` is what so many bytes cost at a base fee.
    pub(crate) fn new(
        rules: &NextRules,
        size: u64,
        tips: TipsView,
        price: impl FnOnce(u64, u64) -> Amount,
    ) -> Self {
        let base_fee = rules.base_fee.unwrap_or_default();
        Self {
            block_index: rules.height,
            active: rules.base_fee.is_some(),
            active_from: rules.v7_from,
            base_fee: Amount::new(base_fee),
            size,
            inclusion_fee: price(size, base_fee),
            suggested_max_base_fee: Amount::new(base_fee.saturating_mul(2)).max(MAX_BASE_FEE),
            tips,
        }
    }
}

/// What transactions of the latest blocks tipped, the fees of transfers among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TipsView {
    /// A tenth of them tipped this or less.
    #[schemars(with = "AmountText")]
    pub p10: Amount,
    /// Half of them tipped this or less.
    #[schemars(with = "AmountText")]
    pub p50: Amount,
    /// Nine tenths of them tipped this or less.
    #[schemars(with = "AmountText")]
    pub p90: Amount,
    /// How many transactions were looked at; with 0 the tips are 0.
    pub sample: u64,
    /// In how many blocks; at most 20.
    pub blocks: u64,
}

/// What `ombra_params` answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamsView {
    /// Whether votes can change them in the next block: whether fork v7 is active then.
    pub active: bool,
    /// The next block, whose values are told.
    pub block_index: u64,
    /// The power of all validators of the next block.
    pub total_power: String,
    /// The parameters that votes can change.
    pub params: Vec<ParamView>,
}

/// A parameter that votes can change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamView {
    /// Its name.
    pub name: String,
    /// Its value in the next block, as votes name it: fees in micro-OMBRA, times in milliseconds.
    pub value: u64,
    /// The least value that may be voted for.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    /// The value that it will have; absent while none is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextValueView>,
    /// The open votes by value and height, in this order.
    pub votes: Vec<ParamVotesView>,
}

/// A value that a parameter will have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextValueView {
    /// The value.
    pub value: u64,
    /// The first block with it.
    pub height: u64,
}

/// The votes for one value from one height on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamVotesView {
    /// The value.
    pub value: u64,
    /// The first block that shall have it.
    pub height: u64,
    /// The power of those who vote for it.
    pub power: String,
    /// Who votes for it, in order of addresses.
    pub voters: Vec<ParamVoterView>,
}

/// A validator that votes for a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamVoterView {
    /// The validator.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// Its power in the set of the next block.
    pub power: u64,
    /// The block with the vote.
    pub block_index: u64,
}

impl ParamsView {
    /// The view of what stands in the state.
    #[must_use]
    pub fn new(votes: ParamVotes, rules: &NextRules) -> Self {
        let ParamVotes { params, total_power } = votes;
        Self {
            active: rules.base_fee.is_some(),
            block_index: rules.height,
            total_power: total_power.to_string(),
            params: params.into_iter().map(ParamView::from).collect(),
        }
    }
}

impl From<ParamState> for ParamView {
    fn from(state: ParamState) -> Self {
        let ParamState { name, value, min, max, next, votes } = state;
        let next = next.map(|NextValue { value, height }| NextValueView { value, height });
        let mut by_value: BTreeMap<(u64, u64), Vec<ParamVoterView>> = BTreeMap::new();
        for ParamVoter { address, power, value, height, block_index } in votes {
            let voters = by_value.entry((value, height)).or_default();
            voters.push(ParamVoterView { address, power, block_index });
        }
        let votes = by_value.into_iter().map(|((value, height), voters)| {
            let powers = voters.iter().map(|voter| u128::from(voter.power));
            let power = powers.fold(0, u128::saturating_add).to_string();
            ParamVotesView { value, height, power, voters }
        });
        Self { name: name.to_owned(), value, min, max, next, votes: votes.collect() }
    }
}
