//! What accepted transactions do.

use state::tables::{
    BlobChunks, Blobs, ConversationTurns, Deadlines, MinerIds, Miners, RunsByConversation,
    RunsByMiner, RunsByStatus, RunsBySubmitter, Steps, Turns,
};
use types::{Amount, Body, Hash, MinerFigures, RunStatus, Settlement};

use crate::bodies::register_miner;
use crate::world::{
    ALICE, BOB, FUNDS, MINER, PROPOSER, SECOND, START, STRANGER, World, blob_chunk, blob_finalize,
    blob_init, cancel, chat, claim, conversation, step, transfer, turn,
};

#[test]
fn the_worked_example_is_settled_to_the_micro() {
    let mut world = World::new();
    let run = world.request(ALICE, 1_000_000, 200);
    assert_eq!(world.balance(ALICE), FUNDS - 1_000_000);
    assert_eq!(world.supply().escrowed, Amount::new(1_000_000));
    world.next_block();
    world.must(MINER, &claim(MINER, run));
    for index in 0..8 {
        world.must(MINER, &step(run, index, 625));
    }
    world.next_block();
    world.finish(MINER, run, "completed");
    let block = world.next_block().block;
    assert_eq!(block.header.tokens_burned, Amount::new(800));
    assert_eq!(world.balance(MINER), FUNDS + 5_000);
    assert_eq!(world.balance(ALICE), FUNDS - 1_000_000 + 994_200);
    assert_eq!(world.supply().escrowed, Amount::ZERO);
    let settlement = Settlement {
        miner_reward: Amount::new(5_000),
        user_refund: Amount::new(994_200),
        network_fee: Amount::new(800),
    };
    let run = world.run(run);
    assert_eq!(run.settlement, Some(settlement));
    assert_eq!((run.status, run.step_count, run.tokens_out), (RunStatus::Completed, 8, 5_000));
    assert_eq!(run.deadline_at, None);
}

#[test]
fn a_run_leaves_its_rows_in_every_index() {
    let mut world = World::new();
    world.must(ALICE, &chat("hello"));
    let id = world.request(ALICE, 1_000, 3);
    world.next_block();
    world.must(MINER, &claim(MINER, id));
    let first = world.must(MINER, &step(id, 0, 7));
    let second = world.must(MINER, &step(id, 2, 8));
    world.next_block();
    let state = world.state();
    let (height, position) = (1, 1);
    for (status, expected) in
        [(RunStatus::Running, Some(id)), (RunStatus::Pending, None), (RunStatus::Claimed, None)]
    {
        let key = (RunsByStatus::place(status), height, position);
        assert_eq!(state.get::<RunsByStatus>(&key).unwrap(), expected, "{status:?}");
    }
    let by_submitter = (ALICE.address(), height, position);
    assert_eq!(state.get::<RunsBySubmitter>(&by_submitter).unwrap(), Some(id));
    let by_miner = (MINER.address(), height, position);
    assert_eq!(state.get::<RunsByMiner>(&by_miner).unwrap(), Some(id));
    let by_conversation = (conversation(), height, position);
    assert_eq!(state.get::<RunsByConversation>(&by_conversation).unwrap(), Some(id));
    let run = world.run(id);
    assert_eq!(run.deadline_at, Some(START + 2 * SECOND + 600_000));
    let deadline = (run.deadline_at.unwrap(), Deadlines::RUN, id.to_string());
    assert_eq!(state.get::<Deadlines>(&deadline).unwrap(), Some(()));
    let recorded = state.get::<Steps>(&(id, 2)).unwrap().unwrap();
    assert_eq!((recorded.output_tokens, recorded.tx.height, recorded.tx.position), (8, 2, 2));
    let digest = [first, second].iter().fold(Hash::ZERO, |digest, tx| {
        Hash::digest_parts(&[digest.as_bytes(), tx.hash().as_bytes()])
    });
    assert_eq!(run.steps_digest, digest);
    let figures = MinerFigures { claimed: 1, tokens: 15, ..MinerFigures::default() };
    assert_eq!(world.figures(MINER), figures);
}

#[test]
fn a_submitter_may_mine_its_own_run() {
    let mut world = World::new();
    let run = world.request(ALICE, 10_000, 3);
    world.must(ALICE, &claim(ALICE, run));
    world.must(ALICE, &step(run, 0, 500));
    world.finish(ALICE, run, "completed");
    world.next_block();
    assert_eq!(world.balance(ALICE), FUNDS - 100);
}

#[test]
fn the_reward_ends_where_the_escrow_does() {
    let mut world = World::new();
    let run = world.claimed(300, 3);
    world.must(MINER, &step(run, 0, 100_000));
    world.finish(MINER, run, "failed");
    world.next_block();
    assert_eq!(world.balance(MINER), FUNDS + 200);
    assert_eq!(world.balance(ALICE), FUNDS - 300);
    let figures = world.figures(MINER);
    assert_eq!((figures.completed, figures.failed), (0, 1));
    assert_eq!(figures.earnings, Amount::new(200));
}

