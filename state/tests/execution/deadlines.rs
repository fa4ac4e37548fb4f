//! What the sweep at the end of a block does (docs/protocol.md sections 5.7 and 5.10).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use state::table::{Table, TableId};
use state::tables::{BlobChunks, BlobPieces, BlobRemains, Blobs, Deadlines, Supplies, Unbondings};
use state::view::{Range, RawRow};
use state::{BlockBuilder, Executed, Forks, Memory, Read, StorageError, sweep};
use types::{Amount, Credit, Event, Hash, Params, Run, RunStatus, Settlement, Supply, TxEvent};

use crate::world::{
    ALICE, BOB, FUNDS, MINER, OTHER_MINER, PROPOSER, SECOND, START, Swept, Who, World, blob_chunk,
    blob_finalize, blob_init, cancel, claim, step, transfer,
};

/// What the block says of a run that its deadline ended.
fn timed_out(world: &World, agent_run_id: Hash, settlement: Settlement) -> Event {
    let Run { submitter, miner, .. } = world.run(agent_run_id);
    Event::RunTimedOut { agent_run_id, submitter, miner, settlement }
}

fn back(user_refund: u64, network_fee: u64) -> Settlement {
    Settlement {
        miner_reward: Amount::ZERO,
        user_refund: Amount::new(user_refund),
        network_fee: Amount::new(network_fee),
    }
}

#[test]
fn a_run_that_nobody_claims_is_paid_back() {
    let mut world = World::new();
    let is_due = |world: &World, now| sweep::is_due(&*world.memory, now).unwrap();
    assert!(!is_due(&world, u64::MAX));
    let run = world.request(ALICE, 500, 3);
    world.next_block();
    let deadline = START + SECOND + 900_000;
    assert_eq!(sweep::next_deadline(&*world.memory).unwrap(), Some(deadline));
    assert_eq!([deadline, deadline + 1].map(|now| is_due(&world, now)), [false, true]);
    // The block after this one has exactly the deadline's timestamp: not older than, not yet.
    world.next_block_after(900_000 - SECOND);
    assert_eq!(world.next_block_after(1).swept(), []);
    assert_eq!(world.run(run).status, RunStatus::Pending);
    let sweeps = world.next_block().swept();
    assert_eq!(sweeps, [timed_out(&world, run, back(500, 0))]);
    assert_eq!(world.balance(ALICE), FUNDS);
    assert_eq!(world.run(run).status, RunStatus::Timeout);
    assert_eq!(sweep::next_deadline(&*world.memory).unwrap(), None);
}

#[test]
fn a_block_says_what_it_did_and_whom_it_credited_beside_its_transactions() {
    let mut world = World::with_params(|params| params.block_reward = Amount::new(7));
    let old = world.request(ALICE, 500, 3);
    world.next_block_after(900_001);
    world.all(&[ALICE, MINER], &transfer(BOB, 5, 2));
    let new = world.request(BOB, 300, 3);
    let executed = world.next_block();
    let (to, amount, fee) = (BOB.address(), Amount::new(5), Amount::new(2));
    let paid = Event::Transferred { to, amount, fee };
    let (submitter, escrow) = (BOB.address(), Amount::new(300));
    let asked = Event::RunRequested { agent_run_id: new, submitter, escrow };
    let transactions = [paid.clone(), paid, asked].into_iter().zip(0..);
    let transactions: Vec<_> =
        transactions.map(|(event, position)| TxEvent { position, event }).collect();
    assert_eq!(executed.events.transactions, transactions);
    let reward = Event::RewardMinted { amount: Amount::new(7) };
    assert_eq!(executed.events.end, [timed_out(&world, old, back(500, 0)), reward]);
    let credit = |who: Who, amount| Credit { address: who.address(), amount: Amount::new(amount) };
    assert_eq!(
        executed.events.credits,
        [credit(PROPOSER, 4), credit(ALICE, 500), credit(PROPOSER, 7)],
        "fees, the refund of the old run, the reward"
    );
}

