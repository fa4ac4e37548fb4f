//! Votes for forks and parameters from v7 on: who may vote, what it costs, and what is fixed.

use state::tables::{ForkRows, ParamRow, ParamRows};
use state::{Forks, rule_votes, rules};
use types::params::FORK_VOTE_BLOCKS;
use types::{Amount, Body, Event, Fork, Params};

use crate::bodies::{fork, offer, param};
use crate::model_rules::BOUNDS;
use crate::world::{ALICE, BOB, FUNDS, MINER, STRANGER, V7, V8, Who, World, answer, chat, vote};

const THREE: [Who; 3] = [ALICE, BOB, MINER];
const DELAY: u64 = 5;

/// A chain that these decide with equal power.
fn world(validators: &[Who]) -> World {
    let params = Params { fork_delay_blocks: DELAY, ..Params::default() };
    let powers: Vec<_> = validators.iter().map(|who| (*who, 1)).collect();
    World::with_forks(params, V7, &powers)
}

/// A chain with these forks, which ALICE decides.
fn world_of(forks: Forks) -> World {
    World::with_forks(Params::default(), forks, &[(ALICE, 1)])
}

/// The code with which the committed state refuses a vote of ALICE's, or `ok`.
fn code_of(world: &World, body: &Body) -> &'static str {
    answer(state::check(&world.next_tx(ALICE, body), &*world.base(), &world.context()))
}

/// The height of v8 that votes have fixed, and the block that did.
fn fixed_v8(world: &World) -> Option<(u64, u64)> {
    let row = world.state().get::<ForkRows>(&"v8".to_owned()).unwrap();
    row.map(|row| (row.height, row.since))
}

/// The subjects of the open votes, with the voter.
fn open_votes(world: &World) -> Vec<(types::Address, String)> {
    let rows = rule_votes::votes(&*world.base()).unwrap().into_iter().map(|(key, _)| key);
    // The row without a subject says when a validator voted last.
    rows.filter(|(_, subject)| !subject.is_empty()).collect()
}

fn row(world: &World, name: &str) -> ParamRow {
    world.state().get::<ParamRows>(&name.to_owned()).unwrap().unwrap()
}

#[test]
fn more_than_two_thirds_fix_the_height_of_a_fork() {
    let mut world = world(&THREE);
    world.all(&[ALICE, BOB], &fork("v8", 50));
    world.next_block();
    assert_eq!(fixed_v8(&world), None);
    world.must(MINER, &fork("v8", 50));
    let executed = world.next_block();
    let fixed = Event::ForkFixed { fork: "v8".to_owned(), height: 50 };
    assert!(executed.events.end.contains(&fixed));
    assert_eq!(fixed_v8(&world), Some((50, 2)));
    assert_eq!(open_votes(&world), [], "what is decided is voted on no more");
    assert_eq!(world.code(ALICE, &fork("v8", 60)), "FORK_UNKNOWN", "it is fixed for good");
}

#[test]
fn a_parameter_takes_its_value_at_the_height_that_was_voted_for() {
    let mut world = world(&[ALICE]);
    world.must(ALICE, &param("baseFeeFloor", 500, 4));
    let executed = world.next_block();
    let fixed = Event::ParamFixed { name: "baseFeeFloor".to_owned(), value: 500, height: 4 };
    assert!(executed.events.end.contains(&fixed));
    assert_eq!(open_votes(&world), [], "what is decided is voted on no more");
    for (height, floor) in [(2, 10), (3, 10), (4, 500), (5, 500)] {
        assert_eq!(world.context().height, height);
        assert_eq!(world.context().rules.params.base_fee_floor, floor, "in block {height}");
        let is_open = row(&world, "baseFeeFloor").next.is_some();
        assert_eq!(is_open, height < 4, "the row of block {height}");
        world.next_block();
    }
    let ParamRow { value, next } = row(&world, "baseFeeFloor");
    assert_eq!((value, next), (500, None));
}

