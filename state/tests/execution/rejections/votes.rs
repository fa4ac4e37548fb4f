//! VALIDATOR_VOTE.

use types::params::{VALIDATOR_VOTES_MAX, VALIDATORS_MAX};
use types::{Forks, Params};

use crate::world::{ALICE, BOB, MINER, STRANGER, Who, World, vote};

/// ALICE and BOB decide.
fn world() -> World {
    World::with_validators(Params::default(), &[(ALICE, 10), (BOB, 5)])
}

#[test]
fn a_vote_is_refused_in_order() {
    let world = world();
    let cases = [
        ("NOT_VALIDATOR", MINER, vote(ALICE, 10)),
        ("VALIDATOR_UNCHANGED", ALICE, vote(ALICE, 10)),
        ("VALIDATOR_UNCHANGED", ALICE, vote(STRANGER, 0)),
    ];
    for (code, who, body) in cases {
        assert_eq!(world.code(who, &body), code, "{who:?} {body:?}");
    }
    let refused = world.refusal(MINER, 0, &vote(ALICE, 0));
    assert_eq!((refused.field(), refused.got()), ("from", MINER.address().to_string().as_str()));
    let unchanged = world.refusal(ALICE, 0, &vote(BOB, 5));
    assert_eq!((unchanged.field(), unchanged.got()), ("power", "5"));
}

#[test]
fn the_last_validator_stays() {
    let world = World::with_validators(Params::default(), &[(ALICE, 10)]);
    assert_eq!(world.code(ALICE, &vote(ALICE, 0)), "VALIDATOR_SET_LIMIT");
}

#[test]
fn a_full_set_takes_nobody_in() {
    let first = |count: u8| (1..=count).map(|who| (Who(who), 1)).collect::<Vec<_>>();
    let most = u8::try_from(VALIDATORS_MAX).unwrap();
    let newcomer = Who(most + 1);
    let mut almost = World::with_validators(Params::default(), &first(most - 1));
    almost.must(ALICE, &vote(newcomer, 1));
    let full = World::with_validators(Params::default(), &first(most));
    assert_eq!(full.code(ALICE, &vote(newcomer, 1)), "VALIDATOR_SET_LIMIT");
    assert_eq!(full.code(ALICE, &vote(newcomer, 0)), "VALIDATOR_UNCHANGED");
    let mut full = full;
    full.must(ALICE, &vote(BOB, 2));
    full.must(ALICE, &vote(MINER, 0));
}

#[test]
fn a_validator_has_so_many_open_votes() {
    let mut world = world();
    let candidates = (10..).take(VALIDATOR_VOTES_MAX).map(Who);
    for candidate in candidates {
        world.must(BOB, &vote(candidate, 1));
    }
    assert_eq!(world.send(BOB, &vote(Who(9), 1)).unwrap_err().code().as_str(), "VOTE_LIMIT");
    world.next_block();
    assert_eq!(world.code(BOB, &vote(Who(9), 1)), "VOTE_LIMIT");
    // Another vote for the same candidate takes the place of the earlier one.
    world.must(BOB, &vote(Who(10), 2));
    world.must(ALICE, &vote(Who(9), 1));
    world.next_block();
}

#[test]
fn votes_wait_for_their_fork() {
    let world = World::with(Params::default(), Forks { v6: 0, validator_vote: Some(2), v7: None });
    let early = world.refusal(ALICE, 0, &vote(BOB, 1));
    assert_eq!(early.code().as_str(), "FORK_NOT_ACTIVE");
    assert_eq!(early.expected(), "block 2 or later");
    let never = World::new().refusal(ALICE, 0, &vote(BOB, 1));
    assert_eq!(never.code().as_str(), "FORK_NOT_ACTIVE");
    assert_eq!(never.expected(), "a chain whose genesis has the fork");
}
