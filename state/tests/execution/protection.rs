//! Runs that their submitters protect from v7 on: who may claim, what is at stake, what is held, and
//! what refusing costs whom.

use state::tables::{Bonds, FiguresOfSubmitters};
use types::tx::{Protection, WrittenAddress};
use types::{Amount, Event, Hash, Params, RunStatus};

use crate::bodies::{bond, protected, refuse, unbond};
use crate::world::{
    ALICE, BOB, MINER, OTHER_MINER, PROPOSER, SECOND, V7, Who, World, answer, claim, step,
};

const BOND: u64 = 1_000_000;
const CLAIM_BOND: u64 = 100_000;
const STAKE: u64 = 10_000;
const STEP_FEE: u64 = 100;
const HOLD: u64 = 600_000;
const MAX_FEE: u64 = 5_000;

/// A chain on which MINER has a bond. Its base fee is as low as can be, and short transactions cost a
/// few micro.
fn world() -> World {
    world_that_reopens(Params::default().max_reopens)
}

/// The same, where a run is re-opened so often at most.
fn world_that_reopens(max_reopens: u32) -> World {
    let params = Params { base_fee_floor: 1, unbond_ms: 60_000, max_reopens, ..Params::default() };
    let mut world = World::with_forks(params, V7, &[(PROPOSER, 1)]);
    world.must(MINER, &bond(BOND));
    world.next_block();
    world
}

fn protection() -> Protection {
    Protection {
        miners: None,
        claim_bond: Some(Amount::new(CLAIM_BOND)),
        max_tokens_per_step: Some(500),
        refuse_ms: Some(HOLD),
    }
}

/// A protected run that MINER has claimed.
fn claimed(world: &mut World) -> Hash {
    claimed_with(world, protection())
}

/// The same, of a run that is protected so.
fn claimed_with(world: &mut World, protection: Protection) -> Hash {
    let run = world.request_protected(protection);
    world.must(MINER, &claim(MINER, run));
    run
}

/// A protected run that MINER has ended with a reward of 300.
fn held(world: &mut World) -> Hash {
    let run = claimed(world);
    world.must(MINER, &step(run, 0, 300));
    world.finish(MINER, run, "completed");
    world.next_block();
    run
}

/// What MINER has bonded and what of it is locked.
fn stake(world: &World) -> (u64, u64) {
    let bond = world.state().get::<Bonds>(&MINER.address()).unwrap().unwrap_or_default();
    (bond.bonded.get(), bond.locked.get())
}

fn written(miners: &[Who]) -> Option<Vec<WrittenAddress>> {
    Some(miners.iter().map(|who| who.address().into()).collect())
}

#[test]
fn only_the_miners_that_are_named_may_claim() {
    let mut world = world();
    let miners = written(&[OTHER_MINER, BOB]);
    let run = world.request_protected(Protection { miners, ..Protection::default() });
    world.next_block();
    assert_eq!(world.code(MINER, &claim(MINER, run)), "MINER_NOT_ALLOWED");
    world.must(OTHER_MINER, &claim(OTHER_MINER, run));
    world.next_block();
}

#[test]
fn a_claim_locks_the_bond_and_needs_it_free() {
    let mut world = world();
    let run = claimed(&mut world);
    assert_eq!(stake(&world), (BOND, CLAIM_BOND));
    world.next_block();
    assert_eq!(world.run(run).locked_bond, Some(Amount::new(CLAIM_BOND)));
    assert_eq!(world.code(MINER, &unbond(BOND - CLAIM_BOND + 1)), "BOND_TOO_SMALL");
    let other = world.request_protected(protection());
    world.next_block();
    assert_eq!(world.code(OTHER_MINER, &claim(OTHER_MINER, other)), "BOND_TOO_SMALL");
}

#[test]
fn a_step_may_have_as_many_tokens_as_the_submitter_allows() {
    let mut world = world();
    let run = claimed(&mut world);
    world.next_block();
    assert_eq!(world.code(MINER, &step(run, 0, 501)), "TOKENS_LIMIT");
    world.must(MINER, &step(run, 0, 500));
}

#[test]
fn the_reward_is_held_and_paid_when_nobody_refuses() {
    let mut world = world();
    let before = world.balance(MINER);
    let run = held(&mut world);
    assert_eq!(world.supply().escrowed, Amount::new(300), "refund and fee are paid at once");
    assert_eq!(stake(&world), (BOND, CLAIM_BOND));
    let after_steps = world.balance(MINER);
    assert!(after_steps <= before);
    let events = world.wait(HOLD + SECOND);
    let (agent_run_id, submitter, miner) = (run, ALICE.address(), MINER.address());
    let (status, amount) = (RunStatus::Completed, Amount::new(300));
    let paid = Event::RewardPaid { agent_run_id, submitter, miner, status, amount };
    let unlocked = Event::BondUnlocked {
        agent_run_id,
        miner,
        unlocked: Amount::new(CLAIM_BOND),
        burned: Amount::ZERO,
    };
    assert_eq!(events, [paid, unlocked]);
    assert_eq!(world.balance(MINER), after_steps + 300);
    assert_eq!(stake(&world), (BOND, 0));
    let figures = world.figures(MINER);
    assert_eq!((figures.earnings, figures.refused), (Amount::new(300), 0));
    assert_eq!(world.code(ALICE, &refuse(run)), "REFUSE_CLOSED");
}