#[test]
fn a_later_decision_takes_the_place_of_one_whose_height_has_not_come() {
    let mut world = world(&[ALICE]);
    world.must(ALICE, &param("baseFeeFloor", 500, 4));
    world.next_block();
    world.must(ALICE, &param("baseFeeFloor", 700, 6));
    world.next_block();
    for (height, floor) in [(3, 10), (4, 10), (5, 10), (6, 700)] {
        assert_eq!(world.context().height, height);
        assert_eq!(world.context().rules.params.base_fee_floor, floor, "in block {height}");
        world.next_block();
    }
}

#[test]
fn a_vote_for_a_height_that_has_come_is_dropped_with_its_block() {
    let mut world = world(&THREE);
    world.must(ALICE, &param("registerFee", 5, 2));
    world.next_block();
    assert_eq!(open_votes(&world), [(ALICE.address(), "param:registerFee".to_owned())]);
    world.next_block();
    assert_eq!(open_votes(&world), []);
}

#[test]
fn a_quorum_that_a_change_of_the_set_makes_is_of_the_next_set_and_keeps_the_delay() {
    for (height, is_in_time) in [(2 + DELAY, true), (1 + DELAY, false)] {
        let mut world = world(&THREE);
        world.all(&THREE, &vote(MINER, 0));
        world.all(&[ALICE, BOB], &fork("v8", height));
        // The set of block 3, without MINER, is the one that counts at the end of block 2.
        world.next_blocks(4);
        assert_eq!(fixed_v8(&world), is_in_time.then_some((height, 2)), "{height}");
    }
}

#[test]
fn what_the_state_says_of_v7_holds_on_a_chain_whose_genesis_says_nothing() {
    let world = world(&[ALICE]);
    let mut silent = (*world.chain).clone();
    silent.forks.v7 = None;
    assert_eq!(rules::v7_from(&silent, &*world.base()).unwrap(), Some(0));
}

#[test]
fn the_last_vote_of_a_validator_counts_and_votes_of_those_who_left_do_not() {
    let mut world = world(&THREE);
    world.all(&[ALICE, BOB], &fork("v8", 50));
    world.next_block();
    world.must(BOB, &fork("v8", 60));
    world.must(MINER, &fork("v8", 50));
    world.next_block();
    assert_eq!(fixed_v8(&world), None);
    // ALICE leaves: with BOB's change of mind the two that are left agree.
    world.all(&THREE, &vote(ALICE, 0));
    world.next_blocks(2);
    world.must(BOB, &fork("v8", 50));
    world.next_block();
    assert_eq!(fixed_v8(&world).map(|(height, _)| height), Some(50));
}

#[test]
fn what_may_not_be_voted_for_is_refused() {
    let world = world(&[ALICE, BOB]);
    let refused = [
        // A stranger has no money for the place, which is checked before.
        (STRANGER, fork("v8", 50), "INSUFFICIENT_BALANCE"),
        (MINER, param("registerFee", 1, 50), "NOT_VALIDATOR"),
        (MINER, fork("v8", 50), "NOT_VALIDATOR"),
        (ALICE, fork("v7", 50), "FORK_UNKNOWN"),
        (ALICE, fork("v100", 50), "FORK_UNKNOWN"),
        (ALICE, param("maxBlockBytes", 1, 50), "PARAM_BOUNDS"),
    ];
    for (who, body, expected) in refused {
        assert_eq!(world.code(who, &body), expected, "{body:?}");
    }
}

#[test]
fn each_parameter_has_its_bounds() {
    let world = world_of(V8);
    let code = |name, value| code_of(&world, &param(name, value, 50));
    for (name, least, most) in BOUNDS {
        assert_eq!([code(name, least), code(name, most)], ["ok"; 2], "{name}");
        let below = u64::checked_sub(least, 1).map(|value| code(name, value));
        assert!(below.is_none_or(|code| code == "PARAM_BOUNDS"), "{name}");
        assert_eq!(code(name, most + 1), "PARAM_BOUNDS", "{name}");
    }
    assert_eq!(BOUNDS.len(), state::params::CHANGEABLE.len());
}

