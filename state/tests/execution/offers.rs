//! MINER_OFFER: who may offer, what an offer replaces, and whose offers count as bonds change.

use state::market::offers::{counting, of_miner};
use state::tables::Bonds;
use state::{Forks, Retracted, work};
use types::agent::ExecutorId;
use types::{Address, Amount, Body, Bond, BondChange, Event, Hash, Offer, Params, Prices};

use crate::bodies::{bond, claim_bond, finish_body, unbond};
use crate::world::{MINER, OTHER_MINER, PROPOSER, V7, V8, Who, World, answer, claim};

const LEAST: u64 = 1_000_000;

fn world_with(forks: Forks) -> World {
    let params = Params { min_bond: Amount::new(LEAST), ..Params::default() };
    World::with_forks(params, forks, &[(PROPOSER, 1)])
}

fn world() -> World {
    world_with(V8)
}

fn model(number: u8) -> ExecutorId {
    ExecutorId::Model { manifest: Hash::new([number; 32]) }
}

fn offer(executor: ExecutorId, capacity: u64) -> Body {
    fixtures::offer(executor, capacity, [1, 2, 3, 4]).into()
}

/// What [`offer`] says.
fn offered(capacity: u64) -> Offer {
    let [per_call, prompt_per_m, completion_per_m, fuel_per_g] = [1, 2, 3, 4].map(Amount::new);
    Offer { capacity, prices: Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g } }
}

/// The offers of a miner, by executor.
fn offers_of(world: &World, who: Who) -> Vec<(ExecutorId, Offer)> {
    of_miner(world.state(), who.address()).unwrap()
}

/// Whose offers for an executor count, the first one first.
fn counting_for(world: &World, executor: ExecutorId) -> Vec<Address> {
    let params = &world.chain.params;
    counting(world.state(), executor, params).unwrap().into_iter().map(|it| it.miner).collect()
}

#[test]
fn offers_are_taken_from_v8_on() {
    for forks in [V7, Forks { v8: Some(2), ..V7 }] {
        let world = world_with(forks);
        assert_eq!(world.code(MINER, &offer(model(1), 1)), "FORK_NOT_ACTIVE");
    }
    let mut world = world_with(Forks { v8: Some(2), ..V7 });
    world.must(MINER, &bond(LEAST));
    world.next_block();
    world.must(MINER, &offer(model(1), 1));
}

#[test]
fn an_offer_needs_the_least_bond_and_taking_one_back_needs_none() {
    let mut world = world();
    world.must(MINER, &offer(model(1), 0));
    assert_eq!(world.code(MINER, &offer(model(1), 1)), "BOND_TOO_SMALL");
    world.must(MINER, &bond(LEAST - 1));
    world.next_block();
    let nonce = world.account(MINER).nonce;
    let rejection = world.rejection(MINER, nonce, &offer(model(1), 1));
    let told = "Bond too small: bond is 999999, expected at least 1000000, minBond";
    assert_eq!(rejection.message(), told);
    world.must(MINER, &bond(1));
    world.must(MINER, &offer(model(1), 64));
    assert_eq!(offers_of(&world, MINER), [(model(1), offered(64))]);
    world.must(MINER, &unbond(LEAST));
    world.must(MINER, &offer(model(1), 0));
    assert_eq!(offers_of(&world, MINER), []);
    world.must(MINER, &offer(model(1), 0));
    world.next_block();
}

#[test]
fn what_is_locked_of_a_bond_counts_for_offers() {
    let mut world = world();
    world.must(MINER, &bond(LEAST));
    let run = world.request_protected(claim_bond(LEAST));
    world.must(MINER, &claim(MINER, run));
    world.must(MINER, &offer(model(1), 1));
    world.next_block();
}

#[test]
fn the_65th_offer_is_one_too_many_and_is_told_before_the_bond() {
    let mut world = world();
    world.must(MINER, &bond(LEAST));
    for number in 0..64 {
        world.must(MINER, &offer(model(number), 1));
    }
    world.next_block();
    let nonce = world.account(MINER).nonce;
    let rejection = world.rejection(MINER, nonce, &offer(ExecutorId::Wasm, 1));
    let told =
        "Offer limit: executor is wasm-1 beside 64 others, expected one of at most 64 offers";
    assert_eq!(rejection.message(), told);
    world.must(MINER, &offer(model(5), 2));
    world.must(MINER, &unbond(1));
    world.next_block();
    assert_eq!(world.code(MINER, &offer(ExecutorId::Wasm, 1)), "OFFER_LIMIT");
    assert_eq!(world.code(MINER, &offer(model(5), 1)), "BOND_TOO_SMALL");
    world.must(MINER, &bond(1));
    world.must(MINER, &offer(ExecutorId::Wasm, 0));
    world.must(MINER, &offer(model(63), 0));
    world.must(MINER, &offer(ExecutorId::Wasm, 1));
    assert_eq!(offers_of(&world, MINER).len(), 64);
    world.next_block();
}

#[test]
fn an_offer_replaces_the_one_before_and_says_what_it_did() {
    let mut world = world();
    world.must(MINER, &bond(LEAST));
    for capacity in [1, 7, 0] {
        world.must(MINER, &offer(model(1), capacity));
    }
    let events = world.next_block().events;
    let told: Vec<Event> = events.transactions.into_iter().map(|it| it.event).skip(1).collect();
    let set = |offer| Event::OfferSet { executor: model(1), offer };
    assert_eq!(told, [set(Some(offered(1))), set(Some(offered(7))), set(None)]);
}

