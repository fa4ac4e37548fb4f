//! How votes change the validator set: thresholds, expiry, when a change holds.

use state::validators;
use types::params::VALIDATOR_VOTE_TTL_MS_MAX;
use types::{Body, Event, Forks, Params, SetMember, ValidatorSets};

use crate::world::{
    ALICE, BOB, MINER, OTHER_MINER, SECOND, START, Swept, V7, Who, World, answer, bare_vote,
    member, vote, vote_until,
};

const FOUR: [Who; 4] = [ALICE, BOB, MINER, OTHER_MINER];

fn world_of(validators: &[(Who, u64)]) -> World {
    World::with_validators(Params::default(), validators)
}

fn four() -> World {
    world_of(&FOUR.map(|who| (who, 10)))
}

fn set(members: &[(Who, u64)]) -> Vec<SetMember> {
    let mut set: Vec<_> = members.iter().map(|(who, power)| member(*who, *power)).collect();
    set.sort_by_key(|member| member.public_key.address());
    set
}

fn open_votes(world: &World) -> usize {
    validators::votes(&*world.base()).unwrap().len()
}

/// A block in which these validators vote so; what it decided.
fn block(world: &mut World, voters: &[Who], body: &Body) -> Vec<Event> {
    world.all(voters, body);
    world.next_block().swept()
}

fn changed(who: Who, power: u64, height: u64) -> Event {
    Event::ValidatorChanged { public_key: who.public_key(), power, height }
}

#[test]
fn a_change_with_its_votes_in_block_1_holds_from_block_3_on() {
    let mut world = four();
    let dead = [ALICE, BOB, MINER];
    let decided = block(&mut world, &dead, &vote(OTHER_MINER, 0));
    assert_eq!(decided, [changed(OTHER_MINER, 0, 3)]);
    let (all, three) = (set(&FOUR.map(|who| (who, 10))), set(&dead.map(|who| (who, 10))));
    let next = Some(three.clone());
    assert_eq!(world.sets(), ValidatorSets { since: 1, current: all, next });
    assert_eq!(open_votes(&world), 0);
    world.next_block();
    assert_eq!(world.sets(), ValidatorSets { since: 3, current: three, next: None });
    world.next_block();
    assert_eq!(world.sets().since, 3);
}

#[test]
fn exactly_two_thirds_are_not_enough_and_any_more_is() {
    // Of 30: 20 is two thirds.
    let mut world = world_of(&[(ALICE, 10), (BOB, 10), (MINER, 9), (OTHER_MINER, 1)]);
    let newcomer = vote(Who(9), 7);
    assert_eq!(block(&mut world, &[ALICE, BOB], &newcomer), []);
    assert_eq!(open_votes(&world), 2);
    assert_eq!(block(&mut world, &[OTHER_MINER], &newcomer), [changed(Who(9), 7, 4)]);
}

#[test]
fn votes_add_up_over_blocks_and_only_for_the_same_power() {
    let mut world = four();
    assert_eq!(block(&mut world, &[ALICE, BOB], &vote(Who(9), 10)), []);
    assert_eq!(block(&mut world, &[MINER], &vote(Who(9), 11)), []);
    assert_eq!(open_votes(&world), 3);
    // A newer vote of the same validator takes the place of the earlier one.
    assert_eq!(block(&mut world, &[MINER], &vote(Who(9), 10)), [changed(Who(9), 10, 5)]);
    assert_eq!(open_votes(&world), 0);
}

#[test]
fn a_single_validator_takes_a_second_in_and_lets_it_go_with_its_consent() {
    let mut world = world_of(&[(ALICE, 10)]);
    assert_eq!(block(&mut world, &[ALICE], &vote(BOB, 10)), [changed(BOB, 10, 3)]);
    world.next_block();
    assert_eq!(block(&mut world, &[ALICE], &vote(BOB, 0)), []);
    assert_eq!(block(&mut world, &[BOB], &vote(BOB, 0)), [changed(BOB, 0, 6)]);
    world.next_block();
    assert_eq!(world.sets().current, set(&[(ALICE, 10)]));
}

#[test]
fn a_vote_counts_until_its_expiry_and_not_later() {
    let body = vote_until(OTHER_MINER, 0, START + 3 * SECOND);
    let mut in_time = four();
    assert_eq!(block(&mut in_time, &[ALICE, BOB], &body), []);
    in_time.next_block();
    // Block 3 has exactly the time of the expiry.
    let decided = block(&mut in_time, &[MINER], &vote(OTHER_MINER, 0));
    assert_eq!(decided, [changed(OTHER_MINER, 0, 5)]);

    let mut late = four();
    block(&mut late, &[ALICE, BOB], &body);
    late.next_blocks(2);
    assert_eq!(open_votes(&late), 2);
    assert_eq!(block(&mut late, &[MINER], &vote(OTHER_MINER, 0)), []);
    assert_eq!(open_votes(&late), 1);
}

#[test]
fn a_vote_that_comes_too_late_is_in_a_block_and_counts_for_nothing() {
    let mut world = four();
    world.wait(10 * SECOND);
    let late = vote_until(OTHER_MINER, 0, START + 2 * SECOND);
    assert_eq!(block(&mut world, &[ALICE, BOB, MINER], &late), []);
    assert_eq!(open_votes(&world), 0);
    assert_eq!(world.account(ALICE).nonce, 1);
}

