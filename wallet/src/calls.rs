//! What a call of an agent says of prices and limits, and what follows from it: computed from what is
//! signed, not from what the node says that it comes to (docs/market.md section 5).

use serde_json::Value;
use types::call::{CallLimits, Consensus};
use types::tx::{CallPrices, WorkLimits};
use types::{Amount, Hash, Prices, Usage};

/// Prices and limits of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    prices: Prices,
    limits: CallLimits,
    /// What one member can cost, micro-OMBRA.
    pub budget: Amount,
}

/// Why a node's estimate gives no terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// A price, a limit or a sum is missing, or has another form.
    #[error("the node's estimate has no {0}")]
    Missing(&'static str),
    /// Prices and limits that no account could pay.
    #[error(
        "a member could cost more than the largest amount that exists: lower the prices or the \
         limits"
    )]
    Budget,
}

impl Terms {
    /// Those that a node suggests: the answer of `ombra_estimateCall`.
    ///
    /// # Errors
    /// When a price or a limit is missing, or a member could cost more than any amount of money.
    pub fn suggested(estimate: &Value) -> Result<Self, TermsError> {
        let price = |name| amount_of(&estimate["prices"], name);
        let limit =
            |name: &'static str| estimate["limits"][name].as_u64().ok_or(TermsError::Missing(name));
        let prices = Prices {
            per_call: price("perCall")?,
            prompt_per_m: price("promptPerM")?,
            completion_per_m: price("completionPerM")?,
            fuel_per_g: price("fuelPerG")?,
        };
        let usage = Usage {
            input_tokens: limit("inputTokens")?,
            output_tokens: limit("outputTokens")?,
            fuel: limit("fuel")?,
        };
        let limits = CallLimits { usage, result_bytes: limit("resultBytes")? };
        let budget = u64::try_from(prices.price(&usage)).map_err(|_dear| TermsError::Budget)?;
        Ok(Self { prices, limits, budget: Amount::new(budget) })
    }

    /// The prices as the transaction has them.
    #[must_use]
    pub const fn prices(&self) -> CallPrices {
        let Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g } = self.prices;
        CallPrices { per_call, prompt_per_m, completion_per_m, fuel_per_g }
    }

    /// The limits as the transaction has them.
    #[must_use]
    pub const fn limits(&self) -> WorkLimits {
        let CallLimits { usage, result_bytes } = self.limits;
        let Usage { input_tokens, output_tokens, fuel } = usage;
        WorkLimits { input_tokens, output_tokens, fuel, result_bytes }
    }
}

/// A sum of an estimate: `maxFee`, what the node suggests to hold, or `floor`, the least that the chain
/// takes; both without conditional payments.
///
/// # Errors
/// When the estimate does not have it.
pub fn amount_of(estimate: &Value, name: &'static str) -> Result<Amount, TermsError> {
    let amount = estimate[name].as_str().and_then(|text| Amount::parse(text).ok());
    amount.ok_or(TermsError::Missing(name))
}

/// Who decides a call of an agent where nobody says it: the majority, or, where the answers of two miners
/// cannot be compared, as many as a majority has.
#[must_use]
pub const fn usual_consensus(committee: u8, is_deterministic: bool) -> Consensus {
    if is_deterministic {
        Consensus::Majority
    } else {
        Consensus::Threshold(Consensus::Majority.needed(committee))
    }
}

/// Metadata that are not those that the chain has the hash of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metadata do not have the hash {hash}")]
pub struct OtherMetadata {
    /// The hash, as the node tells it.
    pub hash: String,
}

/// The metadata of an agent in the answer of `ombra_getAgent`.
///
/// # Errors
/// When they are not those that the answer names the hash of.
pub fn metadata(agent: &Value) -> Result<&str, OtherMetadata> {
    let text = agent["metadata"].as_str().unwrap_or_default();
    let hash = agent["version"]["metadataHash"].as_str().unwrap_or_default();
    if Hash::digest(text.as_bytes()).to_string() == hash {
        return Ok(text);
    }
    Err(OtherMetadata { hash: hash.to_owned() })
}

#[cfg(test)]
mod tests {
    //! Whatever a node suggests, what is shown is what is signed.

    use serde_json::json;

    use super::*;

    fn estimate(per_call: &str) -> Value {
        json!({
            "prices": {"perCall": per_call, "promptPerM": "1000", "completionPerM": "2000", "fuelPerG": "0"},
            "limits": {"inputTokens": 500, "outputTokens": 1_000_000, "fuel": 7, "resultBytes": 64},
            "budget": "1",
        })
    }

    #[test]
    fn the_budget_is_computed_from_what_is_signed() {
        let terms = Terms::suggested(&estimate("100")).unwrap();
        assert_eq!(terms.budget, Amount::new(100 + 1 + 2_000), "and not what the node calls it");
        assert_eq!(terms.prices().per_call, Amount::new(100));
        assert_eq!(terms.limits().result_bytes, 64);
        let missing = Terms::suggested(&json!({"prices": {"perCall": "1"}})).unwrap_err();
        assert_eq!(missing.to_string(), "the node's estimate has no promptPerM");
        let dear = Terms::suggested(&estimate(&u64::MAX.to_string())).unwrap_err();
        assert!(dear.to_string().starts_with("a member could cost more"), "{dear}");
    }

    #[test]
    fn metadata_are_those_that_the_chain_has_the_hash_of() {
        let told = |hash: Hash| json!({"metadata": "{}", "version": {"metadataHash": hash}});
        assert_eq!(Ok("{}"), metadata(&told(Hash::digest(b"{}"))));
        assert!(metadata(&told(Hash::ZERO)).is_err());
        assert!(metadata(&json!({})).is_err());
    }

    #[test]
    fn where_answers_cannot_be_compared_as_many_decide_as_a_majority_has() {
        assert_eq!(Consensus::Majority, usual_consensus(3, true));
        assert_eq!(Consensus::Threshold(2), usual_consensus(3, false));
        assert_eq!(Consensus::Threshold(3), usual_consensus(5, false));
    }
}
