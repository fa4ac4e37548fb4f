//! What is refused of offers of miners, from fork v8 on.

use serde_json::json;
use state::Forks;
use testkit::actor::Actor;
use testkit::node::DevOptions;
use types::agent::ExecutorId;
use types::tx::{MinerBond, MinerOffer};
use types::{Amount, Body, Code, Hash};

use super::case::{Case, case_of_text};
use super::fork::chain_with;
use super::scene::Scene;
use super::v7::V7;

pub(super) const CODES: &[Code] =
    &[Code::ChainIdMismatch, Code::InvalidField, Code::OfferLimit, Code::BondTooSmall];

const CHAIN: &str = "with-offers";
/// The default of `minBond`.
const MIN_BOND: u64 = 10_000_000;

fn offer(executor: &str, capacity: u64) -> Body {
    let [per_call, prompt_per_m, completion_per_m, fuel_per_g] = [1, 2, 3, 4].map(Amount::new);
    Body::MinerOffer(MinerOffer {
        executor: executor.to_owned(),
        capacity,
        per_call,
        prompt_per_m,
        completion_per_m,
        fuel_per_g,
    })
}

fn model(number: u8) -> String {
    ExecutorId::Model { manifest: Hash::new([number; 32]) }.to_string()
}

#[test]
fn what_is_wrong_with_an_offer_is_told_and_changes_nothing() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    chain_with(folder.path(), CHAIN, Forks { v8: Some(0), ..V7 })?;
    let data_dir = Some(folder.path().to_owned());
    let options = DevOptions { data_dir, ..DevOptions::from_environment() };
    let mut scene = Scene::of(options)?.priced();
    let [mut miner, poor] = [0, 1].map(|index| scene.actor(index));
    let bond = miner.sign(&Body::MinerBond(MinerBond { amount: Amount::new(MIN_BOND) }));
    let offers = (0..64).map(|number| miner.sign_on(CHAIN, &offer(&model(number), 1)));
    let texts: Vec<String> = std::iter::once(bond).chain(offers).collect();
    scene.include(&texts)?;
    let query = json!({"miner": miner.address(), "limit": 500});
    let listed = scene.call("ombra_listOffers", &query)?;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(64));
    scene.refuse(CODES, &cases(&miner, &poor))
}

fn cases(miner: &Actor, poor: &Actor) -> Vec<Case> {
    let refused = |code, who: &Actor, body: &Body| {
        case_of_text(code, who.address(), who.draft_on(CHAIN, body))
    };
    let unnamed = poor.draft(&offer("wasm-1", 0));
    vec![
        case_of_text(Code::ChainIdMismatch, poor.address(), unnamed)
            .says("chainId", "missing", CHAIN),
        refused(Code::InvalidField, poor, &offer("wasm-2", 0)).says(
            "executor",
            "wasm-2",
            "wasm-1, or wasm-1:, model-1: or container: and 64 lowercase hex characters",
        ),
        refused(Code::InvalidField, poor, &offer("wasm-1", 65)).says("capacity", 65, "0 to 64"),
        refused(Code::OfferLimit, miner, &offer("wasm-1", 1)).says(
            "executor",
            "wasm-1 beside 64 others",
            "one of at most 64 offers",
        ),
        refused(Code::BondTooSmall, poor, &offer("wasm-1", 1)).says(
            "bond",
            0,
            format!("at least {MIN_BOND}, minBond"),
        ),
    ]
}
