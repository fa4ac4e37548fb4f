//! Offers of miners for executors.

use schemars::JsonSchema;
use serde::Serialize;
use types::agent::ExecutorId;
use types::{Address, Amount, Offer, Prices};

use super::{AddressText, AmountText, ExecutorText};
use crate::ports::OfferEntry;

/// What a miner works for, for one executor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferView {
    /// The miner.
    #[schemars(with = "AddressText")]
    pub miner: Address,
    /// The executor.
    #[schemars(with = "ExecutorText")]
    pub executor: ExecutorId,
    /// At how many calls at once the miner works.
    pub capacity: u64,
    /// At how many it works now.
    pub open: u32,
    /// The least for a call, whatever it takes.
    #[schemars(with = "AmountText")]
    pub per_call: Amount,
    /// The least for a million tokens that are read.
    #[schemars(with = "AmountText")]
    pub prompt_per_m: Amount,
    /// The least for a million tokens that are written.
    #[schemars(with = "AmountText")]
    pub completion_per_m: Amount,
    /// The least for a billion units of fuel.
    #[schemars(with = "AmountText")]
    pub fuel_per_g: Amount,
    /// The miner's bond, by which it is drawn.
    #[schemars(with = "AmountText")]
    pub bonded: Amount,
    /// The part of it that is not locked.
    #[schemars(with = "AmountText")]
    pub free: Amount,
    /// Whether it is among the offers that count for its executor; absent unless only those for one
    /// executor were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<bool>,
}

impl From<OfferEntry> for OfferView {
    fn from(entry: OfferEntry) -> Self {
        let OfferEntry { miner, executor, offer, bond, open, counts } = entry;
        let Offer { capacity, prices } = offer;
        let Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g } = prices;
        Self {
            miner,
            executor,
            capacity,
            open,
            per_call,
            prompt_per_m,
            completion_per_m,
            fuel_per_g,
            bonded: bond.bonded,
            free: bond.free(),
            counts,
        }
    }
}
