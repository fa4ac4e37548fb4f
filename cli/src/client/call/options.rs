//! The options of `ombra call` that are more than one word.

use std::str::FromStr;

use types::Amount;
use types::call::{Consensus, When};
use types::tx::OnResult;
use wallet::calls::usual_consensus;

use crate::client::input::{self, Payee};

/// Who decides.
pub(super) fn consensus(text: &str) -> Result<Consensus, String> {
    let threshold = text.strip_prefix("threshold:").map(u8::from_str);
    match (text, threshold) {
        ("majority", _) => Ok(Consensus::Majority),
        (_, Some(Ok(needed))) => Ok(Consensus::Threshold(needed)),
        (_, Some(Err(_)) | None) => Err(format!("{text:?}: expected majority, or threshold:N")),
    }
}

/// Who decides a call of an agent: as it was asked for, or as is usual for agents of its kind. The error says
/// why that cannot be.
pub(super) fn decider(
    asked: Option<Consensus>,
    committee: u8,
    is_deterministic: bool,
) -> Result<Consensus, String> {
    match asked {
        Some(Consensus::Majority) if !is_deterministic => Err(format!(
            "--consensus majority: the agent runs in a container, so the members' counts of work \
             differ; expected threshold:N, N from 1 to {committee}"
        )),
        Some(asked) => Ok(asked),
        None => Ok(usual_consensus(committee, is_deterministic)),
    }
}

/// A conditional payment, and its recipient as it was written.
#[derive(Clone, Debug)]
pub(super) struct Conditional {
    pub(super) payment: OnResult,
    pub(super) payee: Payee,
}

/// A conditional payment: `success:ADDRESS:AMOUNT` or `result:HASH:ADDRESS:AMOUNT`.
pub(super) fn on_result(text: &str) -> Result<Conditional, String> {
    let expected =
        || format!("{text:?}: expected success:ADDRESS:AMOUNT or result:HASH:ADDRESS:AMOUNT");
    let (when, rest) = match text.strip_prefix("success:") {
        Some(rest) => ("success".to_owned(), rest),
        None => {
            let rest = text.strip_prefix("result:").ok_or_else(expected)?;
            let (hash, rest) = rest.split_once(':').ok_or_else(expected)?;
            (format!("result:{hash}"), rest)
        }
    };
    When::parse(&when).ok_or_else(|| format!("{when:?}: expected {}", When::EXPECTED))?;
    // An address may be `dev:3`.
    let (to, amount) = rest.rsplit_once(':').ok_or_else(expected)?;
    let payee = input::payee(to)?;
    let payment = OnResult { when, to: payee.address.into(), amount: input::amount(amount)? };
    Ok(Conditional { payment, payee })
}

/// A price: `perCall=1000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) struct Price {
    pub(in crate::client) name: &'static str,
    pub(in crate::client) amount: Amount,
}

/// A limit: `inputTokens=2000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) struct Limit {
    pub(in crate::client) name: &'static str,
    pub(in crate::client) number: u64,
}

const PRICES: [&str; 4] = ["perCall", "promptPerM", "completionPerM", "fuelPerG"];
const LIMITS: [&str; 4] = ["inputTokens", "outputTokens", "fuel", "resultBytes"];

pub(in crate::client) fn price(text: &str) -> Result<Price, String> {
    let (name, amount) = named(&PRICES, text)?;
    Ok(Price { name, amount: input::amount(amount)? })
}

pub(in crate::client) fn limit(text: &str) -> Result<Limit, String> {
    let (name, number) = named(&LIMITS, text)?;
    let number = number.parse().map_err(|_text| format!("{number:?}: expected a number"))?;
    Ok(Limit { name, number })
}

fn named<'t>(names: &[&'static str], text: &'t str) -> Result<(&'static str, &'t str), String> {
    let found = text.split_once('=').and_then(|(name, value)| {
        let name = names.iter().find(|it| **it == name)?;
        Some((*name, value))
    });
    found.ok_or_else(|| format!("{text:?}: expected NAME=VALUE, NAME one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    //! What is taken, and what is not.

    use types::Amount;
    use types::call::Consensus;

    use super::{consensus, decider, limit, on_result, price};

    #[test]
    fn the_majority_or_a_number_of_members_decides() {
        assert_eq!(consensus("majority"), Ok(Consensus::Majority));
        assert_eq!(consensus("threshold:2"), Ok(Consensus::Threshold(2)));
        for text in ["", "threshold", "threshold:", "threshold:x", "two"] {
            assert!(consensus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_majority_decides_about_an_agent_in_a_container() {
        let (majority, two) = (Some(Consensus::Majority), Some(Consensus::Threshold(2)));
        let why = decider(majority, 3, false).unwrap_err();
        assert!(why.ends_with("expected threshold:N, N from 1 to 3"), "{why}");
        assert_eq!(decider(two, 3, false), Ok(Consensus::Threshold(2)));
        assert_eq!(decider(None, 5, false), Ok(Consensus::Threshold(3)));
        assert_eq!(decider(None, 5, true), Ok(Consensus::Majority));
        assert_eq!(decider(majority, 3, true), Ok(Consensus::Majority));
        assert_eq!(decider(two, 3, true), Ok(Consensus::Threshold(2)));
    }

    #[test]
    fn a_conditional_payment_names_a_case_an_account_and_an_amount() {
        let paid = on_result("success:dev:0:5ombra").unwrap().payment;
        assert_eq!((paid.when.as_str(), paid.amount), ("success", Amount::new(5_000_000)));
        assert_eq!(paid.to.text, "de133ca6f509c74f6e2e849403cc461d2d5b3e3c");
        let hash = "ab".repeat(32);
        let paid = on_result(&format!("result:{hash}:dev:0:1")).unwrap().payment;
        assert_eq!(paid.when, format!("result:{hash}"));
        for text in ["success", "success:dev:0", "failure:dev:0:1", "result:ab:dev:0:1"] {
            assert!(on_result(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prices_and_limits_have_the_names_of_the_transaction() {
        assert_eq!(price("perCall=1ombra").map(|it| it.amount), Ok(Amount::new(1_000_000)));
        assert_eq!(limit("fuel=7").map(|it| (it.name, it.number)), Ok(("fuel", 7)));
        assert!(price("fuel=7").is_err() && limit("fuel").is_err() && limit("fuel=x").is_err());
    }
}
