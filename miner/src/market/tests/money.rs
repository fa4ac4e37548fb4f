//! Bond and offers follow the configuration, and leave the floor in the account.

use types::agent::ExecutorId;

use super::bench::{Bench, me, offer};
use crate::chain::fake::State;
use crate::chain::fake::market::MIN_BOND;
use crate::market::OfferConfig;

fn bonded(bench: &Bench) -> u64 {
    bench.chain.state.lock().stake(&me()).unwrap().bonded_micro
}

fn has_offer(state: &State) -> bool {
    state.offers(&me())
}

#[tokio::test]
async fn a_new_miner_bonds_twice_the_least_and_makes_its_offers_once() {
    let bench = Bench::new();
    bench.during(bench.chain.until(has_offer)).await;
    bench.during(bench.tidied()).await;
    assert_eq!(bonded(&bench), 2 * MIN_BOND);
    assert_eq!(bench.sent(), ["MINER_BOND", "MINER_OFFER"]);
}

#[tokio::test]
async fn offers_change_with_the_configuration_and_are_taken_back() {
    let mut bench = Bench::new();
    bench.during(bench.chain.until(has_offer)).await;
    bench.configure(|config| config.offers[0].capacity = 2);
    bench.during(bench.chain.until(|state| state.capacity(&me()) == Some(2))).await;
    bench.configure(|config| config.offers.clear());
    bench.during(bench.chain.until(|state| !has_offer(state))).await;
    assert_eq!(bonded(&bench), 2 * MIN_BOND, "the bond stays");
}

#[tokio::test]
async fn the_floor_stays_in_the_account() {
    let mut bench = Bench::new();
    let balance = bench.chain.state.lock().balance(&me());
    bench.configure(|config| config.balance_micro_min = balance - MIN_BOND + 1);
    bench.during(bench.tidied()).await;
    assert!(bench.sent().is_empty(), "less than the least bond is of no use");
    bench.configure(|config| config.balance_micro_min = balance - MIN_BOND);
    bench.during(bench.chain.until(has_offer)).await;
    assert_eq!(bonded(&bench), MIN_BOND);
    assert!(bench.chain.state.lock().balance(&me()) >= balance - MIN_BOND - 10_000);
}

#[tokio::test]
async fn what_this_program_cannot_execute_is_not_offered() {
    let mut bench = Bench::new();
    bench.configure(|config| {
        config.offers.push(OfferConfig { executor: ExecutorId::Wasm, ..offer(1) });
    });
    bench.during(bench.chain.until(has_offer)).await;
    bench.during(bench.tidied()).await;
    assert_eq!(bench.chain.state.lock().offers_of(&me()), 1);
}
