//! In which order the rules of protected runs refuse, and what of them leaves no trace.

use types::tx::Protection;
use types::{Amount, Bid, Event, Hash, Params};

use crate::bodies::{bond, claim_bond, refuse, unbond};
use crate::world::{
    ALICE, BOB, MINER, OTHER_MINER, PROPOSER, SECOND, Swept, V7, World, answer, cancel, claim,
};

const CLAIM_BOND: u64 = 100_000;

/// A chain on which MINER has a bond for one run.
fn world() -> World {
    let mut world = World::with_forks(Params::default(), V7, &[(PROPOSER, 1)]);
    world.must(MINER, &bond(CLAIM_BOND));
    world.next_block();
    world
}

#[test]
fn that_nothing_is_held_is_told_before_who_may_refuse_it() {
    let mut world = world();
    let run = world.request_protected(claim_bond(CLAIM_BOND));
    world.next_block();
    assert_eq!(world.code(BOB, &refuse(run)), "REFUSE_CLOSED");
    world.must(ALICE, &cancel(run));
    world.next_block();
    assert_eq!(world.code(BOB, &refuse(run)), "REFUSE_CLOSED");
    assert_eq!(world.code(BOB, &refuse(Hash::ZERO)), "RUN_NOT_FOUND");
}

#[test]
fn who_may_claim_is_asked_before_what_is_at_stake() {
    let mut world = world();
    let miners = Some(vec![MINER.address().into(), BOB.address().into()]);
    let run = world.request_protected(Protection { miners, ..claim_bond(CLAIM_BOND) });
    world.next_block();
    // It has no bond either.
    assert_eq!(world.code(OTHER_MINER, &claim(OTHER_MINER, run)), "MINER_NOT_ALLOWED");
    world.must(MINER, &claim(MINER, run));
    world.wait(Params::default().claim_ttl_ms + SECOND);
    // What it had at stake was burned when its claim lapsed.
    assert_eq!(world.supply().bonded, Amount::ZERO);
    assert_eq!(world.code(MINER, &claim(MINER, run)), "MINER_EXCLUDED");
}

#[test]
fn a_run_that_asks_for_no_bond_locks_none_and_tells_of_none() {
    let mut world = world();
    let protection = Protection { max_tokens_per_step: Some(5), ..Protection::default() };
    let run = world.request_protected(protection);
    world.must(OTHER_MINER, &claim(OTHER_MINER, run));
    assert_eq!(world.run(run).locked_bond, None);
    world.finish(OTHER_MINER, run, "failed");
    assert_eq!(world.next_block().swept(), []);
}

#[test]
fn a_claim_is_taken_at_any_base_fee() {
    let params = Params { base_fee_floor: 1_000, ..Params::default() };
    let mut world = World::with_forks(params, V7, &[(PROPOSER, 1)]);
    let run = world.request_protected(Protection::default());
    let bid = Bid { max_base_fee: Some(Amount::new(1)), tip: None };
    let free = world.bidding_tx(MINER, 0, &claim(MINER, run), bid.clone()).unwrap();
    world.push(&free).unwrap();
    let paid = world.bidding_tx(ALICE, 1, &cancel(run), bid).unwrap();
    assert_eq!(answer(world.builder().push(&paid)), "FEE_ABOVE_MAX");
}

#[test]
fn what_is_due_at_the_moment_of_very_many_runs_is_paid_though_few_of_these_are_swept() {
    let ttl = 60_000;
    let params = Params {
        max_expiries_per_block: 1,
        pending_ttl_ms: ttl,
        unbond_ms: ttl,
        ..Params::default()
    };
    let mut world = World::with_forks(params, V7, &[(PROPOSER, 1)]);
    world.must(MINER, &bond(5));
    // More than are looked at together.
    for _ in 0..70 {
        world.request(ALICE, 100, 1);
    }
    world.must(MINER, &unbond(5));
    let events = world.wait(ttl + SECOND);
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(matches!(events[0], Event::RunTimedOut { .. }));
    let amount = Amount::new(5);
    assert_eq!(events[1], Event::UnbondingPaid { miner: MINER.address(), amount });
}
