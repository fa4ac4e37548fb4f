//! The prices of the agent market, and the cost of work (docs/protocol.md section 17).

use serde::{Deserialize, Serialize};

use crate::Amount;

/// Tokens for which `promptPerM` and `completionPerM` are the price.
const TOKENS: u128 = 1_000_000;
/// Units of fuel for which `fuelPerG` is the price.
const FUEL: u128 = 1_000_000_000;

/// Prices in micro-OMBRA: the lowest that a miner accepts, or those that a call pays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// The fixed price of a call, independent of the work.
    pub per_call: Amount,
    /// The price of a million input tokens.
    pub prompt_per_m: Amount,
    /// The price of a million output tokens.
    pub completion_per_m: Amount,
    /// The price of a billion units of fuel.
    pub fuel_per_g: Amount,
}

/// A miner's offer for an executor (docs/protocol.md section 5.20).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// How many calls the miner works on at once, 1 to 64.
    pub capacity: u64,
    /// The lowest prices that the miner accepts.
    pub prices: Prices,
}

/// An amount of work: what a call used, or may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The units of fuel.
    pub fuel: u64,
}

impl Prices {
    /// What a member gets for this work, in micro-OMBRA; for the limits of a call, its budget. Each
    /// of the three products is rounded up separately. The result may exceed any amount of money.
    #[must_use]
    pub fn price(&self, usage: &Usage) -> u128 {
        let Self { per_call, prompt_per_m, completion_per_m, fuel_per_g } = self;
        let Usage { input_tokens, output_tokens, fuel } = *usage;
        let parts = [
            (input_tokens, prompt_per_m, TOKENS),
            (output_tokens, completion_per_m, TOKENS),
            (fuel, fuel_per_g, FUEL),
        ];
        // Two factors of 64 bits make at most 128, and three of these by a million much less.
        let part = |(count, price, per): (u64, &Amount, u128)| {
            u128::from(count).saturating_mul(u128::from(price.get())).div_ceil(per)
        };
        parts.into_iter().map(part).fold(u128::from(per_call.get()), u128::saturating_add)
    }

    /// Whether none of these prices exceeds the same price in `paid`.
    #[must_use]
    pub fn is_covered_by(&self, paid: &Self) -> bool {
        let Self { per_call, prompt_per_m, completion_per_m, fuel_per_g } = self;
        *per_call <= paid.per_call
            && *prompt_per_m <= paid.prompt_per_m
            && *completion_per_m <= paid.completion_per_m
            && *fuel_per_g <= paid.fuel_per_g
    }
}

#[cfg(test)]
mod tests;