#[test]
fn a_burned_bond_moves_its_offers_at_the_end_of_the_block() {
    let mut world = world();
    for who in [MINER, OTHER_MINER] {
        world.must(who, &bond(LEAST + 5));
        world.must(who, &offer(model(1), 1));
    }
    let run = world.request_protected(claim_bond(5));
    world.next_block();
    let first = counting_for(&world, model(1))[0];
    let who = [MINER, OTHER_MINER].into_iter().find(|who| who.address() == first).unwrap();
    world.must(who, &claim(who, run));
    world.wait(world.chain.params.claim_ttl_ms + 1_000);
    assert_eq!(counting_for(&world, model(1))[1], first, "its claim lapsed and 5 were burned");
}

#[test]
fn moving_offers_is_work_of_whoever_changes_a_bond() {
    let mut world = world();
    let mut works = Vec::new();
    let mut spent = |world: &mut World, body: &Body| {
        let before = world.builder().work_room();
        let size = world.must(MINER, body).content_bytes();
        let work = before - world.builder().work_room();
        works.push(work - work::of_any(u64::try_from(size).unwrap()));
    };
    spent(&mut world, &bond(LEAST));
    spent(&mut world, &unbond(1));
    spent(&mut world, &bond(1));
    for number in 0..3 {
        spent(&mut world, &offer(model(number), 1));
    }
    spent(&mut world, &bond(LEAST));
    spent(&mut world, &unbond(1));
    assert_eq!(works, [4, 8, 4, 10, 10, 10, 4 + 12, 8 + 12]);
}

#[test]
fn giving_runs_up_is_work_for_each_offer_that_moves() {
    let mut world = world();
    for who in [MINER, OTHER_MINER] {
        world.must(who, &bond(LEAST + 1_000));
        world.must(who, &offer(model(1), 1));
    }
    for number in 2..4 {
        world.must(MINER, &offer(model(number), 1));
    }
    let runs = [(); 2].map(|()| world.request_protected(claim_bond(200)));
    world.next_block();
    for run in runs {
        world.must(MINER, &claim(MINER, run));
    }
    let works = runs.map(|run| {
        let body = finish_body(&world.run(run), "failed");
        let before = world.builder().work_room();
        let size = world.must(MINER, &body).content_bytes();
        before - world.builder().work_room() - work::of_any(u64::try_from(size).unwrap())
    });
    assert_eq!(works, [16 + 12; 2]);
    world.next_block();
    // The invariants say whether its offers are where its bond puts them.
    assert_eq!(world.bond_committed(MINER).bonded.get(), LEAST + 1_000 - 2 * 100);
    let ranking = [OTHER_MINER, MINER].map(|who| who.address());
    assert_eq!(counting_for(&world, model(1)), ranking);
}

#[test]
fn lapses_that_move_many_offers_wait_for_later_blocks() {
    let few = Params {
        min_bond: Amount::new(LEAST),
        max_expiries_per_block: 2,
        max_block_work: 1_000_000,
        ..Params::default()
    };
    let mut world = World::with_forks(few, V8, &[(PROPOSER, 1)]);
    world.must(MINER, &bond(LEAST));
    for number in 0..64 {
        world.must(MINER, &offer(model(number), 1));
    }
    let runs = [(); 2].map(|()| world.request_protected(claim_bond(5)));
    world.next_block();
    for run in runs {
        world.must(MINER, &claim(MINER, run));
    }
    world.next_block_after(world.chain.params.claim_ttl_ms + 1_000);
    let claimed =
        |world: &World| runs.iter().filter(|run| world.run(**run).miner.is_some()).count();
    assert_eq!(claimed(&world), 2);
    world.next_block();
    assert_eq!(claimed(&world), 1, "64 offers take more than two expiries have room for");
    world.next_block();
    assert_eq!(claimed(&world), 0);
}

#[test]
fn what_waits_is_taken_back_to_a_bond_of_which_a_block_has_locked_a_part() {
    let mut world = world();
    world.must(MINER, &bond(10));
    world.next_block();
    let mut pending = world.pool();
    let nonce = world.account(MINER).nonce;
    let unbonds = [2, 3].map(|amount| {
        let tx = world.pool_tx(&pending, MINER, &unbond(amount));
        pending.admit(&tx).unwrap();
        tx
    });
    // What an election does.
    let (bonded, locked) = (Amount::new(10), Amount::new(5));
    world.write(|draft| draft.put::<Bonds>(&MINER.address(), &Bond { bonded, locked }));
    let change = BondChange { locked, ..BondChange::default() };
    let bonds = [(MINER.address(), change)].into();
    assert!(pending.advance(world.still(), &[], &[].into(), &bonds).unwrap());
    assert_eq!(pending.retract(&unbonds[1]).unwrap(), Retracted::Yes);
    let next =
        |amount| answer(pending.check(&world.tx(MINER, nonce + 1, &unbond(amount)).unwrap()));
    assert_eq!(next(3), "ok");
    assert_eq!(next(4), "BOND_TOO_SMALL", "2 are taken out, and 5 of the other 8 are locked");
}
