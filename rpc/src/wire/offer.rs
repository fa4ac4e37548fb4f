//! Offers of miners for executors.

use schemars::JsonSchema;
use serde::Serialize;
use types::agent::ExecutorId;
use types::{Address, Amount, Offer, Prices};

use super::{AddressText, AmountText, ExecutorText};
use crate::ports::OfferEntry;

/// The offer of a miner for one executor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferView {
    /// The address of the miner.
    #[schemars(with = "AddressText")]
    pub miner: Address,
    /// The id of the executor.
    #[schemars(with = "ExecutorText")]
    pub executor: ExecutorId,
    /// The number of calls that the miner works on at once.
    pub capacity: u64,
    /// The number of calls that the miner works on now.
    pub open: u32,
    /// The lowest fixed price of a call that the miner accepts, independent of the work.
    #[schemars(with = "AmountText")]
    pub per_call: Amount,
    /// The lowest price that the miner accepts for a million input tokens.
    #[schemars(with = "AmountText")]
    pub prompt_per_m: Amount,
    /// The lowest price that the miner accepts for a million output tokens.
    #[schemars(with = "AmountText")]
    pub completion_per_m: Amount,
    /// The lowest price that the miner accepts for a billion units of fuel.
    #[schemars(with = "AmountText")]
    pub fuel_per_g: Amount,
    /// The miner's bond, which is its weight in a draw.
    #[schemars(with = "AmountText")]
    pub bonded: Amount,
    /// The part of the bond that is not locked.
    #[schemars(with = "AmountText")]
    pub free: Amount,
    /// Whether the offer counts in elections for its executor. Present only if you filter by
    /// executor.
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