#[test]
fn refusing_burns_the_reward_the_miners_stake_and_the_submitters_own() {
    let mut world = world();
    let run = held(&mut world);
    assert_eq!(world.code(BOB, &refuse(run)), "NOT_SUBMITTER");
    let (alice, burned) = (world.balance(ALICE), world.supply().burned.get());
    let tx = world.must(ALICE, &refuse(run));
    let fee = state::fees::inclusion_fee(u64::try_from(tx.content_bytes()).unwrap(), 1).get();
    assert_eq!(stake(&world), (BOND, CLAIM_BOND), "bonds change at the end of the block");
    world.next_block();
    assert_eq!(stake(&world), (BOND - 300 - STAKE, 0));
    assert_eq!(world.balance(ALICE), alice - STAKE - fee);
    assert_eq!(world.supply().burned.get() - burned, 300 + STAKE + (300 + STAKE) + fee);
    assert_eq!(world.supply().escrowed, Amount::ZERO);
    assert!(world.run(run).is_refused);
    let miner = world.figures(MINER);
    let submitter = world.state().get::<FiguresOfSubmitters>(&ALICE.address()).unwrap().unwrap();
    assert_eq!((miner.refused, miner.earnings), (1, Amount::ZERO));
    assert_eq!((submitter.held, submitter.refused), (1, 1));
    assert_eq!(world.code(ALICE, &refuse(run)), "REFUSE_CLOSED", "once");
}

#[test]
fn an_answer_without_a_step_costs_the_claim_bond() {
    let mut world = world();
    let run = claimed(&mut world);
    world.finish(MINER, run, "completed");
    world.next_block();
    assert_eq!(stake(&world), (BOND - CLAIM_BOND, 0));
    // Nothing is at stake any more; refusing still says so in the figures.
    world.must(ALICE, &refuse(run));
    world.next_block();
    assert_eq!(stake(&world), (BOND - CLAIM_BOND, 0));
}

#[test]
fn who_gives_a_run_up_without_work_pays_for_it_and_the_run_waits_for_another_miner() {
    for status in ["failed", "timeout", "insufficient_funds", "cancelled"] {
        let mut world = world();
        let run = claimed(&mut world);
        let alice = world.balance(ALICE);
        world.finish(MINER, run, status);
        let events = world.next_block();
        let (miner, burned) = (MINER.address(), Amount::new(STEP_FEE));
        let unlocked = Amount::new(CLAIM_BOND - STEP_FEE);
        let released = Event::BondUnlocked { agent_run_id: run, miner, unlocked, burned };
        assert!(events.events.end.contains(&released), "{:?}", events.events.end);
        assert_eq!(stake(&world), (BOND - STEP_FEE, 0), "{status}");
        let record = world.run(run);
        assert_eq!((record.status, record.reopens), (RunStatus::Pending, 1));
        assert_eq!((record.miner, record.claimed_at, record.claim), (None, None, None));
        assert_eq!((record.finish, record.settlement, record.locked_bond), (None, None, None));
        assert_eq!(record.excluded_miners, [miner]);
        assert_eq!(world.balance(ALICE), alice, "the fee stays in escrow");
        assert_eq!(world.supply().escrowed, Amount::new(MAX_FEE));
        assert_eq!(world.code(MINER, &claim(MINER, run)), "MINER_EXCLUDED");
        let figures = world.figures(MINER);
        assert_eq!((figures.claimed, figures.timed_out, figures.failed), (1, 1, 0));
        // Another miner takes it, and has all of the time that a new run has.
        world.must(OTHER_MINER, &bond(BOND));
        world.must(OTHER_MINER, &claim(OTHER_MINER, run));
        assert_eq!(world.run(run).miner, Some(OTHER_MINER.address()));
    }
}

#[test]
fn a_run_that_was_given_up_too_often_ends_as_its_last_miner_says() {
    let mut world = world_that_reopens(0);
    let run = claimed(&mut world);
    let alice = world.balance(ALICE);
    world.finish(MINER, run, "failed");
    world.next_block();
    assert_eq!(stake(&world), (BOND - STEP_FEE, 0));
    let record = world.run(run);
    assert_eq!((record.status, record.reopens), (RunStatus::Failed, 0));
    assert_eq!((record.miner, record.excluded_miners), (Some(MINER.address()), vec![]));
    assert_eq!(world.balance(ALICE), alice + MAX_FEE);
}

#[test]
fn a_run_that_names_only_the_miner_that_gives_it_up_ends() {
    let miners = |miners: &[Who]| Protection { miners: written(miners), ..protection() };
    let mut world = world();
    for (named, status) in
        [(vec![MINER], RunStatus::Failed), (vec![MINER, OTHER_MINER], RunStatus::Pending)]
    {
        let run = claimed_with(&mut world, miners(&named));
        world.finish(MINER, run, "failed");
        assert_eq!(world.run(run).status, status, "{named:?}");
    }
    // The same where a claim lapses.
    let run = claimed_with(&mut world, miners(&[MINER]));
    world.wait(Params::default().claim_ttl_ms + SECOND);
    assert_eq!(world.run(run).status, RunStatus::Timeout);
}