#[test]
fn a_lapsed_claim_reopens_the_run_and_excludes_the_miner() {
    let mut world = World::new();
    let run = world.claimed(500, 3);
    let reopened = Event::RunReopened { agent_run_id: run, miner: MINER.address() };
    assert_eq!(world.wait(120_001), [reopened]);
    let record = world.run(run);
    assert_eq!((record.status, record.reopens, record.miner), (RunStatus::Pending, 1, None));
    assert_eq!((record.claim, record.claimed_at), (None, None));
    assert_eq!(record.excluded_miners, [MINER.address()]);
    assert_eq!(world.code(MINER, &claim(MINER, run)), "MINER_EXCLUDED");
    // A whole new period to wait for a claim.
    assert_eq!(record.deadline_at, Some(world.parent.timestamp + 900_000));
    world.must(OTHER_MINER, &claim(OTHER_MINER, run));
    world.must(OTHER_MINER, &step(run, 0, 10));
    world.finish(OTHER_MINER, run, "completed");
    world.next_block();
    assert_eq!(world.balance(OTHER_MINER), FUNDS + 10);
    let figures = world.figures(MINER);
    assert_eq!((figures.claimed, figures.timed_out), (1, 1));
}

#[test]
fn a_run_is_reopened_so_often_and_then_ends() {
    let mut world = World::with_params(|params| params.max_reopens = 1);
    let run = world.claimed(500, 3);
    let reopened = Event::RunReopened { agent_run_id: run, miner: MINER.address() };
    assert_eq!(world.wait(120_001), [reopened]);
    world.must(OTHER_MINER, &claim(OTHER_MINER, run));
    let ended = timed_out(&world, run, back(500, 0));
    assert_eq!(world.wait(120_001), [ended]);
    assert_eq!(world.balance(ALICE), FUNDS);
    let record = world.run(run);
    assert_eq!(record.status, RunStatus::Timeout);
    assert_eq!(record.excluded_miners, [MINER.address(), OTHER_MINER.address()]);
    assert_eq!(record.miner, Some(OTHER_MINER.address()));
}

#[test]
fn a_run_that_stops_burns_its_steps_and_pays_no_miner() {
    let mut world = World::new();
    let run = world.claimed(500, 3);
    world.must(MINER, &step(run, 0, 50));
    world.must(MINER, &step(run, 1, 50));
    let ended = timed_out(&world, run, back(300, 200));
    world.next_block_after(600_001);
    let executed = world.next_block();
    assert_eq!(executed.swept(), [ended]);
    assert_eq!(executed.block.header.tokens_burned, Amount::new(200));
    assert_eq!((world.balance(ALICE), world.balance(MINER)), (FUNDS - 200, FUNDS));
}

#[test]
fn each_step_gives_the_miner_a_new_period() {
    let mut world = World::new();
    let run = world.claimed(500, 3);
    world.must(MINER, &step(run, 0, 50));
    world.next_block_after(600_000);
    world.must(MINER, &step(run, 1, 50));
    world.next_block_after(600_000);
    assert_eq!(world.next_block().swept(), []);
    assert_eq!(world.run(run).status, RunStatus::Running);
}

#[test]
fn a_transaction_beats_the_sweep_of_its_block() {
    let mut world = World::new();
    let run = world.request(ALICE, 500, 3);
    world.next_block_after(900_001);
    world.must(MINER, &claim(MINER, run));
    assert_eq!(world.next_block().swept(), []);
    assert_eq!(world.run(run).status, RunStatus::Claimed);
}

#[test]
fn a_block_sweeps_so_many_in_order_of_deadline_and_id() {
    let mut world = World::with_params(|params| params.max_expiries_per_block = 2);
    let early = world.request(BOB, 500, 3);
    world.next_block();
    let mut late = [world.request(ALICE, 500, 3), world.request(ALICE, 500, 3)];
    late.sort_unstable();
    world.next_block_after(900_001);
    for due in [vec![early, late[0]], vec![late[1]]] {
        let swept = world.next_block().swept();
        let ended: Vec<_> =
            due.into_iter().map(|run| timed_out(&world, run, back(500, 0))).collect();
        assert_eq!(swept, ended);
    }
    assert_eq!(world.balance(ALICE), FUNDS);
}

/// What a sweep did when blobs were left alone first, and a run after them.
fn swept_behind_blobs(v7: Option<u64>, blobs: u32) -> Vec<Event> {
    let params = Params {
        max_expiries_per_block: 1,
        blob_ttl_ms: 1_000,
        blob_init_fee: Amount::ZERO,
        pending_ttl_ms: 1_000,
        ..Params::default()
    };
    let mut world = World::with_forks(params, Forks { v7, ..Forks::default() }, &[(PROPOSER, 1)]);
    for number in 0..blobs {
        world.must(BOB, &blob_init(&format!("blob{number:04}"), b"bytes"));
    }
    world.next_block_after(1);
    world.request(ALICE, 500, 3);
    world.next_block_after(10_000);
    world.next_block().swept()
}

