//! VALIDATOR_VOTE.

use types::params::{VALIDATOR_VOTES_MAX, VALIDATORS_MAX};
use types::sign_bytes::acceptance;
use types::tx::ValidatorVote;
use types::{Body, Forks, Hash, Params, Signature};

use crate::world::{
    ALICE, BOB, DAY, MINER, START, STRANGER, V7, Who, World, bare_vote, genesis_hash, vote,
};

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
    let refused = world.rejection(MINER, 0, &vote(ALICE, 0));
    assert_eq!((refused.field(), refused.got()), ("from", MINER.address().to_string().as_str()));
    let unchanged = world.rejection(ALICE, 0, &vote(BOB, 5));
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
    let mut full = World::with_validators(Params::default(), &first(most));
    assert_eq!(full.code(ALICE, &vote(newcomer, 1)), "VALIDATOR_SET_LIMIT");
    assert_eq!(full.code(ALICE, &vote(newcomer, 0)), "VALIDATOR_UNCHANGED");
    full.must(ALICE, &vote(BOB, 2));
    full.must(ALICE, &vote(MINER, 0));
}

/// BOB votes for as many candidates as it may: the tenth wallet and those after it.
fn vote_as_often_as_may_be(world: &mut World) {
    for candidate in (10..).take(VALIDATOR_VOTES_MAX).map(Who) {
        world.must(BOB, &vote(candidate, 1));
    }
}

#[test]
fn a_validator_has_so_many_open_votes() {
    let mut world = world();
    vote_as_often_as_may_be(&mut world);
    assert_eq!(world.refused(BOB, &vote(Who(9), 1)), "VOTE_LIMIT");
    world.next_block();
    assert_eq!(world.code(BOB, &vote(Who(9), 1)), "VOTE_LIMIT");
    // Another vote for the same candidate takes the place of the earlier one.
    world.must(BOB, &vote(Who(10), 2));
    world.must(ALICE, &vote(Who(9), 1));
    world.next_block();
}

#[test]
fn votes_wait_for_their_fork() {
    for (validator_vote, expected) in
        [(Some(2), "block 2 or later"), (None, "a chain whose genesis has the fork")]
    {
        let world = World::with(Params::default(), Forks { validator_vote, ..Forks::default() });
        let refused = world.rejection(ALICE, 0, &vote(BOB, 1));
        let told = (refused.code().as_str(), refused.expected());
        assert_eq!(told, ("FORK_NOT_ACTIVE", expected));
    }
}

/// ALICE and BOB decide by the rules of v7.
fn world_of_v7() -> World {
    World::with_forks(Params::default(), V7, &[(ALICE, 10), (BOB, 5)])
}

/// A vote for MINER with what somebody signed over some text.
fn accepted(expires_at: u64, acceptance: Signature) -> Body {
    let vote = ValidatorVote::new(MINER.public_key(), 3, expires_at);
    Body::ValidatorVote(vote.with_acceptance(acceptance))
}

#[test]
fn a_new_key_gets_power_only_with_its_own_acceptance_for_this_vote() {
    let mut world = world_of_v7();
    let ends = START + DAY;
    let text = |genesis: &Hash, who: Who, ends| acceptance(genesis, &who.address(), ends);
    let right = text(&genesis_hash(), MINER, ends);
    let wrong = [
        bare_vote(MINER, 3),
        accepted(ends, BOB.sign(&right)),
        accepted(ends, MINER.sign(&text(&Hash::ZERO, MINER, ends))),
        accepted(ends, MINER.sign(&text(&genesis_hash(), BOB, ends))),
        accepted(ends, MINER.sign(&text(&genesis_hash(), MINER, ends + 1))),
        accepted(ends + 1, MINER.sign(&right)),
        accepted(ends, Signature::new([0; 64])),
    ];
    for body in wrong {
        assert_eq!(world.code(ALICE, &body), "ACCEPTANCE_INVALID", "{body:?}");
    }
    let refused = world.rejection(ALICE, 0, &bare_vote(MINER, 3));
    assert_eq!((refused.field(), refused.got()), ("acceptance", "missing"));
    let said = String::from_utf8(right.clone()).unwrap();
    assert!(refused.expected().ends_with(&said), "{refused}");
    world.must(ALICE, &accepted(ends, MINER.sign(&right)));
}

#[test]
fn every_other_rejection_of_a_vote_comes_before_that_of_its_acceptance() {
    let world = world_of_v7();
    assert_eq!(world.code(MINER, &bare_vote(STRANGER, 3)), "NOT_VALIDATOR");
    assert_eq!(world.code(ALICE, &bare_vote(STRANGER, 0)), "VALIDATOR_UNCHANGED");
    let mut busy = world_of_v7();
    vote_as_often_as_may_be(&mut busy);
    assert_eq!(busy.refused(BOB, &bare_vote(Who(9), 1)), "VOTE_LIMIT");
}

#[test]
fn a_key_with_power_needs_no_acceptance_for_other_power_or_to_leave() {
    let mut world = world_of_v7();
    world.must(ALICE, &bare_vote(BOB, 7));
    world.must(BOB, &bare_vote(BOB, 0));
    world.must(ALICE, &bare_vote(BOB, 0));
    world.next_block();
    // It decides the next height still, but not the one that a vote would change.
    assert_eq!(world.code(ALICE, &bare_vote(BOB, 5)), "ACCEPTANCE_INVALID");
    world.must(ALICE, &vote(BOB, 5));
}

#[test]
fn before_v7_nobody_asks_for_an_acceptance() {
    let mut world = world();
    world.must(ALICE, &bare_vote(MINER, 3));
    world.must(BOB, &accepted(START + DAY, Signature::new([0; 64])));
}
