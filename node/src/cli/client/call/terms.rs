//! What a call says of prices and limits, and what follows from it: computed from what is signed, not from
//! what the node says that it comes to.

use serde_json::Value;
use types::call::CallLimits;
use types::tx::{CallPrices, WorkLimits};
use types::{Amount, Prices, Usage};

use crate::cli::client::CliError;
use crate::cli::client::output::ombra;

/// Without `--max-fee` no more is held than this, conditional payments not counted, whatever the node says:
/// 10 OMBRA.
const HELD_MAX: Amount = Amount::new(10_000_000);

/// Prices and limits of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    prices: Prices,
    limits: CallLimits,
    /// What one member can cost.
    pub(super) budget: Amount,
}

impl Terms {
    /// Those that a node suggests.
    ///
    /// # Errors
    /// When a price or a limit is missing, or a member could cost more than any amount of money.
    pub(super) fn suggested(estimate: &Value) -> Result<Self, CliError> {
        let unread = |what: &str| CliError::Failed(format!("the node's estimate has no {what}"));
        let price = |name: &str| {
            let text = estimate["prices"][name].as_str();
            text.and_then(|text| Amount::parse(text).ok()).ok_or_else(|| unread(name))
        };
        let limit = |name: &str| estimate["limits"][name].as_u64().ok_or_else(|| unread(name));
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
        let budget = u64::try_from(prices.price(&usage)).map(Amount::new).map_err(|_budget| {
            let text =
                "a member could cost more than any amount of money: lower --price or --limit";
            CliError::Usage(text.to_owned())
        })?;
        Ok(Self { prices, limits, budget })
    }

    /// The prices as the transaction has them.
    pub(super) const fn prices(&self) -> CallPrices {
        let Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g } = self.prices;
        CallPrices { per_call, prompt_per_m, completion_per_m, fuel_per_g }
    }

    /// The limits as the transaction has them.
    pub(super) const fn limits(&self) -> WorkLimits {
        let CallLimits { usage, result_bytes } = self.limits;
        let Usage { input_tokens, output_tokens, fuel } = usage;
        WorkLimits { input_tokens, output_tokens, fuel, result_bytes }
    }
}

/// What is held for a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    /// What the user named.
    pub(super) wanted: Option<Amount>,
    /// The least that the chain takes, as the node says, conditional payments not counted.
    pub(super) floor: Amount,
    /// What the node suggests, conditional payments not counted.
    pub(super) suggested: Amount,
    /// The conditional payments.
    pub(super) conditional: Amount,
}

impl Holding {
    /// What to hold.
    ///
    /// # Errors
    /// When the user named too little, or the node suggests more than is held unasked.
    pub(super) fn max_fee(&self) -> Result<Amount, CliError> {
        let Self { wanted, floor, suggested, conditional } = *self;
        let with_conditional = |amount: Amount| {
            amount.checked_add(conditional).ok_or_else(|| {
                CliError::Usage("the call would cost more than any amount of money".to_owned())
            })
        };
        let least = with_conditional(floor)?;
        match wanted {
            Some(wanted) if wanted < least => {
                let (wanted, least) = (ombra(wanted), ombra(least));
                Err(CliError::Usage(format!("--max-fee {wanted}, expected at least {least}")))
            }
            Some(wanted) => Ok(wanted),
            None if suggested > HELD_MAX => {
                let (fee, most) = (ombra(with_conditional(suggested)?), ombra(HELD_MAX));
                Err(CliError::Usage(format!(
                    "by the node's estimate the call would hold {fee}, and no more than {most} besides \
                     conditional payments is held unasked: give --max-fee"
                )))
            }
            None => with_conditional(suggested),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Whatever a node suggests, what is shown is what is signed, and a lot is held only for whoever asks.

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

    fn holding(wanted: Option<u64>, suggested: u64) -> Holding {
        Holding {
            wanted: wanted.map(Amount::new),
            floor: Amount::new(100),
            suggested: Amount::new(suggested),
            conditional: Amount::new(50_000_000),
        }
    }

    #[test]
    fn a_node_cannot_have_much_held_unasked() {
        assert_eq!(holding(None, 10_000_000).max_fee().unwrap(), Amount::new(60_000_000));
        let error = holding(None, 10_000_001).max_fee().unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("give --max-fee"), "{error}");
        assert_eq!(
            holding(Some(90_000_000), 10_000_001).max_fee().unwrap(),
            Amount::new(90_000_000)
        );
        assert!(holding(Some(50_000_099), 200).max_fee().is_err(), "below the floor");
        assert!(holding(None, u64::MAX).max_fee().is_err());
    }
}
