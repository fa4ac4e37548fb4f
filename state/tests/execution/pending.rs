//! The pool's draft against the plain way: forget it after every block and admit again whatever
//! still waits.

use std::sync::Arc;

use fixtures::finish;
use proptest::prelude::*;
use state::memory::Memory;
use state::table::{Table, TableId};
use state::tables::{BlobChunks, Blobs};
use state::view::{Range, RawRow, Read, Still};
use state::{Base, PendingState, Retracted, SharedPending, StorageError, TxError};
use types::tx::BlobInit;
use types::{Account, Address, Amount, Bid, Body, CheckedTx, Hash, Params, RunStatus};

use crate::acts::{Act, acts};
use crate::model::Model;
use crate::model_rules::ModelPlace;
use crate::world::{
    ALICE, BOB, FUNDS, MINER, PROPOSER, SECOND, STRANGER, Swept, V7, Who, World, answer,
    blob_chunk, blob_finalize, chat, claim, step, transfer, turn,
};

/// Admits what somebody sends next.
fn admit(world: &World, pending: &mut PendingState, who: Who, body: &Body) -> CheckedTx {
    let tx = world.pool_tx(pending, who, body);
    pending.admit(&tx).unwrap();
    tx
}

/// Simulates what ALICE sends next, and admits it.
fn simulate_and_admit(world: &World, pending: &mut PendingState, body: &Body) -> CheckedTx {
    let tx = world.pool_tx(pending, ALICE, body);
    pending.simulate(&tx, 9, world.parent.timestamp + SECOND).unwrap();
    pending.admit(&tx).unwrap();
    tx
}

fn status(pending: &PendingState, run: Hash) -> Option<RunStatus> {
    pending.run(&run).unwrap().map(|run| run.status)
}

#[test]
fn a_whole_run_may_wait_together() {
    let world = World::new();
    let mut pending = world.pool();
    let request = world.request_body(ALICE, 1_000, 3);
    let run = request.agent_run_id().unwrap();
    admit(&world, &mut pending, ALICE, &request);
    admit(&world, &mut pending, MINER, &claim(MINER, run));
    admit(&world, &mut pending, MINER, &step(run, 0, 10));
    assert_eq!(status(&pending, run), Some(RunStatus::Running));
    assert_eq!(pending.account(ALICE.address()).unwrap().balance, Amount::new(FUNDS - 1_000));
    let end = world.pool_tx(&pending, MINER, &finish(run, 10, [10, 890, 100]).into());
    let effects = pending.simulate(&end, 1, world.parent.timestamp + SECOND).unwrap();
    assert_eq!(effects.burned, Amount::new(100));
    assert_eq!(effects.run.map(|run| run.status), Some(RunStatus::Completed));
    pending.admit(&end).unwrap();
    let late = world.pool_tx(&pending, BOB, &claim(BOB, run));
    assert_eq!(answer(pending.admit(&late)), "RUN_NOT_PENDING");
    assert_eq!(pending.len(), 4);
    drop(pending.reset(world.still()).unwrap());
    assert!(pending.is_empty() && pending.run(&run).unwrap().is_none());
}

#[test]
fn a_simulation_stands_on_what_waits() {
    let world = World::new();
    let mut pending = world.pool();
    admit(&world, &mut pending, ALICE, &transfer(BOB, 5, 0));
    let next = world.pool_tx(&pending, ALICE, &chat("hello"));
    let effects = pending.simulate(&next, 1, world.parent.timestamp + SECOND).unwrap();
    let change = (Amount::new(FUNDS - 5), Amount::new(FUNDS - 105));
    assert_eq!(effects.balances[&ALICE.address()], change);
    pending.admit(&next).unwrap();
}

/// The state of a world whose database fails for one account.
struct Failing {
    below: Arc<Memory>,
    account: Address,
}

impl Read for Failing {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        if key == self.account.as_bytes() {
            return Err(StorageError::Inconsistent { what: "the test says so" });
        }
        self.below.get_raw(table, key)
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        self.below.scan_raw(table, range)
    }
}