#[test]
fn a_run_with_a_step_ends_where_its_miner_gives_it_up_and_its_submitter_may_refuse() {
    for tokens in [0, 1] {
        let mut world = world();
        let run = claimed(&mut world);
        world.must(MINER, &step(run, 0, tokens));
        world.finish(MINER, run, "failed");
        world.next_block();
        assert_eq!((world.run(run).status, stake(&world)), (RunStatus::Failed, (BOND, CLAIM_BOND)));
        world.must(ALICE, &refuse(run));
        world.next_block();
        assert_eq!(stake(&world), (BOND - tokens - STAKE, 0));
    }
}

#[test]
fn a_run_without_a_claim_bond_ends_where_its_miner_gives_it_up() {
    let mut world = world();
    let run = claimed_with(&mut world, Protection { claim_bond: None, ..protection() });
    world.finish(MINER, run, "failed");
    world.next_block();
    assert_eq!((world.run(run).status, stake(&world)), (RunStatus::Failed, (BOND, 0)));
}

#[test]
fn a_claim_or_a_run_that_lapses_costs_the_claim_bond() {
    let mut world = world();
    claimed(&mut world);
    world.wait(Params::default().claim_ttl_ms + SECOND);
    assert_eq!(stake(&world), (BOND - CLAIM_BOND, 0));
    let second = claimed(&mut world);
    world.must(MINER, &step(second, 0, 1));
    world.wait(Params::default().step_ttl_ms + SECOND);
    assert_eq!(stake(&world), (BOND - 2 * CLAIM_BOND, 0));
    assert_eq!(world.run(second).ended_by, Some(types::Ender::Sweep));
}

#[test]
fn what_is_taken_out_of_a_bond_is_paid_out_later() {
    let mut world = world();
    let before = world.balance(MINER);
    world.must(MINER, &unbond(400_000));
    world.must(MINER, &unbond(100_000));
    assert_eq!(stake(&world), (BOND - 500_000, 0));
    let fees = before - world.balance(MINER);
    world.next_block();
    assert_eq!(world.supply().unbonding, Amount::new(500_000));
    let events = world.wait(61_000);
    let amount = Amount::new(500_000);
    assert_eq!(events, [Event::UnbondingPaid { miner: MINER.address(), amount }]);
    assert_eq!(world.balance(MINER), before - fees + 500_000);
    assert_eq!(world.code(MINER, &unbond(BOND)), "BOND_TOO_SMALL");
    world.must(MINER, &unbond(BOND - 500_000));
    world.next_block();
    assert_eq!(world.state().get::<Bonds>(&MINER.address()).unwrap(), None, "no empty rows");
}

#[test]
fn protection_means_nothing_before_the_fork() {
    let mut world = World::new();
    let run = claimed(&mut world);
    world.next_block();
    let stored = world.run(run);
    assert_eq!((stored.protection, stored.locked_bond), (None, None));
    assert_eq!(world.code(MINER, &bond(5)), "FORK_NOT_ACTIVE");
    // And its record has the bytes that it always had.
    let version = |world: &World| {
        let rows = world.memory.rows();
        let row = rows.into_iter().find(|(table, ..)| *table == "runs").unwrap();
        row.2[0]
    };
    assert_eq!(version(&world), 1);
    let mut protected = self::world();
    claimed(&mut protected);
    protected.next_block();
    assert_eq!(version(&protected), 2);
}

#[test]
fn a_request_may_name_few_miners_each_once() {
    let world = world();
    for miners in [vec![], vec![BOB, BOB], (1..18).map(Who).collect()] {
        let protection = Protection { miners: written(&miners), ..Protection::default() };
        let body = protected(world.request_body(ALICE, MAX_FEE, 5), protection);
        assert_eq!(world.code(ALICE, &body), "INVALID_FIELD", "{miners:?}");
    }
    let nothing = world.tx(MINER, 1, &bond(0)).unwrap_err();
    assert_eq!(nothing.message(), "Invalid field: amount is 0, expected more than 0");
}

#[test]
fn the_pool_learns_what_the_end_of_a_block_did_to_a_bond() {
    let mut world = world();
    held(&mut world);
    let mut pool = world.pool();
    pool.admit(&world.pool_tx(&pool, MINER, &unbond(1_000))).unwrap();
    world.next_block_after(HOLD + SECOND);
    let executed = world.next_block();
    let changes = executed.events.iter().filter_map(|(_, event)| event.bond_change());
    assert_eq!(changes.count(), 1);
    assert!(world.tell(&mut pool, &[], &executed));
    // All that is left is free now, and not a micro more.
    pool.admit(&world.pool_tx(&pool, MINER, &unbond(BOND - 1_000))).unwrap();
    assert_eq!(answer(pool.admit(&world.pool_tx(&pool, MINER, &unbond(1)))), "BOND_TOO_SMALL");
}