#[test]
fn every_final_status_ends_a_run_and_is_counted() {
    let mut world = World::new();
    for (status, completed, failed, timed_out) in [
        ("completed", 1, 0, 0),
        ("failed", 1, 1, 0),
        ("timeout", 1, 1, 1),
        ("insufficient_funds", 1, 2, 1),
        ("cancelled", 1, 3, 1),
    ] {
        let run = world.claimed(300, 3);
        world.finish(MINER, run, status);
        assert_eq!(world.run(run).status.as_str(), status);
        let figures = world.figures(MINER);
        let counted = (figures.completed, figures.failed, figures.timed_out);
        assert_eq!(counted, (completed, failed, timed_out), "{status}");
    }
    world.next_block();
    assert_eq!(world.balance(ALICE), FUNDS);
}

#[test]
fn a_cancelled_run_gives_everything_back() {
    let mut world = World::new();
    let run = world.request(ALICE, 300, 3);
    world.next_block();
    world.must(ALICE, &cancel(run));
    world.next_block();
    assert_eq!(world.balance(ALICE), FUNDS);
    let run = world.run(run);
    assert_eq!(run.status, RunStatus::Cancelled);
    assert_eq!(run.settlement.unwrap().user_refund, Amount::new(300));
    assert_eq!(run.finish.map(|place| place.height), Some(2));
}

#[test]
fn a_transfer_moves_amount_and_fee() {
    let mut world = World::new();
    world.must(ALICE, &transfer(STRANGER, 1_000, 7));
    assert_eq!(world.balance(ALICE), FUNDS - 1_007);
    assert_eq!(world.balance(STRANGER), 1_000);
    assert_eq!(world.balance(PROPOSER), FUNDS + 7);
    world.must(STRANGER, &transfer(ALICE, 1_000, 0));
    assert_eq!(world.balance(STRANGER), 0);
    assert_eq!(world.account(STRANGER).nonce, 1);
    world.next_block();
}

#[test]
fn a_transfer_to_oneself_mints_nothing() {
    let mut world = World::new();
    world.must(ALICE, &transfer(ALICE, FUNDS - 5, 5));
    assert_eq!(world.balance(ALICE), FUNDS - 5);
    world.must(PROPOSER, &transfer(PROPOSER, FUNDS - 5, 5));
    assert_eq!(world.balance(PROPOSER), FUNDS + 5);
    world.next_block();
}

#[test]
fn a_turn_is_burned_and_found_again() {
    let mut world = World::new();
    let first = world.must(ALICE, &chat("one"));
    let mut answer = turn("two");
    answer.parent_turn_hash = Some(first.hash());
    let second = world.must(BOB, &Body::ChatTurn(answer));
    let block = world.next_block().block;
    assert_eq!(block.header.tokens_burned, Amount::new(200));
    assert_eq!(world.supply().burned, Amount::new(200));
    let place = world.state().get::<Turns>(&second.hash()).unwrap().unwrap();
    assert_eq!((place.tx.height, place.tx.position), (1, 1));
    let key = (conversation(), 1, 1);
    assert_eq!(world.state().get::<ConversationTurns>(&key).unwrap(), Some(second.hash()));
}

#[test]
fn a_miner_keeps_its_first_id() {
    let mut world = World::new();
    let first = world.must(MINER, &register_miner("one"));
    world.next_block();
    world.must(MINER, &register_miner("two"));
    world.next_block();
    let miner = world.state().get::<Miners>(&MINER.address()).unwrap().unwrap();
    assert_eq!(miner.miner_id, Hash::digest(first.hash().to_string().as_bytes()));
    assert_eq!((miner.name.as_str(), miner.registered_at), ("two", START + 2 * SECOND));
    let address = world.state().get::<MinerIds>(&miner.miner_id).unwrap();
    assert_eq!(address, Some(MINER.address()));
}

#[test]
fn a_blob_of_two_chunks_is_put_together() {
    let mut world = World::new();
    let bytes = vec![7; 400_001];
    world.must(ALICE, &blob_init("big", &bytes));
    world.next_block();
    world.must(ALICE, &blob_chunk("big", 1, &bytes[400_000..]));
    world.must(ALICE, &blob_chunk("big", 0, &bytes[..400_000]));
    world.must(ALICE, &blob_finalize("big"));
    let executed = world.next_block();
    assert_eq!(executed.block.header.tokens_burned, Amount::new(200));
    let blob = world.state().get::<Blobs>(&"big".to_owned()).unwrap().unwrap();
    assert!(blob.is_final);
    let chunk = world.state().get::<BlobChunks>(&(1, "big".to_owned())).unwrap();
    assert_eq!(chunk, Some(vec![7]));
    assert_eq!(world.wait(10 * 3_600_000), [], "a finalised blob has no deadline");
}
