//! The published series of base fees, and fees of single transactions.

use types::params::BASE_FEE_MAX;
use types::{Amount, Bid, Code, Params};

use super::*;

/// What the specification of the market gives.
const VECTORS: &str = include_str!("vectors.json");

fn number(value: &serde_json::Value) -> u64 {
    value.as_u64().unwrap()
}

fn vectors(name: &str) -> Vec<serde_json::Value> {
    let all: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
    all[name].as_array().unwrap().clone()
}

#[test]
fn the_base_fee_follows_the_published_series() {
    // The series were made with this floor.
    let params = Params { base_fee_floor: 50, ..Params::default() };
    for series in vectors("baseFee") {
        let mut base_fee = number(&series["from"]);
        let blocks = series["sizes_work"].as_array().unwrap().iter();
        for (block, expected) in blocks.zip(series["then"].as_array().unwrap()) {
            let used = Used { bytes: number(&block[0]), work: number(&block[1]) };
            base_fee = next_base_fee(base_fee, used, &params);
            assert_eq!(base_fee, number(expected), "{}", series["note"]);
        }
    }
}

#[test]
fn the_inclusion_fee_is_rounded_up_as_published() {
    for vector in vectors("inclusionFee") {
        let size = number(&vector["payloadBytes"]) + 64;
        let fee = inclusion_fee(size, number(&vector["baseFee"]));
        assert_eq!(fee.to_string(), vector["fee"].as_str().unwrap(), "{vector}");
    }
    assert_eq!(inclusion_fee(u64::MAX, u64::MAX), Amount::MAX, "no overflow");
}

#[test]
fn the_base_fee_keeps_to_its_floor_and_its_ceiling() {
    let params = Params::default();
    assert_eq!(next_base_fee(10, Used::default(), &params), 10);
    let raised = Params { base_fee_floor: 100, ..Params::default() };
    assert_eq!(next_base_fee(10, Used::default(), &raised), 100, "a raised floor holds at once");
    let full = Used { bytes: u64::MAX, work: u64::MAX };
    assert_eq!(next_base_fee(BASE_FEE_MAX, full, &params), BASE_FEE_MAX);
}

#[test]
fn a_bid_below_the_base_fee_waits_and_the_pool_sets_aside_what_the_bid_allows() {
    let bid = |highest| Bid { max_base_fee: Some(Amount::new(highest)), tip: None };
    let price = Price { base_fee: 100, reserve: Some(400) };
    let rejection = Price::of_block(100).inclusion(&bid(99), 1_024).unwrap_err();
    assert_eq!(rejection.code(), Code::FeeAboveMax);
    assert_eq!(
        rejection.message(),
        "Base fee above maxBaseFee: maxBaseFee is 99, expected at least 100, the base fee"
    );
    let just = Price::of_block(100).inclusion(&bid(100), 1_024).unwrap();
    assert_eq!(just.get(), 100, "as much as the base fee is enough");
    let risen = Price { base_fee: 500, ..price }.inclusion(&bid(1_000), 1_024).unwrap();
    assert_eq!(risen.get(), 500, "never less than a block takes now");
    let set_aside = |highest| price.inclusion(&bid(highest), 1_024).unwrap().get();
    assert_eq!((set_aside(100), set_aside(300), set_aside(1_000)), (100, 300, 400));
    assert_eq!(set_aside(99), 99, "one that waits pays no more when the base fee has fallen");
    let taken = Price::of_block(100).inclusion(&Bid::default(), 1_024).unwrap();
    assert_eq!(taken.get(), 100, "a block takes the base fee, whatever the bid");
}

#[test]
fn work_counts_for_the_price_as_far_as_its_bytes_are_charged_for_rounded_down() {
    let used = |bytes, work| Used { bytes, work };
    assert_eq!(used(1_000, 100).priced(500), used(500, 50));
    assert_eq!(used(3, 2).priced(2), used(2, 1));
    assert_eq!(used(1_000, 100).priced(0), used(0, 0));
    assert_eq!(used(1_000, 100).priced(3_048), used(3_048, 304), "a request pays for its run");
    assert_eq!(used(0, 100).priced(5), used(5, 0));
}