#[test]
fn a_fault_in_the_middle_of_a_transaction_leaves_nothing_of_it() {
    let world = World::new();
    let failing = Failing { below: Arc::clone(&world.memory), account: BOB.address() };
    let failing = Base { state: Still::vouched(Arc::new(failing)), height: 0 };
    let mut pending = PendingState::new(failing, Arc::clone(&world.chain)).unwrap();
    admit(&world, &mut pending, ALICE, &transfer(MINER, 1, 0));
    let before = pending.account(ALICE.address()).unwrap();
    // The sender has paid when the receiver cannot be read.
    let faulty = world.pool_tx(&pending, ALICE, &transfer(BOB, 5, 0));
    let error = pending.admit(&faulty).unwrap_err();
    assert!(matches!(error, TxError::Storage(_)), "{error}");
    assert_eq!(pending.account(ALICE.address()).unwrap(), before);
    admit(&world, &mut pending, ALICE, &transfer(MINER, 1, 0));
    assert_eq!(pending.len(), 2);
}

#[test]
fn a_pending_fee_shows_in_no_account() {
    let world = World::new();
    let mut pending = world.pool();
    admit(&world, &mut pending, ALICE, &transfer(BOB, 5, 3));
    for nobody in [Address::default(), Address::new([0xff; 20])] {
        assert_eq!(pending.account(nobody).unwrap(), Account::default());
    }
    assert_eq!(pending.account(ALICE.address()).unwrap().balance, Amount::new(FUNDS - 8));
}

#[test]
fn a_simulated_fee_goes_to_nobody_known() {
    let world = World::new();
    let pending = world.pool();
    let tx = world.pool_tx(&pending, ALICE, &transfer(BOB, 5, 3));
    let effects = pending.simulate(&tx, 1, world.parent.timestamp + SECOND).unwrap();
    let expected = [
        (ALICE.address(), (Amount::new(FUNDS), Amount::new(FUNDS - 8))),
        (BOB.address(), (Amount::new(FUNDS), Amount::new(FUNDS + 5))),
    ];
    assert_eq!(effects.balances, expected.into());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Senders that are left out of a block (their share is used up) stay in the pool, and so does
    /// everything that builds on them.
    #[test]
    fn advancing_is_as_good_as_admitting_again(acts in acts(150)) {
        let mut pool = Pool::of(World::new());
        for act in acts {
            if act.ends_block() {
                pool.commit_some(act);
            } else {
                pool.admit(act);
            }
        }
    }

    /// Whatever waits beside it, and whatever blocks took meanwhile.
    #[test]
    fn taking_back_is_as_good_as_never_admitting(acts in acts(150)) {
        let mut pool = Pool::of(world_of_v7());
        for act in acts {
            // What only reads what another one wrote is not found: no turns and no blobs.
            let act = Act { kind: if matches!(act.kind, 0 | 1 | 19..=21) { 17 } else { act.kind }, ..act };
            if !act.ends_block() {
                pool.admit(act);
            } else if act.twist.is_multiple_of(4) {
                pool.commit_some(act);
            } else {
                for _ in 0..act.twist % 8 {
                    pool.take_back(Who(act.who).address());
                }
                pool.compare(&[]);
            }
        }
    }
}

fn world_of_v7() -> World {
    World::with_forks(Params::default(), V7, &[(PROPOSER, 1)])
}

/// A pool under random acts.
struct Pool {
    world: World,
    pending: PendingState,
    /// Only its runs, turns and blobs are looked at, to choose sensible actions.
    model: Model,
    waiting: Vec<CheckedTx>,
}

impl Pool {
    fn of(world: World) -> Self {
        let rich = (1..7).map(|who| (Who(who).address(), i128::from(u64::MAX)));
        let model = Model::new(world.chain.params.clone(), PROPOSER.address(), rich.collect());
        Self { pending: world.pool(), world, model, waiting: Vec::new() }
    }

