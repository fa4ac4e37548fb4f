//! From v7 on: what votes of validators make the pool execute again.

use txpool::Config;
use types::{CheckedTx, Code, Forks, Params};

use crate::support::ledger::{TestChain, params};
use crate::support::{Wallet, World};

/// Three validators of whom two decide nothing, and a pool with something of somebody else.
fn voting() -> (World, [Wallet; 3], Vec<CheckedTx>) {
    let validators = [1, 2, 3].map(Wallet::new);
    let rich = Wallet::new(9);
    let [a, b, c] = &validators;
    let balances = [(a, 1_000_000), (b, 1_000_000), (&rich, 1_000_000)];
    let params = Params { fork_delay_blocks: 5, ..params() };
    let forks = Forks { v7: Some(0), validator_vote: Some(0), ..Forks::default() };
    let powers = [(a, 1), (b, 1), (c, 1)];
    let chain = TestChain::with_forks(params, forks, &balances, &powers);
    let world = World::over(Config::default(), &chain);
    let others = rich.each(0..20, |it| it.turn(None));
    world.pending(&others);
    (world, validators, others)
}

#[test]
fn a_vote_in_a_block_has_nothing_executed_again() {
    let (world, [a, b, _], others) = voting();
    let own = a.at(0).vote_for_fork(50);
    world.pending(&[&own]);
    let admits = world.admits();
    world.commit(&[&own, &others[0]]);
    assert_eq!(admits, world.admits());
    // One that the pool did not have.
    world.commit(&[&b.at(0).vote_for_floor(20, 60), &others[1]]);
    assert_eq!(admits + 1, world.admits());
    assert_eq!(0, world.pool.stats().rebuilds_total);
}

#[test]
fn a_vote_that_waits_has_nothing_executed_again_with_each_block() {
    let (world, [a, ..], others) = voting();
    let votes = [a.at(0).vote_for_fork(50), a.at(1).vote_for_floor(20, 60)];
    world.pending(&votes);
    let admits = world.admits();
    for other in &others[..3] {
        world.commit(&[other]);
    }
    assert_eq!((admits, 0), (world.admits(), world.pool.stats().rebuilds_total));
    assert!(votes.iter().all(|vote| world.is_pending(vote)));
}

#[test]
fn a_validator_without_money_votes_for_nothing() {
    let (world, [_, _, c], others) = voting();
    let vote = c.at(0).vote_for_fork(50);
    world.pending(&[&vote]);
    assert_eq!(Code::InsufficientBalance, world.rejection(&c.at(1).vote_for_floor(20, 60)));
    world.commit(&[&others[0]]);
    assert_eq!(Code::InsufficientBalance, world.rejection(&c.at(1).vote_for_floor(20, 60)));
    world.commit(&[&vote, &others[1]]);
    world.pending(&[&c.at(1).vote_for_floor(20, 60)]);
}

#[test]
fn a_vote_for_a_height_that_has_come_is_dropped_and_nothing_of_others_is_looked_at() {
    let (world, [a, ..], others) = voting();
    let (vote, after) = (a.at(0).vote_for_floor(20, 3), a.at(1).turn(None));
    world.pending(&[&vote, &after]);
    world.commit(&[&others[0]]);
    assert!(world.is_pending(&vote));
    let admits = world.admits();
    world.commit(&[&others[1]]);
    assert_eq!(Some(Code::InvalidField), world.drop_code(&vote));
    assert!(world.is_queued(&after));
    assert!(world.admits() <= admits + 2, "{} more", world.admits() - admits);
    assert_eq!(0, world.pool.stats().rebuilds_total);
}

#[test]
fn votes_that_wait_are_executed_again_when_something_was_decided() {
    let (world, [a, b, c], others) = voting();
    let late = a.at(1).vote_for_fork(60);
    let votes = [a.at(0), b.at(0), c.at(0)].map(|make| make.vote_for_fork(50));
    world.pending(&[&votes[0], &votes[1], &votes[2], &late]);
    world.commit(&[&votes[0], &votes[1], &votes[2], &others[0]]);
    assert_eq!(Some(Code::ForkUnknown), world.drop_code(&late));
    assert_eq!(1, world.pool.stats().rebuilds_total);
}

#[test]
fn when_a_parameter_takes_its_value_everything_is_executed_again() {
    let (world, [a, b, c], others) = voting();
    let votes = [a.at(0), b.at(0), c.at(0)].map(|make| make.vote_for_floor(20, 3));
    world.commit(&[&votes[0], &votes[1], &votes[2], &others[0]]);
    assert_eq!(0, world.pool.stats().rebuilds_total, "it holds from block 3 on");
    world.commit(&[&others[1]]);
    assert_eq!(1, world.pool.stats().rebuilds_total);
    world.commit(&[&others[2]]);
    assert_eq!(1, world.pool.stats().rebuilds_total);
}
