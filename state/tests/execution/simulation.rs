//! What a simulated transaction says that it would do.

use state::{Effects, TxError, simulate};
use types::{Amount, Body, RunStatus};

use crate::world::{ALICE, BOB, FUNDS, MINER, PROPOSER, Who, World, answer, chat, claim, transfer};

fn effects(world: &World, who: Who, body: &Body) -> Result<Effects, TxError> {
    simulate(&world.next_tx(who, body), &world.base(), &world.context())
}

#[test]
fn a_simulated_request_shows_balance_and_run_and_keeps_nothing() {
    let world = World::new();
    let body = world.request_body(ALICE, 1_000, 3);
    let before = world.memory.rows();
    let effects = effects(&world, ALICE, &body).unwrap();
    let change = (Amount::new(FUNDS), Amount::new(FUNDS - 1_000));
    assert_eq!(effects.balances, [(ALICE.address(), change)].into());
    assert_eq!(effects.run.map(|run| run.status), Some(RunStatus::Pending));
    assert_eq!(effects.burned, Amount::ZERO);
    assert_eq!(world.memory.rows(), before);
}

#[test]
fn a_simulated_transfer_shows_everyone_who_gains_or_loses() {
    let world = World::new();
    let balances = effects(&world, ALICE, &transfer(BOB, 10, 1)).unwrap().balances;
    assert_eq!(balances[&BOB.address()].1, Amount::new(FUNDS + 10));
    assert_eq!(balances[&PROPOSER.address()].1, Amount::new(FUNDS + 1));
    assert_eq!(balances[&ALICE.address()].1, Amount::new(FUNDS - 11));
}

#[test]
fn a_simulated_turn_burns() {
    let world = World::new();
    assert_eq!(effects(&world, ALICE, &chat("hello")).unwrap().burned, Amount::new(100));
}

#[test]
fn a_simulation_is_refused_like_the_transaction() {
    let world = World::new();
    let missing = claim(MINER, types::Hash::ZERO);
    assert_eq!(answer(effects(&world, MINER, &missing)), "RUN_NOT_FOUND");
}