    fn admit(&mut self, act: Act) {
        let Self { world, pending, model, waiting } = self;
        let sender = act.sender(model);
        let nonce = pending.account(sender.address()).unwrap().nonce;
        let body = act.body(model, sender, nonce);
        let tx = world.tx(sender, nonce, &body).unwrap();
        let is_v7 = world.chain.forks.v7.is_some();
        // The pool takes it before it knows the hash of what waits; it is not in any block then.
        if !is_v7 && model.has_wrong_bytes(&body) {
            return;
        }
        if pending.admit(&tx).is_ok() {
            let place = ModelPlace { payload: tx.payload().len(), bid: &Bid::default() };
            let answer = model.send(sender.address(), nonce, &body, tx.hash(), &place);
            // The model does not know the fees of v7 here.
            assert!(is_v7 || answer == "ok", "{answer}");
            waiting.push(tx);
        }
    }

    fn last_of(&self, from: Address) -> Option<&CheckedTx> {
        self.waiting.iter().rev().find(|tx| tx.from() == from)
    }

    /// Takes the sender's last one back, and before it what builds on it.
    fn take_back(&mut self, from: Address) {
        let mut goals: Vec<Hash> = self.last_of(from).iter().map(|tx| tx.hash()).collect();
        for _ in 0..500 {
            let Some(goal) = goals.last().copied() else { return };
            let Some(tx) = self.waiting.iter().find(|tx| tx.hash() == goal) else {
                goals.pop();
                continue;
            };
            let last = self.last_of(tx.from()).unwrap().clone();
            match self.pending.retract(&last).unwrap() {
                Retracted::Yes => self.waiting.retain(|tx| *tx != last),
                Retracted::After(hash) => goals.push(hash),
                Retracted::Spent(address) => goals.push(self.last_of(address).unwrap().hash()),
                Retracted::Unknown => panic!("{} cannot be taken back", last.body().type_name()),
            }
        }
    }

    /// The draft is what comes of admitting what waits to a new one.
    fn compare(&self, included: &[CheckedTx]) {
        let Self { world, pending, waiting, .. } = self;
        let mut again = world.pool();
        for tx in waiting {
            again.admit(tx).unwrap();
        }
        assert_eq!(pending.len(), again.len());
        for who in (1..7).map(Who) {
            let [ours, theirs] = [pending, &again].map(|it| it.account(who.address()).unwrap());
            assert_eq!(ours, theirs, "{who:?}");
        }
        for id in waiting.iter().chain(included).filter_map(|tx| tx.body().agent_run_id()) {
            let (ours, theirs) = (pending.run(&id).unwrap(), again.run(&id).unwrap());
            let facts = |run: types::Run| (run.status, run.step_count, run.tokens_out, run.miner);
            assert_eq!(ours.map(facts), theirs.map(facts));
        }
    }

    /// A block with what waits, perhaps without that of one sender.
    fn commit_some(&mut self, act: Act) {
        let left_out = Who(act.who).address();
        let (mut included, mut rest) = (Vec::new(), Vec::new());
        for tx in std::mem::take(&mut self.waiting) {
            let is_left_out = tx.from() == left_out && act.twist.is_multiple_of(2);
            let is_taken = !is_left_out && self.world.push(&tx).is_ok();
            if is_taken { included.push(tx) } else { rest.push(tx) }
        }
        let executed = self.world.next_block();
        assert_eq!(executed.swept(), []);
        assert!(self.world.tell(&mut self.pending, &included, &executed));
        self.waiting = rest;
        self.compare(&included);
    }
}

