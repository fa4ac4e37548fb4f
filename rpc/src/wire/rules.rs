//! The parameters that votes can change, and the price of a place in a block.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use types::bid::MAX_BASE_FEE;
use types::{Address, Amount};

use super::{AddressText, AmountText};
use crate::ports::{NextRules, NextValue, ParamState, ParamVoter, ParamVotes};

/// The result of `ombra_feeEstimate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InclusionEstimate {
    /// The index of the next block, for which this estimate is.
    pub block_index: u64,
    /// Whether fork v7 is active in that block, so that transactions pay an inclusion fee.
    pub active: bool,
    /// The first block of fork v7. Absent as long as the height is not fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_from: Option<u64>,
    /// The base fee of that block, in micro-OMBRA per KiB; 0 before v7.
    #[schemars(with = "AmountText")]
    pub base_fee: Amount,
    /// The size of the transaction in bytes: its payload and 64 more.
    pub size: u64,
    /// The inclusion fee of a transaction of this size in that block.
    #[schemars(with = "AmountText")]
    pub inclusion_fee: Amount,
    /// A `maxBaseFee` for a transaction that may wait: twice the base fee, and at least 2,000,
    /// which a transaction without `maxBaseFee` allows.
    #[schemars(with = "AmountText")]
    pub suggested_max_base_fee: Amount,
    /// The tips in the latest blocks.
    pub tips: TipsView,
}

impl InclusionEstimate {
    /// The estimate by the rules of the next block; `price` gives the price of a number of bytes at
    /// a base fee.
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

/// Percentiles of the tips in the latest blocks. The fees of transfers count as tips.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TipsView {
    /// The tip that a tenth of the transactions did not exceed.
    #[schemars(with = "AmountText")]
    pub p10: Amount,
    /// The tip that half of the transactions did not exceed.
    #[schemars(with = "AmountText")]
    pub p50: Amount,
    /// The tip that nine tenths of the transactions did not exceed.
    #[schemars(with = "AmountText")]
    pub p90: Amount,
    /// The number of transactions in the sample. If it is 0, the tips are 0.
    pub sample: u64,
    /// The number of blocks that contain these transactions, at most 20.
    pub blocks: u64,
}

/// The result of `ombra_params`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamsView {
    /// Whether fork v7 is active in the next block, so that validators can vote.
    pub active: bool,
    /// The index of the next block, whose values this answer has.
    pub block_index: u64,
    /// The total voting power of the validators that decide the next block.
    pub total_power: String,
    /// The parameters that votes can change.
    pub params: Vec<ParamView>,
}

/// A parameter that votes can change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamView {
    /// The name of the parameter.
    pub name: String,
    /// The value in the next block. Fees are in micro-OMBRA and times in milliseconds, as in votes.
    pub value: u64,
    /// The smallest value that validators may vote for.
    pub min: u64,
    /// The largest value that validators may vote for.
    pub max: u64,
    /// The value that is decided for a later block. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextValueView>,
    /// The open votes for each value and height, in ascending order.
    pub votes: Vec<ParamVotesView>,
}

/// A value that is decided for a later block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextValueView {
    /// The new value.
    pub value: u64,
    /// The height of the first block with this value.
    pub height: u64,
}

/// The votes for one value from one height on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamVotesView {
    /// The value that these votes are for.
    pub value: u64,
    /// The height of the first block that should have the value.
    pub height: u64,
    /// The total voting power of the voters.
    pub power: String,
    /// The validators that vote for this value, in the order of addresses.
    pub voters: Vec<ParamVoterView>,
}

/// A validator that votes for a value of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamVoterView {
    /// The address of the validator.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The validator's power in the set that decides the next block.
    pub power: u64,
    /// The index of the block that contains the vote.
    pub block_index: u64,
}

impl ParamsView {
    /// The view of the votes in the state.
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
