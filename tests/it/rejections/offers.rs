//! What is refused of offers of miners, from fork v8 on.

use fixtures::bond;
use serde_json::json;
use testkit::actor::Actor;
use types::agent::ExecutorId;
use types::{Body, Code, Hash};

use super::case::{Case, MARKET, case, market_case};
use super::fork::quick;
use super::scene::Scene;
use crate::support::MIN_BOND;

pub(super) const CODES: &[Code] =
    &[Code::ChainIdMismatch, Code::InvalidField, Code::OfferLimit, Code::BondTooSmall];

fn offer(executor: &str, capacity: u64) -> Body {
    fixtures::offer(executor, capacity, [1, 2, 3, 4]).into()
}

fn model(number: u8) -> String {
    ExecutorId::Model { manifest: Hash::new([number; 32]) }.to_string()
}

#[test]
fn what_is_wrong_with_an_offer_is_told_and_changes_nothing() -> anyhow::Result<()> {
    let mut scene = Scene::of_market(quick())?;
    let [mut miner, poor] = [0, 1].map(|index| scene.actor(index));
    let bond = miner.sign(&bond(MIN_BOND));
    let offers = (0..64).map(|number| miner.sign_on(MARKET, &offer(&model(number), 1)));
    let texts: Vec<String> = std::iter::once(bond).chain(offers).collect();
    scene.include(&texts)?;
    let query = json!({"miner": miner.address(), "limit": 500});
    let listed = scene.call("ombra_listOffers", &query)?;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(64));
    scene.refuse(CODES, &cases(&miner, &poor))
}

fn cases(miner: &Actor, poor: &Actor) -> Vec<Case> {
    vec![
        case(Code::ChainIdMismatch, poor, &offer("wasm-1", 0)).says("chainId", "missing", MARKET),
        market_case(Code::InvalidField, poor, &offer("wasm-2", 0)).says(
            "executor",
            "wasm-2",
            "wasm-1, or wasm-1:, model-1: or container: and 64 lowercase hex characters",
        ),
        market_case(Code::InvalidField, poor, &offer("wasm-1", 65)).says("capacity", 65, "0 to 64"),
        market_case(Code::OfferLimit, miner, &offer("wasm-1", 1)).says(
            "executor",
            "wasm-1 beside 64 others",
            "one of at most 64 offers",
        ),
        market_case(Code::BondTooSmall, poor, &offer("wasm-1", 1)).says(
            "bond",
            0,
            format!("at least {MIN_BOND}, minBond"),
        ),
    ]
}
