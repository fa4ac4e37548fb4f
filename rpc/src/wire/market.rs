//! Queries that requesters make before and after a call: arguments and results of an agent's
//! methods, prices, candidates.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::abi::Selector;
use types::call::{CallLimits, Candidate};
use types::{Address, Amount, Hash, Prices, Usage};

use super::{AddressText, AmountText, CallPricesView, HashText, LimitsView};

/// A method of an agent, and its arguments.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EncodeQuery {
    /// The id of the agent.
    pub agent_id: HashText,
    /// The version of the agent. The latest if absent.
    #[serde(default)]
    pub version: Option<String>,
    /// The name of the method, or its canonical signature.
    pub method: String,
    /// The arguments: an array by position, or an object by name. No arguments if absent.
    #[serde(default)]
    #[schemars(with = "Option<ArgumentsText>")]
    pub args: Option<Box<RawValue>>,
}

/// Values of Solidity types: an array by position, or an object by name.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentsText;

impl JsonSchema for ArgumentsText {
    fn schema_name() -> Cow<'static, str> {
        "Arguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Write integers as numbers or decimal strings, bytes as hex with `0x`, addresses as 40 hex characters, and tuples as arrays or objects.",
            "type": ["array", "object"],
        })
    }
}

/// The payload of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EncodedCall {
    /// The payload in hex with `0x`: the selector followed by the encoded arguments.
    pub payload: String,
    /// The selector of the method.
    #[schemars(with = "String")]
    #[serde(serialize_with = "shown")]
    pub selector: Selector,
    /// The canonical signature of the method.
    pub signature: String,
    /// The version of the agent.
    pub version: String,
}

fn shown<S: serde::Serializer>(selector: &Selector, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(selector)
}

/// A method of an agent, and a member's result.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecodeQuery {
    /// The id of the agent.
    pub agent_id: HashText,
    /// The version of the agent. The latest if absent.
    #[serde(default)]
    pub version: Option<String>,
    /// The name of the method, or its canonical signature.
    pub method: String,
    /// The result in hex with `0x`.
    pub result: String,
}

/// The values in the result of a method.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecodedResult {
    /// The outputs in order.
    #[schemars(with = "Vec<DecodedValue>")]
    pub values: Box<RawValue>,
    /// The canonical signature of the method.
    pub signature: String,
    /// The version of the agent.
    pub version: String,
}

/// An output with its name and type.
#[derive(Clone, Debug, JsonSchema)]
pub struct DecodedValue {
    /// The name of the output. Empty if it has none.
    pub name: String,
    /// The canonical type of the output.
    #[schemars(rename = "type")]
    pub of_type: String,
    /// The value. Integers are decimal strings, bytes are hex with `0x`, addresses are 40 hex
    /// characters, and a tuple is an object if all of its components have names, otherwise an
    /// array.
    pub value: serde_json::Value,
}

/// A call whose cost to estimate.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EstimateQuery {
    /// The id of the agent.
    pub agent_id: HashText,
    /// The version of the agent. The latest if absent.
    #[serde(default)]
    pub version: Option<String>,
    /// The number of committee members: an odd number up to 15. 3 if absent.
    #[serde(default)]
    pub committee_size: Option<u8>,
    /// The number of members that must agree. If absent, the `majority` decides.
    #[serde(default)]
    pub threshold: Option<u8>,
    /// Whether the decision can be appealed. False if absent.
    #[serde(default)]
    pub appealable: Option<bool>,
    /// The payload in hex with `0x`. The node uses its size to suggest limits.
    #[serde(default)]
    pub payload: Option<String>,
    /// The limits on the work of each member. The node suggests those that are absent.
    #[serde(default)]
    pub limits: Option<LimitsQuery>,
    /// The prices at which the call would pay each member. If absent, the node suggests prices that
    /// enough miners accept.
    #[serde(default)]
    pub prices: Option<PricesQuery>,
}

/// Limits on the work that one member does for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitsQuery {
    /// The maximum number of input tokens.
    #[serde(default)]
    pub input_tokens: Option<u64>,
    /// The maximum number of output tokens.
    #[serde(default)]
    pub output_tokens: Option<u64>,
    /// The maximum number of units of fuel.
    #[serde(default)]
    pub fuel: Option<u64>,
    /// The maximum size of the result in bytes.
    #[serde(default)]
    pub result_bytes: Option<u64>,
}

