//! The budget of work that a block has from v7 on: who stops at it, and that there is a place for every
//! transaction.

use state::{BlockError, Forks, PushError, Resource, execute_block, work};
use types::tx::{AgentRequest, ChatTurn, MinerRegister};
use types::{Body, Params};

use crate::world::{ALICE, BOB, MINER, PROPOSER, V7, Who, World, blob_chunk, chat, turn};

/// The least that `maxBlockWork` may be voted to.
const LEAST: u64 = 20_000;

fn world(max_block_work: u64) -> World {
    let params = Params { max_block_work, base_fee_floor: 1_000, ..Params::default() };
    World::with_forks(params, V7, &[(PROPOSER, 1)])
}

/// What a transaction takes of the budget of the open block.
fn units(world: &mut World, who: Who, body: &Body) -> u64 {
    let before = world.builder().work_room();
    world.must(who, body);
    before - world.builder().work_room()
}

#[test]
fn a_builder_stops_at_the_budget() {
    let small = units(&mut world(LEAST), ALICE, &chat("small"));
    let mut world = world(3 * small + 1);
    world.all(&[ALICE; 3], &chat("small"));
    let another = world.next_tx(BOB, &chat("small"));
    let refused = world.builder().push(&another).unwrap_err();
    match &refused {
        PushError::Full { resource, needed, room } => {
            assert_eq!((*resource, *needed, *room), (Resource::Work, small, 1));
        }
        other => panic!("{other}"),
    }
    assert_eq!(
        refused.to_string(),
        format!("the block has room for 1 more units of work, the transaction takes {small}")
    );
    assert_eq!(world.next_block().block.transactions.len(), 3);
    world.must(BOB, &chat("small"));
}

#[test]
fn a_block_beyond_the_budget_is_refused() {
    let mut generous = world(LEAST);
    let small = units(&mut generous, ALICE, &chat("small"));
    generous.must(ALICE, &chat("small"));
    let block = generous.next_block().block;
    let execute = |max_block_work| {
        let strict = world(max_block_work);
        execute_block(&strict.chain, strict.base(), &strict.parent, block.clone())
    };
    execute(2 * small).unwrap();
    match execute(2 * small - 1).unwrap_err() {
        BlockError::TooMuchWork { position, max } => {
            assert_eq!((position, max), (1, 2 * small - 1));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn the_base_fee_follows_work_where_there_is_more_of_it_than_of_bytes() {
    let small = units(&mut world(LEAST), ALICE, &chat("small"));
    let mut world = world(4 * small);
    let mut base_fee = |transactions: usize| {
        world.all(&vec![ALICE; transactions], &chat("small"));
        world.next_block().events.fees().unwrap().next_base_fee
    };
    assert_eq!(base_fee(4), 1_000 + 1_000 / 64);
    assert_eq!(base_fee(2), 1_000 + 1_000 / 64, "half a budget is the target");
    assert!(base_fee(1) < 1_000 + 1_000 / 64);
}

#[test]
fn a_transaction_that_takes_more_than_the_budget_has_a_block_of_its_own() {
    let mut world = world(10);
    world.must(ALICE, &chat("first"));
    assert_eq!(world.builder().work_room(), 0);
    let second = world.next_tx(BOB, &chat("second"));
    assert!(matches!(
        world.builder().push(&second),
        Err(PushError::Full { resource: Resource::Work, room: 0, .. })
    ));
    assert_eq!(world.next_block().block.transactions.len(), 1);
    world.builder().push(&second).unwrap();
    world.next_block();
}

#[test]
fn no_work_is_counted_before_v7() {
    let params = Params { max_block_work: 10, ..Params::default() };
    let forks = Forks { v7: Some(2), ..V7 };
    let mut world = World::with_forks(params, forks, &[(PROPOSER, 1)]);
    world.all(&[ALICE; 5], &chat("as many as there are"));
    assert_eq!(world.builder().work_room(), 10);
    assert_eq!(world.next_block().block.transactions.len(), 5);
    world.must(ALICE, &chat("and now one"));
    assert_eq!(world.builder().work_room(), 0);
}

/// The most that any kind can ask for beside its payload, but for the blob that a chunk completes.
const ROWS_MAX: u64 = 45;

#[test]
fn the_largest_transaction_of_each_kind_fits_into_the_least_budget() {
    let params = Params::default();
    let largest = work::of_any(u64::from(params.max_tx_bytes));
    assert!(largest + work::rows(ROWS_MAX) < LEAST / 10);
    let mut world = world(1_000_000);
    for (who, body) in largest_bodies(&world) {
        let units = units(&mut world, who, &body);
        assert!(units <= largest + work::rows(ROWS_MAX), "{units} for {}", body.type_name());
    }
    let chunk = put_blob_without_its_last_chunk(&mut world);
    let units = units(&mut world, ALICE, &chunk);
    assert!((16_384..LEAST).contains(&units), "{units}");
}

/// Texts take most bytes where each character has to be escaped.
fn largest_bodies(world: &World) -> Vec<(Who, Body)> {
    let escaped = |bytes: usize| "\u{1}".repeat(bytes);
    let said = ChatTurn { content: escaped(16_384), ..turn("") };
    // The turn comes first.
    let nonce = world.account(ALICE).nonce + 1;
    let asked = AgentRequest {
        tools_whitelist: (0..64).map(|number| format!("{number:064}")).collect(),
        model_hint: Some(escaped(256)),
        ..fixtures::request(ALICE.address(), nonce, &escaped(16_384), 1_000, 200)
    };
    let registered = MinerRegister {
        name: escaped(256),
        capabilities: (0..64).map(|number| format!("{number:064}")).collect(),
        model_info: escaped(256),
    };
    vec![
        (ALICE, Body::ChatTurn(said)),
        (ALICE, Body::AgentRequest(asked)),
        (MINER, Body::MinerRegister(registered)),
    ]
}

fn put_blob_without_its_last_chunk(world: &mut World) -> Body {
    const CHUNK: usize = 400_000;
    let total_bytes = Params::default().max_blob_bytes;
    let last = usize::try_from(total_bytes).unwrap() - 41 * CHUNK;
    world.put_begun_blob("large", total_bytes, 41);
    blob_chunk("large", 41, &vec![7; last])
}
