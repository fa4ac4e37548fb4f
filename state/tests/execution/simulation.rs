//! What a simulated transaction says that it would do.

use state::{Context, TxError, simulate};
use types::{Amount, CheckedTx, RunStatus};

use crate::world::{ALICE, BOB, FUNDS, MINER, PROPOSER, World, chat, claim, transfer};

fn effects(world: &World, tx: &CheckedTx) -> Result<state::Effects, TxError> {
    let ctx: Context<'_> = world.context();
    simulate(tx, &world.base(), &ctx)
}

#[test]
fn a_simulated_request_shows_balance_and_run_and_keeps_nothing() {
    let world = World::new();
    let body = world.request_body(ALICE, 1_000, 3);
    let tx = world.tx(ALICE, 0, &body).unwrap();
    let before = world.memory.rows();
    let effects = effects(&world, &tx).unwrap();
    let change = (Amount::new(FUNDS), Amount::new(FUNDS - 1_000));
    assert_eq!(effects.balances.into_iter().collect::<Vec<_>>(), [(ALICE.address(), change)]);
    assert_eq!(effects.run.map(|run| run.status), Some(RunStatus::Pending));
    assert_eq!(effects.burned, Amount::ZERO);
    assert_eq!(world.memory.rows(), before);
}

#[test]
fn a_simulated_transfer_shows_everyone_who_gains_or_loses() {
    let world = World::new();
    let tx = world.tx(ALICE, 0, &transfer(BOB, 10, 1)).unwrap();
    let balances = effects(&world, &tx).unwrap().balances;
    assert_eq!(balances[&BOB.address()].1, Amount::new(FUNDS + 10));
    assert_eq!(balances[&PROPOSER.address()].1, Amount::new(FUNDS + 1));
    assert_eq!(balances[&ALICE.address()].1, Amount::new(FUNDS - 11));
}

#[test]
fn a_simulated_turn_burns() {
    let world = World::new();
    let tx = world.tx(ALICE, 0, &chat("hello")).unwrap();
    assert_eq!(effects(&world, &tx).unwrap().burned, Amount::new(100));
}

#[test]
fn a_simulation_is_refused_like_the_transaction() {
    let world = World::new();
    let missing = claim(MINER, types::Hash::ZERO);
    let tx = world.tx(MINER, 0, &missing).unwrap();
    match effects(&world, &tx) {
        Err(TxError::Rejected(rejection)) => assert_eq!(rejection.code().as_str(), "RUN_NOT_FOUND"),
        other => panic!("{other:?}"),
    }
}
