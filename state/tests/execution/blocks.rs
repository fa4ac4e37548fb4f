//! Headers, limits, rewards: what makes a block valid (docs/protocol.md section 6).

use state::{BlockError, Executed, Forks, PushError, Resource, check_clock, execute_block};
use types::{Address, Amount, Block, Body, Hash, Header, Params};

use crate::world::{ALICE, BOB, FUNDS, PROPOSER, World, chat, transfer};

/// A world and a valid block on top of it that the world does not have.
fn world_and_block() -> (World, Block) {
    let [mut world, copy] = [(); 2].map(|()| {
        let mut world = World::new();
        world.must(ALICE, &transfer(BOB, 5, 1));
        world.must(ALICE, &chat("hello"));
        world.next_block();
        world
    });
    let (one, other) = ((world.parent, world.memory.rows()), (copy.parent, copy.memory.rows()));
    assert_eq!(one, other, "execution is deterministic");
    world.must(BOB, &chat("again"));
    (copy, world.next_block().block)
}

fn outcome(world: &World, block: Block) -> Result<Executed, BlockError> {
    execute_block(&world.chain, world.base(), &world.parent, block)
}

#[test]
fn a_header_that_is_wrong_anywhere_is_refused_by_name() {
    let (world, block) = world_and_block();
    let cases: [(&str, fn(&mut Header)); 9] = [
        ("chainId", |header| header.chain_id.push('x')),
        ("index", |header| header.index += 1),
        ("previousHash", |header| header.previous_hash = Hash::ZERO),
        ("timestamp", |header| header.timestamp -= 1_000),
        ("stateRoot", |header| header.state_root = Hash::ZERO),
        ("txCount", |header| header.tx_count += 1),
        ("txRoot", |header| header.tx_root = Hash::ZERO),
        ("tokensBurned", |header| header.tokens_burned = Amount::ZERO),
        ("tokensBurned", |header| header.tokens_burned = Amount::new(101)),
    ];
    for (wrong, change) in cases {
        let mut block = block.clone();
        change(&mut block.header);
        match outcome(&world, block) {
            Err(BlockError::Header { field, .. }) => assert_eq!(field, wrong),
            other => panic!("{wrong}: {other:?}"),
        }
    }
}

#[test]
fn a_block_with_an_invalid_transaction_is_invalid() {
    let (world, mut block) = world_and_block();
    let twice = block.transactions[0].clone();
    block.transactions.push(twice);
    block.header.tx_count = 2;
    let hashes: Vec<Hash> = block.transactions.iter().map(|tx| tx.hash()).collect();
    block.header.tx_root = types::block::merkle_root(&hashes);
    match outcome(&world, block) {
        Err(BlockError::Transaction { position, rejection }) => {
            assert_eq!((position, rejection.code().as_str()), (1, "NONCE_STALE"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_block_over_the_byte_limit_is_invalid_and_cannot_be_built() {
    let mut world = World::with_params(|params| params.max_block_bytes = 1_000);
    world.must(ALICE, &chat("small"));
    let large = chat(&"x".repeat(600));
    let tx = world.tx(ALICE, 1, &large).unwrap();
    let room = world.builder().room();
    match world.builder().push(&tx) {
        Err(PushError::Full { resource, needed, room: stated }) => {
            assert_eq!((resource, stated), (Resource::Bytes, room));
            assert!(needed > room);
        }
        other => panic!("{other:?}"),
    }
    let mut free = World::new();
    free.must(ALICE, &chat("small"));
    free.must(ALICE, &large);
    let block = free.next_block().block;
    let mut strict = World::with_params(|params| params.max_block_bytes = 1_000);
    assert_eq!(strict.builder().len(), 0);
    match outcome(&strict, block) {
        Err(BlockError::TooLarge { max, .. }) => assert_eq!(max, 1_000),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_timestamp_is_later_than_the_previous_one_and_not_far_ahead_of_the_clock() {
    let world = World::new();
    let (now, parent) = (world.parent.timestamp, world.parent);
    assert_eq!(parent.next_timestamp(0), now + 1);
    assert_eq!(parent.next_timestamp(now + 5), now + 5);
    let params = Params::default();
    assert!(check_clock(now + 120_000, now, &params).is_ok());
    let ahead = check_clock(now + 120_001, now, &params);
    assert!(matches!(ahead, Err(BlockError::Header { field: "timestamp", .. })), "{ahead:?}");
}

#[test]
fn the_proposer_gets_the_reward_and_the_supply_counts_it() {
    let mut world = World::with_params(|params| params.block_reward = Amount::new(50));
    world.next_blocks(2);
    assert_eq!(world.balance(PROPOSER), FUNDS + 100);
    assert_eq!(world.supply().minted, Amount::new(100));
}

#[test]
fn a_reward_that_does_not_fit_into_the_supply_is_cut() {
    let mut world = World::with_params(|params| params.block_reward = Amount::MAX);
    world.next_blocks(2);
    assert_eq!(world.balance(PROPOSER), u64::MAX - 4 * FUNDS);
}

#[test]
fn kinds_wait_for_their_fork() {
    let mut world = World::with(Params::default(), Forks { v6: 3, ..Forks::default() });
    let agent: [Body; 2] = [chat("early"), world.request_body(ALICE, 1_000, 3)];
    for body in &agent {
        assert_eq!(world.code(ALICE, body), "FORK_NOT_ACTIVE");
        assert_eq!(world.chain.forks.active_from(body), 3);
    }
    world.must(ALICE, &transfer(BOB, 1, 0));
    world.next_blocks(2);
    world.must(ALICE, &chat("in time"));
    world.next_block();
}

#[test]
fn an_unknown_proposer_is_no_rule_of_execution() {
    let (world, mut block) = world_and_block();
    block.header.proposer = Address::new([9; 20]);
    let executed = outcome(&world, block).unwrap();
    assert_eq!(executed.block.header.proposer, Address::new([9; 20]));
}