#[test]
fn no_vote_stays_longer_than_30_days_whatever_its_timestamp_says() {
    let mut world = four();
    let far = vote_until(OTHER_MINER, 0, START + VALIDATOR_VOTE_TTL_MS_MAX);
    world.must(ALICE, &far);
    world.next_block();
    let kept = validators::votes(&*world.base()).unwrap();
    assert_eq!(kept[0].1.expires_at, START + VALIDATOR_VOTE_TTL_MS_MAX);
    // A proposer may put in a transaction of its own that claims to come from the future.
    let body = vote_until(OTHER_MINER, 0, START + 100 * VALIDATOR_VOTE_TTL_MS_MAX);
    let tx = types::CheckedTx::trust(world.unchecked_tx(BOB, 0, &body));
    world.builder().push(&tx).unwrap();
    world.next_block();
    let kept = validators::votes(&*world.base()).unwrap();
    let last = kept.iter().map(|(_, vote)| vote.expires_at).max();
    let latest = START + 2 * SECOND + VALIDATOR_VOTE_TTL_MS_MAX;
    assert_eq!(last, Some(latest));
}

#[test]
fn votes_of_a_validator_lapse_when_it_leaves() {
    let mut world = four();
    block(&mut world, &[OTHER_MINER], &vote(Who(9), 10));
    block(&mut world, &[ALICE, BOB, MINER], &vote(OTHER_MINER, 0));
    assert_eq!(open_votes(&world), 1);
    world.next_block();
    assert_eq!(open_votes(&world), 0);
    // With two of the three that are left the newcomer would have its votes if the lapsed counted.
    assert_eq!(block(&mut world, &[ALICE, BOB], &vote(Who(9), 10)), []);
}

#[test]
fn votes_that_were_too_few_are_enough_once_others_have_left() {
    let mut world = world_of(&[(ALICE, 10), (BOB, 10), (MINER, 10), (OTHER_MINER, 15)]);
    // 30 of 45 is two thirds.
    assert_eq!(block(&mut world, &[ALICE, BOB, MINER], &vote(Who(9), 1)), []);
    let smaller = vote(OTHER_MINER, 1);
    assert_eq!(block(&mut world, &FOUR, &smaller), [changed(OTHER_MINER, 1, 4)]);
    assert_eq!(world.next_block().swept(), []);
    // Block 4 is the first that the smaller power decides.
    assert_eq!(world.next_block().swept(), [changed(Who(9), 1, 6)]);
}

#[test]
fn changes_of_one_block_are_made_in_the_order_of_the_keys() {
    let mut world = world_of(&[(ALICE, 10), (BOB, 10)]);
    world.all(&[ALICE, BOB], &vote(ALICE, 0));
    world.all(&[ALICE, BOB], &vote(BOB, 0));
    let first = ALICE.public_key().min(BOB.public_key());
    let decided = world.next_block().swept();
    // The set is never empty: the second change waits, and lapses with one of its voters.
    assert_eq!(decided, [Event::ValidatorChanged { public_key: first, power: 0, height: 3 }]);
    assert_eq!(open_votes(&world), 2);
    world.next_block();
    assert_eq!(world.sets().current.len(), 1);
    assert_eq!(open_votes(&world), 1);
    assert_eq!(world.next_block().swept(), []);
}

#[test]
fn a_change_that_is_decided_is_voted_on_as_made() {
    let mut world = four();
    block(&mut world, &[ALICE, BOB, MINER], &vote(OTHER_MINER, 0));
    assert_eq!(world.code(ALICE, &vote(OTHER_MINER, 0)), "VALIDATOR_UNCHANGED");
    // It still decides block 2, and may vote there.
    let back = vote(OTHER_MINER, 10);
    let voters = [ALICE, BOB, OTHER_MINER];
    assert_eq!(block(&mut world, &voters, &back), [changed(OTHER_MINER, 10, 4)]);
    world.next_block();
    assert_eq!(world.sets().current.len(), 4);
}

#[test]
fn the_pool_gives_the_same_answers_as_a_block() {
    let mut world = four();
    let mut pending = world.pool();
    for body in [vote(Who(9), 1), vote(Who(9), 2)] {
        let tx = world.pool_tx(&pending, ALICE, &body);
        pending.admit(&tx).unwrap();
        world.push(&tx).unwrap();
    }
    let stranger = world.pool_tx(&pending, Who(9), &vote(ALICE, 0));
    assert_eq!(answer(pending.admit(&stranger)), "NOT_VALIDATOR");
    world.next_block();
    assert_eq!(open_votes(&world), 1);
}

#[test]
fn block_v7_drops_open_votes_for_keys_that_have_not_agreed_and_no_others() {
    let forks = Forks { v7: Some(3), ..V7 };
    let mut world = World::with_forks(Params::default(), forks, &FOUR.map(|who| (who, 10)));
    for body in [bare_vote(Who(9), 10), bare_vote(OTHER_MINER, 0), bare_vote(BOB, 11)] {
        world.all(&[ALICE, MINER], &body);
    }
    world.next_blocks(2);
    assert_eq!(open_votes(&world), 6);
    let newcomer = Who(9).public_key();
    world.next_block();
    let open = validators::votes(&*world.base()).unwrap();
    assert_eq!(open.len(), 4);
    assert!(open.iter().all(|((_, candidate), _)| *candidate != newcomer));
    // What was dropped counts for nothing: one more vote is not enough.
    assert_eq!(block(&mut world, &[BOB], &vote(Who(9), 10)), []);
    assert_eq!(block(&mut world, &[ALICE, MINER], &vote(Who(9), 10)), [changed(Who(9), 10, 7)]);
}