#[test]
fn a_vote_names_a_height_that_is_neither_too_near_nor_too_far() {
    let world = world(&[ALICE, BOB]);
    // Of block 1.
    let last = 1 + FORK_VOTE_BLOCKS;
    let of_fork = |height| code_of(&world, &fork("v8", height));
    let of_param = |height| code_of(&world, &param("registerFee", 5, height));
    assert_eq!([1 + DELAY, last].map(of_fork), ["ok"; 2]);
    assert_eq!([DELAY, last + 1].map(of_fork), ["INVALID_FIELD"; 2]);
    assert_eq!([2, last].map(of_param), ["ok"; 2]);
    assert_eq!([1, last + 1].map(of_param), ["INVALID_FIELD"; 2]);
}

#[test]
fn a_validator_that_leaves_with_the_next_block_votes_free_in_its_last_one() {
    let mut world = world(&THREE);
    world.all(&THREE, &vote(MINER, 0));
    world.next_block();
    let before = world.balance(MINER);
    world.must(MINER, &fork("v8", 50));
    assert_eq!(world.balance(MINER), before);
    world.next_block();
    assert_eq!(world.code(MINER, &fork("v8", 51)), "NOT_VALIDATOR");
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
    let world = world_of(Forks { v7: Some(9), ..V7 });
    assert_eq!(world.code(ALICE, &fork("v8", 200_000)), "FORK_NOT_ACTIVE");
    assert_eq!(world.code(ALICE, &param("registerFee", 5, 50)), "FORK_NOT_ACTIVE");
}

#[test]
fn the_parameters_of_v8_are_voted_on_from_its_height_on() {
    let mut world = world_of(Forks { v8: Some(3), ..V7 });
    let of_v8 = state::params::CHANGEABLE.iter().filter(|param| param.fork == Fork::V8);
    let names: Vec<_> = of_v8.map(|param| param.name).collect();
    let rows = |world: &World| {
        let has_row =
            |name: &&&str| world.state().get::<ParamRows>(&(**name).to_owned()).unwrap().is_some();
        names.iter().filter(has_row).count()
    };
    for height in 1..3 {
        assert_eq!(world.context().height, height);
        assert_eq!(world.code(ALICE, &param("minBond", 2_000_000, 50)), "PARAM_BOUNDS");
        assert_eq!(rows(&world), 0, "before block {height}");
        world.next_block();
    }
    world.must(ALICE, &param("minBond", 2_000_000, 5));
    world.next_block();
    assert_eq!(rows(&world), names.len());
    world.next_block();
    assert_eq!(world.context().rules.params.min_bond, Amount::new(2_000_000));
}

#[test]
fn a_chain_of_v7_comes_to_v8_at_the_height_that_its_validators_vote_for() {
    let mut world = world(&THREE);
    world.all(&THREE, &fork("v8", 2 + DELAY));
    world.next_block();
    let offer = offer("wasm-1", 0, 0);
    let bonds = |world: &World| world.state().get::<ParamRows>(&"minBond".to_owned()).unwrap();
    while world.context().height < 2 + DELAY {
        assert_eq!(world.code(ALICE, &offer), "FORK_NOT_ACTIVE");
        assert_eq!(bonds(&world), None);
        world.next_block();
    }
    world.must(ALICE, &offer);
    world.next_block();
    assert_eq!(bonds(&world).map(|row| row.value), Some(10_000_000), "of genesis' defaults");
}

#[test]
fn votes_decide_nothing_about_a_fork_that_genesis_names() {
    let world = world_of(Forks { v8: Some(9), ..V7 });
    assert_eq!(fixed_v8(&world), Some((9, 0)));
    assert_eq!(code_of(&world, &fork("v8", 200_000)), "FORK_UNKNOWN");
    assert_eq!(code_of(&world, &fork("v9", 200_000)), "ok");
}

#[test]
fn v8_begins_with_v7_where_genesis_gives_them_one_height() {
    let mut world = world_of(Forks { v7: Some(2), v8: Some(2), ..V7 });
    world.next_block();
    world.must(ALICE, &param("appealMs", 20_000, 4));
    world.next_block();
    assert_eq!(row(&world, "minBond").value, 10_000_000);
    world.next_block();
    assert_eq!(world.context().rules.params.appeal_ms, 20_000);
}