#[test]
fn blobs_that_were_left_alone_keep_no_escrow_from_v7_on() {
    for blobs in [1, 3, 200] {
        let first = Event::BlobDropped { blob_id: "blob0000".to_owned() };
        assert_eq!(swept_behind_blobs(None, blobs), std::slice::from_ref(&first));
        match swept_behind_blobs(Some(0), blobs).as_slice() {
            [Event::RunTimedOut { submitter, .. }, dropped] => {
                assert_eq!((*submitter, dropped), (ALICE.address(), &first));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_unfinished_blob_is_dropped_and_its_id_is_free_again() {
    let mut world = World::new();
    let bytes = vec![7; 400_001];
    world.must(ALICE, &blob_init("big", &bytes));
    world.must(ALICE, &blob_chunk("big", 1, &bytes[400_000..]));
    assert_eq!(world.wait(3_600_001), [Event::BlobDropped { blob_id: "big".to_owned() }]);
    assert_eq!(world.state().get::<Blobs>(&"big".to_owned()).unwrap(), None);
    assert_eq!(world.state().get::<BlobChunks>(&(1, "big".to_owned())).unwrap(), None);
    world.blob(BOB, "big", &bytes);
    world.next_block();
}

/// Counts look-ups of chunks, and deadlines that are read.
struct Counting {
    below: Arc<Memory>,
    chunks: AtomicUsize,
    deadlines: AtomicUsize,
}

impl Counting {
    fn over(world: &World) -> Arc<Self> {
        let (chunks, deadlines) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { below: Arc::clone(&world.memory), chunks, deadlines })
    }

    /// A block on top of the world's last one, so much later.
    fn block_after(self: &Arc<Self>, world: &World, after_ms: u64) -> BlockBuilder {
        let (chain, base) = (Arc::clone(&world.chain), Arc::<Self>::clone(self));
        let now = world.parent.timestamp + after_ms;
        BlockBuilder::new(chain, base, world.parent, &PROPOSER.key(), now).unwrap()
    }
}

impl Read for Counting {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        if table == BlobChunks::ID {
            self.chunks.fetch_add(1, Ordering::SeqCst);
        }
        self.below.get_raw(table, key)
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        let rows = self.below.scan_raw(table, range)?;
        if table == Deadlines::ID {
            self.deadlines.fetch_add(rows.len(), Ordering::SeqCst);
        }
        Ok(rows)
    }
}

#[test]
fn dropping_a_blob_reads_no_chunk() {
    for chunks in [0, 1, 2] {
        let mut world = World::new();
        let bytes = vec![7; 1_000_000];
        world.must(ALICE, &blob_init("big", &bytes));
        for index in 0..chunks {
            world.must(ALICE, &blob_chunk("big", index, &bytes[..400_000]));
        }
        world.next_block();
        let counting = Counting::over(&world);
        let builder = counting.block_after(&world, 3_600_001);
        assert_eq!(builder.finish().unwrap().swept().len(), 1);
        assert_eq!(counting.chunks.load(Ordering::SeqCst), 0);
    }
}

/// Every run is taken back in the block in which its deadline has passed, and money is due at many
/// moments beside.
#[test]
fn a_sweep_reads_deadlines_once_whatever_the_block_did_to_them() {
    const RUNS: usize = 200;
    const PAYMENTS: u64 = 300;
    let forks = Forks { v7: Some(0), ..Forks::default() };
    let mut world = World::with_forks(Params::default(), forks, &[(PROPOSER, 1)]);
    let runs: Vec<Hash> = (0..RUNS).map(|_| world.request(ALICE, 100, 1)).collect();
    world.next_block();
    let (now, miner) = (world.parent.timestamp, MINER.address());
    let supply = Supply { unbonding: Amount::new(PAYMENTS), ..world.supply() };
    world.write(|draft| {
        for due in now..now + PAYMENTS {
            draft.put::<Unbondings>(&(miner, due), &Amount::new(1));
            draft.put::<Deadlines>(&state::bonds::deadline_key(due, &miner), &());
        }
        draft.put::<Supplies>(&(), &supply);
    });
    let counting = Counting::over(&world);
    let mut builder = counting.block_after(&world, 900_001);
    let first = world.account(ALICE).nonce;
    for (nonce, run) in (first..).zip(runs) {
        builder.push(&world.tx(ALICE, nonce, &cancel(run)).unwrap()).unwrap();
    }
    let swept = builder.finish().unwrap().swept().len();
    assert_eq!(u64::try_from(swept).unwrap(), PAYMENTS);
    let read = counting.deadlines.load(Ordering::SeqCst);
    assert!(read <= 3 * (RUNS + swept), "{read} rows were read");
}

#[test]
fn what_came_and_went_in_one_block_leaves_no_row() {
    let mut world = World::new();
    let run = world.claimed(500, 3);
    world.must(MINER, &step(run, 0, 50));
    world.finish(MINER, run, "completed");
    let changes = world.next_block().changes;
    let deleted = changes.values().flat_map(|rows| rows.values()).filter(|row| row.is_none());
    assert_eq!(deleted.count(), 0);
}

/// The rows of chunks of a blob.
fn chunk_rows(world: &World, id: &str) -> Vec<u32> {
    let rows = world.rows::<BlobChunks>();
    rows.into_iter().filter(|((_, blob), _)| blob == id).map(|((index, _), _)| index).collect()
}

/// A chain on which blobs may have many chunks.
fn world_of_large_blobs() -> World {
    World::with_params(|params| {
        params.max_blob_bytes = 4_000 * 400_000;
        params.max_block_bytes = u32::MAX;
    })
}

/// Nothing is left of any chunk.
fn assert_no_chunks(world: &World) {
    assert_eq!(world.rows::<BlobChunks>(), []);
    assert_eq!(world.rows::<BlobRemains>(), []);
}

#[test]
fn the_chunks_of_dropped_blobs_go_little_by_little() {
    let mut world = world_of_large_blobs();
    for id in ["one", "other"] {
        world.put_begun_blob(id, 3_000 * 400_000, 2_000);
    }
    let swept = |executed: &Executed| executed.swept().len();
    world.next_block_after(3_600_001);
    let executed = world.next_block();
    assert_eq!(swept(&executed), 2);
    let deleted = |executed: &Executed| executed.changes[&BlobChunks::ID].len();
    assert_eq!(deleted(&executed), 2_048);
    assert_eq!((chunk_rows(&world, "one").len(), chunk_rows(&world, "other").len()), (0, 1_952));
    assert_eq!(deleted(&world.next_block()), 1_952);
    assert_no_chunks(&world);
    assert_eq!(world.rows::<BlobPieces>(), []);
}

#[test]
fn a_new_blob_of_the_same_id_has_nothing_of_the_old_one() {
    let mut world = world_of_large_blobs();
    // Sorted by id, the large one is cleared first, so that some chunks of the other stay for a while.
    world.put_begun_blob("a-large-one", 3_000 * 400_000, 2_046);
    world.put_begun_blob("same", 3_000 * 400_000, 2_000);
    world.next_block_after(3_600_001);
    world.next_block();
    assert!(chunk_rows(&world, "same").len() > 1_000);
    let bytes = vec![7; 400_001];
    world.must(BOB, &blob_init("same", &bytes));
    // The old chunk 1 is not taken for one of the new blob.
    world.must(BOB, &blob_chunk("same", 0, &bytes[..400_000]));
    assert_eq!(world.refused(BOB, &blob_finalize("same")), "BLOB_CHUNK");
    world.must(BOB, &blob_chunk("same", 1, &bytes[..1]));
    world.must(BOB, &blob_finalize("same"));
    while !world.rows::<BlobRemains>().is_empty() {
        world.next_block();
    }
    assert_eq!(chunk_rows(&world, "same"), [0, 1], "the new chunks stay");
    assert!(chunk_rows(&world, "a-large-one").is_empty());
    let chunk = world.state().get::<BlobChunks>(&(0, "same".to_owned())).unwrap().unwrap();
    assert_eq!(chunk.len(), 400_000);
}

#[test]
fn a_blob_that_was_dropped_twice_leaves_nothing() {
    let mut world = world_of_large_blobs();
    world.put_begun_blob("a-large-one", 4_000 * 400_000, 3_900);
    world.put_begun_blob("same", 3_000 * 400_000, 2_000);
    world.next_block_after(3_600_001);
    world.next_block();
    world.must(BOB, &blob_init("same", &vec![7; 800_001]));
    world.must(BOB, &blob_chunk("same", 1, &vec![7; 400_000]));
    let executed = world.next_block_after(3_600_001);
    assert_eq!(executed.swept(), []);
    assert!(!world.next_block().swept().is_empty());
    world.next_blocks(2);
    assert_no_chunks(&world);
}