#[test]
fn what_another_one_builds_on_is_taken_back_after_it() {
    let world = world_of_v7();
    let mut pending = world.pool();
    let request = world.request_body(ALICE, 1_000, 3);
    let run = request.agent_run_id().unwrap();
    let request = admit(&world, &mut pending, ALICE, &request);
    let claim = admit(&world, &mut pending, MINER, &claim(MINER, run));
    let step = admit(&world, &mut pending, MINER, &step(run, 0, 10));
    assert_eq!(Retracted::After(step.hash()), pending.retract(&request).unwrap());
    assert_eq!(Retracted::Unknown, pending.retract(&claim).unwrap());
    assert_eq!(Retracted::Yes, pending.retract(&step).unwrap());
    assert_eq!(Some(RunStatus::Claimed), status(&pending, run));
    assert_eq!(Retracted::Yes, pending.retract(&claim).unwrap());
    assert_eq!(Some(RunStatus::Pending), status(&pending, run));
    assert_eq!(Retracted::Yes, pending.retract(&request).unwrap());
    assert!(pending.is_empty() && pending.run(&run).unwrap().is_none());
    assert_eq!(FUNDS, pending.account(ALICE.address()).unwrap().balance.get());
}

#[test]
fn what_paid_for_something_is_taken_back_after_it() {
    let world = world_of_v7();
    let mut pending = world.pool();
    let paying = admit(&world, &mut pending, ALICE, &transfer(STRANGER, FUNDS / 2, 0));
    let spending = admit(&world, &mut pending, STRANGER, &transfer(BOB, FUNDS / 4, 0));
    assert_eq!(Retracted::Spent(STRANGER.address()), pending.retract(&paying).unwrap());
    assert_eq!(Retracted::Yes, pending.retract(&spending).unwrap());
    assert_eq!(Retracted::Yes, pending.retract(&paying).unwrap());
    let accounts = [ALICE, BOB, STRANGER].map(|who| pending.account(who.address()).unwrap());
    let funded = Account { nonce: 0, balance: Amount::new(FUNDS) };
    assert_eq!([funded, funded, Account::default()], accounts);
}

#[test]
fn what_stands_alone_needs_nothing_of_others_that_wait() {
    let world = world_of_v7();
    let mut pending = world.pool();
    let request = world.request_body(ALICE, 1_000, 3);
    let run = request.agent_run_id().unwrap();
    let request = admit(&world, &mut pending, ALICE, &request);
    let claim = world.pool_tx(&pending, MINER, &claim(MINER, run));
    assert!(!pending.stands_alone(&claim, &[]).unwrap(), "the request waits");
    let paying = admit(&world, &mut pending, ALICE, &transfer(STRANGER, FUNDS / 2, 0));
    let before = [request, paying];
    let more = world.pool_tx(&pending, ALICE, &transfer(BOB, FUNDS / 4, 0));
    assert!(pending.stands_alone(&more, &before).unwrap());
    let all = world.pool_tx(&pending, ALICE, &transfer(BOB, FUNDS / 2, 0));
    assert!(
        !pending.stands_alone(&all, &before).unwrap(),
        "what waits of the sender has its money"
    );
    let spending = world.pool_tx(&pending, STRANGER, &transfer(BOB, FUNDS / 4, 0));
    assert!(!pending.stands_alone(&spending, &[]).unwrap(), "the payment waits");
    assert_eq!(FUNDS / 2, pending.account(STRANGER.address()).unwrap().balance.get());
}

#[test]
fn before_v7_nothing_is_taken_back() {
    let world = World::new();
    let mut pending = world.pool();
    let sent = admit(&world, &mut pending, ALICE, &transfer(BOB, 1, 0));
    assert_eq!(Retracted::Unknown, pending.retract(&sent).unwrap());
    assert_eq!(1, pending.len());
}

/// A blob of two chunks, of which the first is in a block.
fn begun_blob(world: &mut World, content: &[u8]) -> Vec<u8> {
    let bytes = vec![7; 400_001];
    let content_hash = Hash::digest(content);
    world.must(ALICE, &BlobInit { content_hash, ..fixtures::blob_init("b", &bytes) }.into());
    world.must(ALICE, &blob_chunk("b", 0, &bytes[..400_000]));
    world.next_block();
    bytes
}

