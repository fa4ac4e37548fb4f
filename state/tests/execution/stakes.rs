//! In which order the rules of protected runs refuse, and what of them leaves no trace.

use state::Forks;
use types::tx::{AgentRefuse, MinerBond, MinerUnbond, Protection};
use types::{Amount, Body, Event, Hash, Late, Params};

use crate::world::{ALICE, BOB, MINER, OTHER_MINER, PROPOSER, SECOND, Swept, World, cancel, claim};

const V7: Forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: None };
const CLAIM_BOND: u64 = 100_000;

/// A chain on which MINER has a bond for one run.
fn world() -> World {
    let mut world = World::with_forks(Params::default(), V7, &[(PROPOSER, 1)]);
    world.must(MINER, &Body::MinerBond(MinerBond { amount: Amount::new(CLAIM_BOND) }));
    world.next_block();
    world
}

fn request(world: &mut World, protection: Protection) -> Hash {
    let mut body = world.request_body(ALICE, 5_000, 5);
    let Body::AgentRequest(request) = &mut body else { panic!("not a request") };
    request.protection = Late::from(protection);
    world.must(ALICE, &body);
    body.agent_run_id().unwrap()
}

fn bonded() -> Protection {
    Protection { claim_bond: Some(Amount::new(CLAIM_BOND)), ..Protection::default() }
}

fn refuse(agent_run_id: Hash) -> Body {
    Body::AgentRefuse(AgentRefuse { agent_run_id })
}

#[test]
fn that_nothing_is_held_is_told_before_who_may_refuse_it() {
    let mut world = world();
    let run = request(&mut world, bonded());
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
    let run = request(&mut world, Protection { miners, ..bonded() });
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
    let run = request(&mut world, protection);
    world.must(OTHER_MINER, &claim(OTHER_MINER, run));
    assert_eq!(world.run(run).locked_bond, None);
    let end = world.finish_body(run, "failed");
    world.must(OTHER_MINER, &end);
    assert_eq!(world.next_block().swept(), []);
}

#[test]
fn a_claim_is_taken_at_any_base_fee() {
    let params = Params { base_fee_floor: 1_000, ..Params::default() };
    let mut world = World::with_forks(params, V7, &[(PROPOSER, 1)]);
    let run = request(&mut world, Protection::default());
    let bid = types::Bid { max_base_fee: Some(Amount::new(1)), tip: None };
    let nonce = world.account(MINER).nonce;
    let free = world.bidding_tx(MINER, nonce, &claim(MINER, run), bid.clone()).unwrap();
    world.builder().push(&free).unwrap();
    let paid = world.bidding_tx(ALICE, 1, &cancel(run), bid).unwrap();
    let state::PushError::Rejected(refused) = world.builder().push(&paid).unwrap_err() else {
        panic!("not refused")
    };
    assert_eq!(refused.code().as_str(), "FEE_ABOVE_MAX");
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
    let amount = Amount::new(5);
    world.must(MINER, &Body::MinerBond(MinerBond { amount }));
    // More than are looked at together.
    for _ in 0..70 {
        world.request(ALICE, 100, 1);
    }
    world.must(MINER, &Body::MinerUnbond(MinerUnbond { amount }));
    let events = world.wait(ttl + SECOND);
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(matches!(events[0], Event::RunTimedOut { .. }));
    assert_eq!(events[1], Event::UnbondingPaid { miner: MINER.address(), amount });
}

#[test]
fn before_v7_the_record_does_not_say_who_ended_a_run() {
    let mut world = World::new();
    let runs = [0, 1, 2].map(|_| world.request(ALICE, 1_000, 1));
    world.must(ALICE, &cancel(runs[0]));
    world.must(MINER, &claim(MINER, runs[1]));
    let end = world.finish_body(runs[1], "failed");
    world.must(MINER, &end);
    world.wait(Params::default().pending_ttl_ms + SECOND);
    let last = world.run(runs[2]);
    assert_eq!(last.status, types::RunStatus::Timeout);
    assert_eq!(runs.map(|run| world.run(run).ended_by), [None; 3]);
}
