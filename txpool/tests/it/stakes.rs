//! From v8 on: what others do to a miner's bond hits what this miner has waiting, and nothing else.

use types::{Amount, BondChange, CheckedTx, Code};

use crate::support::{Wallet, World};

/// A miner with a bond of 10,000, of which 5,000 are enough for an offer, and a pool with something of
/// somebody else.
fn bonded() -> (World, Wallet, Vec<CheckedTx>) {
    let (miner, rich) = (Wallet::new(1), Wallet::new(9));
    let world = World::v8(&[(&miner, 1_000_000), (&rich, 1_000_000)]);
    world.commit(&[&miner.at(0).bond(10_000)]);
    let others = rich.each(0..20, |it| it.turn(None));
    world.pending(&others);
    (world, miner, others)
}

fn locked(amount: u64) -> BondChange {
    BondChange { locked: Amount::new(amount), ..BondChange::default() }
}

fn released(unlocked: u64, burned: u64) -> BondChange {
    let (unlocked, burned) = (Amount::new(unlocked), Amount::new(burned));
    BondChange { locked: Amount::ZERO, unlocked, burned }
}

#[test]
fn what_counted_on_a_bond_that_was_locked_is_dropped_and_nothing_of_others_is_executed_again() {
    let (world, miner, others) = bonded();
    let (unbond, after) = (miner.at(1).unbond(6_000), miner.at(2).turn(None));
    world.pending(&[&unbond, &after]);
    let admits = world.admits();
    world.commit_touching(&[&others[0]], &miner, locked(5_000));
    assert_eq!(Some(Code::BondTooSmall), world.drop_code(&unbond));
    assert!(world.is_queued(&after), "its nonce is not there yet");
    assert!(world.admits() <= admits + 2, "{} more", world.admits() - admits);
    assert_eq!(0, world.pool.stats().rebuilds_total);
    assert_eq!(Code::BondTooSmall, world.rejection(&miner.at(1).unbond(5_001)));
    world.pending(&[&miner.at(1).unbond(5_000)]);
}

#[test]
fn what_the_rest_of_the_bond_is_enough_for_stays() {
    let (world, miner, others) = bonded();
    let waiting =
        [miner.at(1).unbond(2_000), miner.at(2).offer("wasm-1", 1), miner.at(3).unbond(3_000)];
    world.pending(&waiting);
    world.commit_touching(&[&others[0]], &miner, locked(5_000));
    assert!(waiting.iter().all(|tx| world.is_pending(tx)));
    assert_eq!(Code::BondTooSmall, world.rejection(&miner.at(4).unbond(1)));
    world.commit_touching(&[&others[1]], &miner, released(5_000, 0));
    world.pending(&[&miner.at(4).unbond(5_000)]);
}

#[test]
fn an_offer_is_dropped_when_what_is_left_of_the_bond_is_too_little() {
    let (world, miner, others) = bonded();
    let offers = [miner.at(1).offer("wasm-1", 1), miner.at(2).offer("wasm-1", 0)];
    world.pending(&offers);
    world.commit_touching(&[&others[0]], &miner, locked(6_000));
    assert!(offers.iter().all(|offer| world.is_pending(offer)), "what is locked counts");
    world.commit_touching(&[&others[1]], &miner, released(1_000, 5_000));
    assert!(offers.iter().all(|offer| world.is_pending(offer)), "it is just enough");
    world.commit_touching(&[&others[2]], &miner, locked(1));
    world.commit_touching(&[&others[3]], &miner, released(0, 1));
    assert_eq!(Some(Code::BondTooSmall), world.drop_code(&offers[0]));
    assert!(world.is_queued(&offers[1]));
    assert_eq!(0, world.pool.stats().rebuilds_total);
    world.pending(&[&miner.at(1).offer("wasm-1", 0)]);
}