#[test]
fn a_blob_may_be_finished_and_used_before_its_hash_is_known() {
    let mut world = World::new();
    let bytes = begun_blob(&mut world, &[7; 400_001]);
    let mut pending = world.pool();
    let finalize = world.pool_tx(&pending, ALICE, &blob_finalize("b"));
    assert_eq!(answer(pending.check(&finalize)), "BLOB_CHUNK");
    let mut use_it = turn("see the blob");
    use_it.content_blob_id = Some("b".to_owned());
    let last = blob_chunk("b", 1, &bytes[400_000..]);
    let bodies = [last, blob_finalize("b"), Body::ChatTurn(use_it)];
    let all = bodies.map(|body| simulate_and_admit(&world, &mut pending, &body));
    // The block has the same opinion, and knows the hash.
    for tx in &all {
        world.push(tx).unwrap();
    }
    let blob = world.state().get::<Blobs>(&"b".to_owned()).unwrap().unwrap();
    assert_eq!((blob.is_final, blob.received_hash), (true, Some(Hash::digest(&bytes))));
}

#[test]
fn a_blob_of_other_bytes_is_refused_as_soon_as_its_hash_is_known() {
    let mut world = World::new();
    let bytes = begun_blob(&mut world, b"something else");
    let mut pending = world.pool();
    let last = admit(&world, &mut pending, ALICE, &blob_chunk("b", 1, &bytes[400_000..]));
    let finalize = admit(&world, &mut pending, ALICE, &blob_finalize("b"));
    world.push(&last).unwrap();
    assert_eq!(answer(world.builder().push(&finalize)), "BLOB_HASH");
    world.next_block();
    drop(pending.reset(world.still()).unwrap());
    assert_eq!(answer(pending.check(&finalize)), "BLOB_HASH");
}

/// A state that counts what is asked of blobs' bytes.
struct NoBytes(Arc<Memory>);

impl Read for NoBytes {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        assert_ne!(table, BlobChunks::ID, "somebody read the bytes of a blob");
        self.0.get_raw(table, key)
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        assert_ne!(table, BlobChunks::ID, "somebody read the bytes of a blob");
        self.0.scan_raw(table, range)
    }
}

#[test]
fn neither_pool_nor_simulation_reads_the_bytes_of_a_blob() {
    let mut world = World::new();
    let bytes = begun_blob(&mut world, &[7; 400_001]);
    let state = Still::vouched(Arc::new(NoBytes(Arc::clone(&world.memory))));
    let base = Base { state, height: world.parent.height };
    let mut pending = PendingState::new(base, Arc::clone(&world.chain)).unwrap();
    let again = world.pool_tx(&pending, ALICE, &blob_chunk("b", 0, &bytes[..400_000]));
    assert_eq!(answer(pending.check(&again)), "BLOB_CHUNK");
    for body in [blob_chunk("b", 1, &bytes[400_000..]), blob_finalize("b")] {
        simulate_and_admit(&world, &mut pending, &body);
    }
}

#[test]
fn a_simulation_that_is_overtaken_answers_for_one_moment() {
    let world = World::new();
    let shared = Arc::new(SharedPending::new(world.still(), Arc::clone(&world.chain)).unwrap());
    let pay = |nonce, to| world.tx(ALICE, nonce, &transfer(to, 5, 0)).unwrap();
    shared.lock().admit(&pay(0, BOB)).unwrap();
    // Simulations of the next nonce, while another thread admits and forgets a transaction of it.
    let next = pay(1, MINER);
    let other = pay(1, BOB);
    std::thread::scope(|scope| {
        let admitting = scope.spawn(|| {
            for _ in 0..2_000 {
                let mut state = shared.lock();
                drop(state.reset(world.still()).unwrap());
                state.admit(&pay(0, BOB)).unwrap();
                drop(state);
                shared.lock().admit(&other).unwrap();
            }
        });
        while !admitting.is_finished() {
            match shared.simulate(&next, 1, world.parent.timestamp + SECOND) {
                Ok(effects) => {
                    let alice = (Amount::new(FUNDS - 5), Amount::new(FUNDS - 10));
                    assert_eq!(effects.balances[&ALICE.address()], alice);
                }
                refused => assert_eq!(answer(refused), "NONCE_STALE"),
            }
        }
    });
}
