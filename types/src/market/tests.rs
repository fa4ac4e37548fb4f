//! The published prices of usage, and what covers what.

use super::*;
use crate::testing::{MARKET, assert_bytes, numbers};

fn prices(per_call: u64, prompt_per_m: u64, completion_per_m: u64, fuel_per_g: u64) -> Prices {
    let [per_call, prompt_per_m, completion_per_m, fuel_per_g] =
        [per_call, prompt_per_m, completion_per_m, fuel_per_g].map(Amount::new);
    Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g }
}

fn usage(input_tokens: u64, output_tokens: u64, fuel: u64) -> Usage {
    Usage { input_tokens, output_tokens, fuel }
}

#[test]
fn usage_costs_what_is_published() {
    let all: serde_json::Value = serde_json::from_str(MARKET).unwrap();
    let vectors = all["prices"].as_array().unwrap();
    assert_eq!(vectors.len(), 6);
    for vector in vectors {
        let prices: Prices = serde_json::from_value(vector["prices"].clone()).unwrap();
        let usage: Usage = serde_json::from_value(vector["usage"].clone()).unwrap();
        let price = prices.price(&usage).to_string();
        assert_eq!(price, vector["price"].as_str().unwrap(), "{vector}");
    }
}

#[test]
fn each_product_is_rounded_up_by_itself() {
    let prices = prices(5, 1, 1, 1);
    assert_eq!(prices.price(&usage(0, 0, 0)), 5);
    assert_eq!(prices.price(&usage(1, 0, 0)), 6);
    assert_eq!(prices.price(&usage(1, 1, 1)), 8);
    assert_eq!(prices.price(&usage(1_000_000, 1_000_000, 1_000_000_000)), 8);
    assert_eq!(prices.price(&usage(1_000_001, 1_000_001, 1_000_000_001)), 11);
}

#[test]
fn the_highest_prices_for_the_most_work_have_a_sum() {
    let most = u64::MAX;
    let product = u128::from(most) * u128::from(most);
    let expected =
        u128::from(most) + 2 * product.div_ceil(1_000_000) + product.div_ceil(1_000_000_000);
    assert_eq!(prices(most, most, most, most).price(&usage(most, most, most)), expected);
}

#[test]
fn prices_are_covered_only_if_each_of_them_is() {
    let paid = prices(10, 20, 30, 40);
    assert!(paid.is_covered_by(&paid));
    assert!(prices(0, 0, 0, 0).is_covered_by(&paid));
    let one_above = [(11, 20, 30, 40), (10, 21, 30, 40), (10, 20, 31, 40), (10, 20, 30, 41)];
    for (call, prompt, completion, fuel) in one_above {
        let asked = prices(call, prompt, completion, fuel);
        assert!(!asked.is_covered_by(&paid), "{asked:?}");
    }
}

#[test]
fn an_offer_has_the_bytes_that_databases_hold() {
    let offer = Offer { capacity: 4, prices: prices(1, 2, 3, 5) };
    assert_bytes(&offer, &numbers([4, 1, 2, 3, 5]));
}
