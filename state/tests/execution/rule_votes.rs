//! Votes for forks and parameters from v7 on: who may vote, what it costs, and what is fixed.

use state::Forks;
use state::tables::{ForkRows, ParamRows};
use types::tx::{ForkVote, ParamVote};
use types::{Body, Event, Params};

use crate::world::{ALICE, BOB, FUNDS, MINER, STRANGER, Who, World, chat, vote};

const V7: Forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0) };
const DELAY: u64 = 5;

/// A chain that these decide with equal power.
fn world(validators: &[Who]) -> World {
    let params = Params { fork_delay_blocks: DELAY, ..Params::default() };
    let powers: Vec<_> = validators.iter().map(|who| (*who, 1)).collect();
    World::with_forks(params, V7, &powers)
}

fn fork(name: &str, height: u64) -> Body {
    Body::ForkVote(ForkVote { fork: name.to_owned(), height })
}

fn param(name: &str, value: u64, height: u64) -> Body {
    Body::ParamVote(ParamVote { name: name.to_owned(), value, height })
}

#[test]
fn more_than_two_thirds_fix_the_height_of_a_fork() {
    let mut world = world(&[ALICE, BOB, MINER]);
    world.must(ALICE, &fork("v8", 50));
    world.must(BOB, &fork("v8", 50));
    world.next_block();
    assert_eq!(world.state().get::<ForkRows>(&"v8".to_owned()).unwrap(), None);
    world.must(MINER, &fork("v8", 50));
    let executed = world.next_block();
    let fixed = Event::ForkFixed { fork: "v8".to_owned(), height: 50 };
    assert!(executed.events.end.contains(&fixed));
    let row = world.state().get::<ForkRows>(&"v8".to_owned()).unwrap().unwrap();
    assert_eq!((row.height, row.since), (50, 2));
    assert_eq!(world.code(ALICE, &fork("v8", 60)), "FORK_UNKNOWN", "it is fixed for good");
}

#[test]
fn a_parameter_takes_its_value_at_the_height_that_was_voted_for() {
    let mut world = world(&[ALICE]);
    world.must(ALICE, &param("baseFeeFloor", 500, 4));
    let executed = world.next_block();
    let fixed = Event::ParamFixed { name: "baseFeeFloor".to_owned(), value: 500, height: 4 };
    assert!(executed.events.end.contains(&fixed));
    let floors = |world: &World| world.context().rules.params.base_fee_floor;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push((world.context().height, floors(&world)));
        world.next_block();
    }
    assert_eq!(seen, [(2, 10), (3, 10), (4, 500), (5, 500)]);
    let row = world.state().get::<ParamRows>(&"baseFeeFloor".to_owned()).unwrap().unwrap();
    assert_eq!((row.value, row.next), (500, None));
}

#[test]
fn the_last_vote_of_a_validator_counts_and_votes_of_those_who_left_do_not() {
    let mut world = world(&[ALICE, BOB, MINER]);
    for who in [ALICE, BOB] {
        world.must(who, &fork("v8", 50));
    }
    world.next_block();
    world.must(BOB, &fork("v8", 60));
    world.must(MINER, &fork("v8", 50));
    world.next_block();
    assert_eq!(world.state().get::<ForkRows>(&"v8".to_owned()).unwrap(), None);
    // ALICE leaves: with BOB's change of mind the two that are left agree.
    for who in [ALICE, BOB, MINER] {
        world.must(who, &vote(ALICE, 0));
    }
    world.next_block();
    world.next_block();
    world.must(BOB, &fork("v8", 50));
    world.next_block();
    let row = world.state().get::<ForkRows>(&"v8".to_owned()).unwrap().unwrap();
    assert_eq!(row.height, 50);
}

#[test]
fn what_may_not_be_voted_for_is_refused() {
    let world = world(&[ALICE, BOB]);
    let refused = [
        (STRANGER, fork("v8", 50), "NOT_VALIDATOR"),
        (MINER, param("registerFee", 1, 50), "NOT_VALIDATOR"),
        (ALICE, fork("v7", 50), "FORK_UNKNOWN"),
        (ALICE, fork("v100", 50), "FORK_UNKNOWN"),
        (ALICE, fork("v8", DELAY), "INVALID_FIELD"),
        (ALICE, fork("v8", 2_000_000), "INVALID_FIELD"),
        (ALICE, param("maxBlockBytes", 1, 50), "PARAM_BOUNDS"),
        (ALICE, param("baseFeeFloor", 0, 50), "PARAM_BOUNDS"),
        (ALICE, param("baseFeeFloor", 1_000_001, 50), "PARAM_BOUNDS"),
        (ALICE, param("maxBlockWork", 19_999, 50), "PARAM_BOUNDS"),
        (ALICE, param("claimTtlMs", 29_999, 50), "PARAM_BOUNDS"),
        (ALICE, param("baseFeeFloor", 20, 1), "INVALID_FIELD"),
    ];
    for (who, body, expected) in refused {
        // A stranger has no money for the place, which is checked before.
        let expected = if who == STRANGER { "INSUFFICIENT_BALANCE" } else { expected };
        assert_eq!(world.code(who, &body), expected, "{body:?}");
    }
}

#[test]
fn the_whole_set_of_parameters_is_checked() {
    let params = Params { heartbeat_ms: 1_000, fork_delay_blocks: DELAY, ..Params::default() };
    let world = World::with_forks(params, V7, &[(ALICE, 1)]);
    assert_eq!(world.code(ALICE, &param("minBlockIntervalMs", 2_000, 50)), "PARAM_BOUNDS");
}

#[test]
fn no_ttl_may_be_voted_that_is_shorter_than_ten_times_what_a_proposer_can_move_time_by() {
    let params = Params { claim_ttl_ms: 1_000, message_delay_ms: 5_500, ..Params::default() };
    let mut world = World::with_forks(params, V7, &[(ALICE, 1)]);
    for name in ["pendingTtlMs", "claimTtlMs", "stepTtlMs"] {
        assert_eq!(world.code(ALICE, &param(name, 59_999, 50)), "PARAM_BOUNDS", "{name}");
    }
    world.must(ALICE, &param("claimTtlMs", 60_000, 50));
    // What genesis set lower is no matter for a vote on something else.
    world.must(ALICE, &param("registerFee", 5, 50));
}

#[test]
fn the_first_vote_of_a_validator_in_a_block_is_free_and_the_second_is_not() {
    let mut world = world(&[ALICE, BOB]);
    world.must(ALICE, &fork("v8", 50));
    assert_eq!(world.balance(ALICE), FUNDS);
    world.must(ALICE, &param("registerFee", 5, 50));
    assert!(world.balance(ALICE) < FUNDS);
    let before = world.balance(ALICE);
    world.next_block();
    world.must(ALICE, &vote(MINER, 1));
    assert_eq!(world.balance(ALICE), before, "the next block has another one");
    world.must(ALICE, &chat("nothing else is free"));
    assert!(world.balance(ALICE) < before - 100);
}

#[test]
fn votes_are_refused_before_the_fork() {
    let forks = Forks { v7: Some(9), ..V7 };
    let world = World::with_forks(Params::default(), forks, &[(ALICE, 1)]);
    assert_eq!(world.code(ALICE, &fork("v8", 200_000)), "FORK_NOT_ACTIVE");
    assert_eq!(world.code(ALICE, &param("registerFee", 5, 50)), "FORK_NOT_ACTIVE");
}