impl LimitsQuery {
    /// These limits, with `suggested` in place of those that are absent.
    pub(crate) fn or(self, suggested: CallLimits) -> CallLimits {
        let Self { input_tokens, output_tokens, fuel, result_bytes } = self;
        let CallLimits { usage, result_bytes: bytes } = suggested;
        CallLimits {
            usage: Usage {
                input_tokens: input_tokens.unwrap_or(usage.input_tokens),
                output_tokens: output_tokens.unwrap_or(usage.output_tokens),
                fuel: fuel.unwrap_or(usage.fuel),
            },
            result_bytes: result_bytes.unwrap_or(bytes),
        }
    }
}

/// The prices that a call pays to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PricesQuery {
    /// The fixed price of a call, independent of the work.
    pub per_call: AmountText,
    /// The price of a million input tokens.
    pub prompt_per_m: AmountText,
    /// The price of a million output tokens.
    pub completion_per_m: AmountText,
    /// The price of a billion units of fuel.
    pub fuel_per_g: AmountText,
}

impl From<PricesQuery> for Prices {
    fn from(prices: PricesQuery) -> Self {
        let PricesQuery { per_call, prompt_per_m, completion_per_m, fuel_per_g } = prices;
        Self {
            per_call: per_call.0,
            prompt_per_m: prompt_per_m.0,
            completion_per_m: completion_per_m.0,
            fuel_per_g: fuel_per_g.0,
        }
    }
}

/// What a call would cost now, and how many miners could be drawn for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EstimateView {
    /// The id of the agent.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// The version of the agent.
    pub version: String,
    /// The number of committee members.
    pub committee_size: u8,
    /// The prices that you gave, or those that the node suggests.
    pub prices: CallPricesView,
    /// The limits that you gave, or those that the node suggests.
    pub limits: LimitsView,
    /// The royalty that the agent's owner gets for a success.
    #[schemars(with = "AmountText")]
    pub royalty: Amount,
    /// The most that one member's work can cost: its price at the limits.
    #[schemars(with = "AmountText")]
    pub budget: Amount,
    /// The smallest valid `maxFee`, without conditional payments.
    #[schemars(with = "AmountText")]
    pub floor: Amount,
    /// The recommended `maxFee`, without conditional payments. The requester gets back what the
    /// call does not use.
    #[schemars(with = "AmountText")]
    pub max_fee: Amount,
    /// The part of each member's bond that the call locks.
    #[schemars(with = "AmountText")]
    pub lock: Amount,
    /// The number of eligible miners that the election needs.
    pub needed: u64,
    /// The number of miners that are eligible at these prices now.
    pub eligible: u64,
    /// The number of miners that would take part in the draw but leave their seat empty, because
    /// they are busy or too much of their bond would be locked.
    pub full: u64,
    /// The number of miners that offer all executors that the agent needs, at any prices.
    pub offering: u64,
    /// Whether enough miners are eligible.
    pub enough: bool,
    /// What recent calls of the agent took. Absent if none of them succeeded by a majority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical: Option<TypicalView>,
}

/// Medians over the agent's most recent calls that succeeded by a majority, at most 32 of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TypicalView {
    /// The number of these calls.
    pub calls: u64,
    /// The number of input tokens on which the members agreed.
    pub input_tokens: u64,
    /// The number of output tokens on which the members agreed.
    pub output_tokens: u64,
    /// The units of fuel on which the members agreed.
    pub fuel: u64,
    /// The block time from the request to the decision of the first round, in milliseconds.
    pub latency_ms: u64,
}

/// The candidates from which the members of a call were drawn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElectionView {
    /// The id of the call.
    #[schemars(with = "HashText")]
    pub call_id: Hash,
    /// The round: 0, or 1 after an appeal.
    pub round: u8,
    /// The index of the block that held the election. Its randomness decided the draw.
    pub block_index: u64,
    /// The miners that took part in the draw, in the order of addresses. Their hash is the round's
    /// `candidatesHash`.
    pub candidates: Vec<CandidateView>,
}

/// A miner that took part in a draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateView {
    /// The address of the miner.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The miner's weight in the draw, which is its bond.
    #[schemars(with = "AmountText")]
    pub weight: Amount,
    /// Whether the miner's seat would have stayed empty, because it was busy or too little of its
    /// bond was free.
    pub left_out: bool,
}

impl From<Candidate> for CandidateView {
    fn from(candidate: Candidate) -> Self {
        let Candidate { miner, weight, is_full } = candidate;
        Self { address: miner, weight, left_out: is_full }
    }
}
