//! The randomness of headers: whose key makes it, of what, and what is refused (docs/protocol.md
//! section 6.1).

use state::{BlockBuilder, BlockError, Forks, execute_block};
use types::randomness::Input;
use types::vrf::Proof;
use types::{Block, Hash, Header, Keypair, Params, Randomness};

use crate::world::{ALICE, BOB, MINER, PROPOSER, STRANGER, V7, Who, World, chat, vote};

fn world(v7: u64, validators: &[(Who, u64)]) -> World {
    World::with_forks(Params::default(), Forks { v7: Some(v7), ..V7 }, validators)
}

/// What a key gives for a block on top of this one.
fn proved(key: &Keypair, previous: Hash, height: u64) -> Randomness {
    Input { chain_id: "test", previous, height }.prove(key)
}

/// The next block, made by somebody.
fn block_by(world: &World, who: Who) -> Block {
    let (chain, now) = (world.chain.clone(), world.parent.timestamp + 1);
    let builder = BlockBuilder::new(chain, world.base(), world.parent, &who.key(), now).unwrap();
    builder.finish().unwrap().block
}

/// The member of the header for which a block is refused.
fn refused_for(world: &World, block: Block) -> &'static str {
    match execute_block(&world.chain, world.base(), &world.parent, block) {
        Err(BlockError::Header { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_header_from_v7_on_has_what_its_proposers_key_gives_for_the_one_before() {
    // Where v7 holds from the beginning, block 1 is its first one.
    for (v7, first) in [(3, 3), (0, 1)] {
        let mut world = world(v7, &[(PROPOSER, 1)]);
        for height in 1..first {
            assert_eq!(world.next_block().block.header.randomness, None, "block {height}");
        }
        let mut previous = Hash::digest(b"genesis");
        for height in first..6 {
            let expected = proved(&PROPOSER.key(), previous, height);
            let made = world.next_block().block.header.randomness;
            assert_eq!(made, Some(expected), "block {height}, v7 from {v7}");
            previous = expected.value;
        }
    }
}

#[test]
fn time_and_transactions_change_nothing_about_it() {
    let mut world = world(0, &[(PROPOSER, 1)]);
    let quiet = block_by(&world, PROPOSER).header;
    world.must(ALICE, &chat("hello"));
    let busy = world.next_block().block.header;
    assert_ne!((quiet.timestamp, quiet.tx_root), (busy.timestamp, busy.tx_root));
    assert_eq!(quiet.randomness, busy.randomness);
}

#[test]
fn randomness_that_is_wrong_anywhere_is_refused_by_name() {
    let mut world = world(0, &[(PROPOSER, 1), (ALICE, 1)]);
    world.next_block();
    let previous = world.parent.randomness;
    let good = block_by(&world, PROPOSER);
    assert!(execute_block(&world.chain, world.base(), &world.parent, good.clone()).is_ok());
    let Randomness { value, proof } = good.header.randomness.unwrap();
    let mut bytes = *proof.as_bytes();
    bytes[79] ^= 1;
    let with = |randomness| Header { randomness, ..good.header.clone() };
    let cases = [
        ("randomness", with(None)),
        ("randomness", with(Some(Randomness { value: Hash::ZERO, proof }))),
        ("randomness", with(Some(Randomness { value: previous, proof }))),
        ("randomnessProof", with(Some(Randomness { value, proof: Proof::new(bytes) }))),
        ("randomnessProof", with(Some(proved(&ALICE.key(), previous, 2)))),
        ("randomnessProof", with(Some(proved(&PROPOSER.key(), previous, 3)))),
        ("randomnessProof", with(Some(proved(&PROPOSER.key(), Hash::digest(b"genesis"), 2)))),
        ("randomnessProof", Header { proposer: ALICE.address(), ..good.header.clone() }),
        ("proposer", Header { proposer: STRANGER.address(), ..good.header.clone() }),
    ];
    for (wrong, header) in cases {
        let block = Block { header, ..good.clone() };
        assert_eq!(refused_for(&world, block.clone()), wrong, "{:?}", block.header);
    }
}

#[test]
fn before_v7_a_header_has_none() {
    let world = world(2, &[(PROPOSER, 1)]);
    let mut block = block_by(&world, PROPOSER);
    block.header.randomness = Some(proved(&PROPOSER.key(), world.parent.randomness, 1));
    assert_eq!(refused_for(&world, block), "randomness");
}

#[test]
fn the_key_is_the_one_in_the_set_of_the_height() {
    let mut world = world(0, &[(ALICE, 1), (BOB, 1)]);
    let refused = |world: &World, who| refused_for(world, block_by(world, who));
    let execute = |world: &World, who| {
        execute_block(&world.chain, world.base(), &world.parent, block_by(world, who)).unwrap()
    };
    world.all(&[ALICE, BOB], &vote(MINER, 1));
    world.next_block();
    assert_eq!(refused(&world, MINER), "proposer", "it decides from block 3 on");
    world.next_block();
    execute(&world, MINER);
    world.all(&[ALICE, BOB, MINER], &vote(BOB, 0));
    world.next_block();
    // It decides until block 4.
    execute(&world, BOB);
    world.next_block();
    assert_eq!(refused(&world, BOB), "proposer");
}
