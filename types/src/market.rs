//! Prices of the agent market, and what work costs at them (docs/protocol.md section 17).

use serde::{Deserialize, Serialize};

use crate::Amount;

/// Tokens for which `promptPerM` and `completionPerM` are the price.
const TOKENS: u128 = 1_000_000;
/// Units of fuel for which `fuelPerG` is the price.
const FUEL: u128 = 1_000_000_000;

/// What a miner works for at least, or what a call pays: micro-OMBRA each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// For a call, whatever it takes.
    pub per_call: Amount,
    /// For a million tokens that are read.
    pub prompt_per_m: Amount,
    /// For a million tokens that are written.
    pub completion_per_m: Amount,
    /// For a billion units of fuel.
    pub fuel_per_g: Amount,
}

/// What a miner offers to do for an executor (docs/protocol.md section 5.20).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// At how many calls at once it works, 1 to 64.
    pub capacity: u64,
    /// The lowest prices that it works for.
    pub prices: Prices,
}

/// What the work on a call took, or what it may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Units of fuel.
    pub fuel: u64,
}

impl Prices {
    /// What a member gets for so much work, in micro-OMBRA; at the limits of a call its budget. Each of the
    /// three products is rounded up by itself. It may be more than any amount of money.
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

    /// Whether none of these prices exceeds the one that `paid` has for the same.
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
