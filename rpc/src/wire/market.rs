//! What somebody asks before a call and after its election: arguments and answers by an agent's methods,
//! prices, candidates.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::abi::Selector;
use types::call::{CallLimits, Candidate};
use types::{Address, Amount, Hash, Prices, Usage};

use super::{AddressText, AmountText, CallPricesView, HashText, LimitsView};

/// A method of an agent and its arguments.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EncodeQuery {
    /// The agent.
    pub agent_id: HashText,
    /// The version; the latest if not given.
    #[serde(default)]
    pub version: Option<String>,
    /// The method's name, or its canonical signature.
    pub method: String,
    /// The arguments: an array by position or an object by name; none if not given.
    #[serde(default)]
    #[schemars(with = "Option<ArgumentsText>")]
    pub args: Option<Box<RawValue>>,
}

/// Values of types of Solidity: an array by position, or an object by name.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentsText;

impl JsonSchema for ArgumentsText {
    fn schema_name() -> Cow<'static, str> {
        "Arguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "integers plain or as decimal strings, bytes as 0x and hex, addresses as 40 hex characters, tuples as arrays or objects",
            "type": ["array", "object"],
        })
    }
}

/// A call's payload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EncodedCall {
    /// The selector and the arguments, as hex with `0x`.
    pub payload: String,
    /// The selector.
    #[schemars(with = "String")]
    #[serde(serialize_with = "shown")]
    pub selector: Selector,
    /// The canonical signature.
    pub signature: String,
    /// The version of the agent.
    pub version: String,
}

fn shown<S: serde::Serializer>(selector: &Selector, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(selector)
}

/// A method of an agent and what a member answered.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecodeQuery {
    /// The agent.
    pub agent_id: HashText,
    /// The version; the latest if not given.
    #[serde(default)]
    pub version: Option<String>,
    /// The method's name, or its canonical signature.
    pub method: String,
    /// The result, as hex with `0x`.
    pub result: String,
}

/// What a method answered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecodedResult {
    /// The outputs in order.
    #[schemars(with = "Vec<DecodedValue>")]
    pub values: Box<RawValue>,
    /// The canonical signature.
    pub signature: String,
    /// The version of the agent.
    pub version: String,
}

/// A value with its name and type.
#[derive(Clone, Debug, JsonSchema)]
pub struct DecodedValue {
    /// The output's name; empty if it has none.
    pub name: String,
    /// Its canonical type.
    #[schemars(rename = "type")]
    pub of_type: String,
    /// The value: integers as decimal strings, bytes as 0x and hex, addresses as 40 hex characters, tuples
    /// as objects if all components have names, else as arrays.
    pub value: serde_json::Value,
}

/// A call that somebody means to make.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EstimateQuery {
    /// The agent.
    pub agent_id: HashText,
    /// The version; the latest if not given.
    #[serde(default)]
    pub version: Option<String>,
    /// How many members: an odd number up to 15; 3 if not given.
    #[serde(default)]
    pub committee_size: Option<u8>,
    /// With the consensus `threshold`: how many members decide; the `majority` decides if not given.
    #[serde(default)]
    pub threshold: Option<u8>,
    /// Whether the decision can be appealed; false if not given.
    #[serde(default)]
    pub appealable: Option<bool>,
    /// The payload, as hex with `0x`: its size counts for the limits that are suggested.
    #[serde(default)]
    pub payload: Option<String>,
    /// What the work may take; suggested if not given.
    #[serde(default)]
    pub limits: Option<LimitsQuery>,
    /// What the call would pay; what enough miners accept if not given.
    #[serde(default)]
    pub prices: Option<PricesQuery>,
}

/// What the work on a call may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitsQuery {
    /// The most tokens that are read.
    #[serde(default)]
    pub input_tokens: Option<u64>,
    /// The most tokens that are written.
    #[serde(default)]
    pub output_tokens: Option<u64>,
    /// The most units of fuel.
    #[serde(default)]
    pub fuel: Option<u64>,
    /// The most bytes of the result.
    #[serde(default)]
    pub result_bytes: Option<u64>,
}

impl LimitsQuery {
    /// What is given, and what is suggested for the rest.
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

/// What a call pays to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PricesQuery {
    /// For the call, whatever it takes.
    pub per_call: AmountText,
    /// For a million tokens that are read.
    pub prompt_per_m: AmountText,
    /// For a million tokens that are written.
    pub completion_per_m: AmountText,
    /// For a billion units of fuel.
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

/// What a call would cost, and who would work for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EstimateView {
    /// The agent.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// The version.
    pub version: String,
    /// How many members.
    pub committee_size: u8,
    /// What the call should pay.
    pub prices: CallPricesView,
    /// What the work may take.
    pub limits: LimitsView,
    /// What the agent's owner gets for a success.
    #[schemars(with = "AmountText")]
    pub royalty: Amount,
    /// What one member can cost: the price of work at the limits.
    #[schemars(with = "AmountText")]
    pub budget: Amount,
    /// The least `maxFee`, conditional payments not counted.
    #[schemars(with = "AmountText")]
    pub floor: Amount,
    /// The `maxFee` to give, conditional payments not counted: what is not used comes back.
    #[schemars(with = "AmountText")]
    pub max_fee: Amount,
    /// What is locked of each member's bond.
    #[schemars(with = "AmountText")]
    pub lock: Amount,
    /// How many eligible miners the election needs.
    pub needed: u64,
    /// How many are eligible at these prices now.
    pub eligible: u64,
    /// How many take part in the draw though their seat would stay empty: they are busy, or too little of
    /// their bond is free.
    pub full: u64,
    /// How many offer for everything that the agent needs, at any prices.
    pub offering: u64,
    /// Whether enough are eligible.
    pub enough: bool,
}

/// An election of a call's members, with what it was drawn from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElectionView {
    /// The call.
    #[schemars(with = "HashText")]
    pub call_id: Hash,
    /// 0, or 1 after an appeal.
    pub round: u8,
    /// The block that held it, whose randomness was used.
    pub block_index: u64,
    /// Who took part in the draw, in the order of addresses. Their hash is the round's `candidatesHash`.
    pub candidates: Vec<CandidateView>,
}

/// A miner that took part in a draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateView {
    /// The miner.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// Its bond.
    #[schemars(with = "AmountText")]
    pub weight: Amount,
    /// Whether its seat would have stayed empty: it was busy, or too little of its bond was free.
    pub left_out: bool,
}

impl From<Candidate> for CandidateView {
    fn from(candidate: Candidate) -> Self {
        let Candidate { miner, weight, is_full } = candidate;
        Self { address: miner, weight, left_out: is_full }
    }
}
