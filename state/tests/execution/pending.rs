//! The pool's draft against the plain way: forget it after every block and admit again whatever
//! still waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use state::memory::Memory;
use state::table::Table;
use state::table::TableId;
use state::tables::{BlobChunks, Blobs};
use state::view::{Range, RawRow, Read, Still};
use state::{
    Base, Forks, PendingState, PushError, Retracted, SharedPending, StorageError, TxError,
};
use types::tx::{AgentFinish, BlobInit};
use types::{Account, Address, Amount, Bid, Body, CheckedTx, Credit, Hash, Params, RunStatus};

use crate::acts::{Act, acts};
use crate::model::Model;
use crate::model_rules::ModelPlace;
use crate::world::{
    ALICE, BOB, FUNDS, MINER, PROPOSER, SECOND, STRANGER, Swept, Who, World, blob_chunk,
    blob_finalize, blob_init, chat, claim, step, transfer, turn,
};

fn fresh(world: &World) -> PendingState {
    PendingState::new(world.still(), Arc::clone(&world.chain)).unwrap()
}

fn tx(world: &World, pending: &PendingState, who: Who, body: &Body) -> CheckedTx {
    let nonce = pending.account(who.address()).unwrap().nonce;
    world.tx(who, nonce, body).unwrap()
}

#[test]
fn a_whole_run_may_wait_together() {
    let world = World::new();
    let mut pending = fresh(&world);
    let request = world.request_body(ALICE, 1_000, 3);
    let run = request.agent_run_id().unwrap();
    pending.admit(&tx(&world, &pending, ALICE, &request)).unwrap();
    pending.admit(&tx(&world, &pending, MINER, &claim(MINER, run))).unwrap();
    pending.admit(&tx(&world, &pending, MINER, &step(run, 0, 10))).unwrap();
    assert_eq!(pending.run(&run).unwrap().unwrap().status, RunStatus::Running);
    assert_eq!(pending.account(ALICE.address()).unwrap().balance, Amount::new(FUNDS - 1_000));
    let end = finish(run, 10, 100, 890);
    let end = tx(&world, &pending, MINER, &end);
    let effects = pending.simulate(&end, 1, world.parent.timestamp + SECOND).unwrap();
    assert_eq!(effects.burned, Amount::new(100));
    assert_eq!(effects.run.map(|run| run.status), Some(RunStatus::Completed));
    pending.admit(&end).unwrap();
    let late = tx(&world, &pending, BOB, &claim(BOB, run));
    assert!(matches!(pending.admit(&late), Err(TxError::Rejected(_))));
    assert_eq!(pending.len(), 4);
    drop(pending.reset(world.still()).unwrap());
    assert!(pending.is_empty() && pending.run(&run).unwrap().is_none());
}

fn finish(agent_run_id: Hash, reward: u64, fee: u64, refund: u64) -> Body {
    Body::AgentFinish(AgentFinish {
        agent_run_id,
        total_tokens_out: reward,
        status: "completed".to_owned(),
        miner_reward: Amount::new(reward),
        user_refund: Amount::new(refund),
        network_fee: Amount::new(fee),
        final_answer_inline: None,
        final_answer_blob_id: None,
    })
}

#[test]
fn a_simulation_stands_on_what_waits() {
    let world = World::new();
    let mut pending = fresh(&world);
    pending.admit(&tx(&world, &pending, ALICE, &transfer(BOB, 5, 0))).unwrap();
    let next = tx(&world, &pending, ALICE, &chat("hello"));
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
    pending.admit(&tx(&world, &pending, ALICE, &transfer(MINER, 1, 0))).unwrap();
    let before = pending.account(ALICE.address()).unwrap();
    // The sender has paid when the receiver cannot be read.
    let error = pending.admit(&tx(&world, &pending, ALICE, &transfer(BOB, 5, 0))).unwrap_err();
    assert!(matches!(error, TxError::Storage(_)), "{error}");
    assert_eq!(pending.account(ALICE.address()).unwrap(), before);
    pending.admit(&tx(&world, &pending, ALICE, &transfer(MINER, 1, 0))).unwrap();
    assert_eq!(pending.len(), 2);
}

#[test]
fn a_pending_fee_shows_in_no_account() {
    let world = World::new();
    let mut pending = fresh(&world);
    pending.admit(&tx(&world, &pending, ALICE, &transfer(BOB, 5, 3))).unwrap();
    for nobody in [Address::default(), Address::new([0xff; 20])] {
        assert_eq!(pending.account(nobody).unwrap(), Account::default());
    }
    assert_eq!(pending.account(ALICE.address()).unwrap().balance, Amount::new(FUNDS - 8));
}

#[test]
fn a_simulated_fee_goes_to_nobody_known() {
    let world = World::new();
    let pending = fresh(&world);
    let tx = tx(&world, &pending, ALICE, &transfer(BOB, 5, 3));
    let effects = pending.simulate(&tx, 1, world.parent.timestamp + SECOND).unwrap();
    let changes: Vec<_> = effects.balances.into_iter().collect();
    let mut expected = [
        (ALICE.address(), (Amount::new(FUNDS), Amount::new(FUNDS - 8))),
        (BOB.address(), (Amount::new(FUNDS), Amount::new(FUNDS + 5))),
    ];
    expected.sort_unstable();
    assert_eq!(changes, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Senders that are left out of a block (their share is used up) stay in the pool, and so does
    /// everything that builds on them.
    #[test]
    fn advancing_is_as_good_as_admitting_again(acts in acts(150)) {
        let mut world = World::new();
        let mut model = empty_model(&world);
        let mut pending = fresh(&world);
        let mut waiting: Vec<CheckedTx> = Vec::new();
        for act in acts {
            if act.ends_block() {
                waiting = commit_some(&mut world, &mut pending, waiting, act);
            } else {
                admit(&world, &mut pending, &mut model, &mut waiting, act);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever waits beside it, and whatever blocks took meanwhile.
    #[test]
    fn taking_back_is_as_good_as_never_admitting(acts in acts(150)) {
        let mut world = World::with_forks(Params::default(), V7, &[(PROPOSER, 1)]);
        let mut model = empty_model(&world);
        let mut pending = fresh(&world);
        let mut waiting: Vec<CheckedTx> = Vec::new();
        for act in acts {
            // What only reads what another one wrote is not found: no turns and no blobs.
            let act = Act { kind: if matches!(act.kind, 0 | 1 | 19..=21) { 17 } else { act.kind }, ..act };
            if !act.ends_block() {
                admit_v7(&world, &mut pending, &mut model, &mut waiting, act);
            } else if act.twist.is_multiple_of(4) {
                waiting = commit_some(&mut world, &mut pending, waiting, act);
            } else {
                for _ in 0..act.twist % 8 {
                    take_back(&mut pending, &mut waiting, Who(act.who).address());
                }
                compare(&world, &pending, &waiting, &[]);
            }
        }
    }
}

const V7: Forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: None };

/// What an act sends next.
struct Chosen {
    sender: Who,
    nonce: u64,
    body: Body,
    tx: CheckedTx,
}

fn choose(world: &World, pending: &PendingState, model: &Model, act: Act) -> Chosen {
    let sender = act.sender(model);
    let nonce = pending.account(sender.address()).unwrap().nonce;
    let body = act.body(model, sender, nonce);
    let tx = world.tx(sender, nonce, &body).unwrap();
    Chosen { sender, nonce, body, tx }
}

/// The model only chooses what is sensible; it does not know the fees of v7.
fn admit_v7(
    world: &World,
    pending: &mut PendingState,
    model: &mut Model,
    waiting: &mut Vec<CheckedTx>,
    act: Act,
) {
    let Chosen { sender, nonce, body, tx } = choose(world, pending, model, act);
    if pending.admit(&tx).is_ok() {
        let place = ModelPlace { payload: tx.payload().len(), bid: &Bid::default() };
        model.send(sender.address(), nonce, &body, tx.hash(), &place);
        waiting.push(tx);
    }
}

/// Takes the sender's last one back, and before it what builds on it.
fn take_back(pending: &mut PendingState, waiting: &mut Vec<CheckedTx>, from: Address) {
    let last_of =
        |waiting: &[CheckedTx], from| waiting.iter().rev().find(|tx| tx.from() == from).cloned();
    let mut goals: Vec<Hash> = last_of(waiting, from).iter().map(|tx| tx.hash()).collect();
    for _ in 0..500 {
        let Some(goal) = goals.last().copied() else { return };
        let Some(tx) = waiting.iter().find(|tx| tx.hash() == goal) else {
            goals.pop();
            continue;
        };
        let last = last_of(waiting, tx.from()).unwrap();
        match pending.retract(&last).unwrap() {
            Retracted::Yes => waiting.retain(|tx| *tx != last),
            Retracted::After(hash) => goals.push(hash),
            Retracted::Spent(address) => goals.push(last_of(waiting, address).unwrap().hash()),
            Retracted::Unknown => panic!("{} cannot be taken back", last.body().type_name()),
        }
    }
}

/// The draft is what comes of admitting what waits to a new one.
fn compare(world: &World, pending: &PendingState, waiting: &[CheckedTx], included: &[CheckedTx]) {
    let mut again = fresh(world);
    for tx in waiting {
        again.admit(tx).unwrap();
    }
    assert_eq!(pending.len(), again.len());
    for who in (1..7).map(Who) {
        let address = who.address();
        assert_eq!(pending.account(address).unwrap(), again.account(address).unwrap(), "{who:?}");
    }
    for id in waiting.iter().chain(included).filter_map(|tx| tx.body().agent_run_id()) {
        let (ours, theirs) = (pending.run(&id).unwrap(), again.run(&id).unwrap());
        let facts = |run: types::Run| (run.status, run.step_count, run.tokens_out, run.miner);
        assert_eq!(ours.map(facts), theirs.map(facts));
    }
}

#[test]
fn what_another_one_builds_on_is_taken_back_after_it() {
    let world = World::with_forks(Params::default(), V7, &[(PROPOSER, 1)]);
    let mut pending = fresh(&world);
    let request = world.request_body(ALICE, 1_000, 3);
    let run = request.agent_run_id().unwrap();
    let request = tx(&world, &pending, ALICE, &request);
    pending.admit(&request).unwrap();
    let claim = tx(&world, &pending, MINER, &claim(MINER, run));
    pending.admit(&claim).unwrap();
    let step = tx(&world, &pending, MINER, &step(run, 0, 10));
    pending.admit(&step).unwrap();
    assert_eq!(Retracted::After(step.hash()), pending.retract(&request).unwrap());
    assert_eq!(Retracted::Unknown, pending.retract(&claim).unwrap());
    assert_eq!(Retracted::Yes, pending.retract(&step).unwrap());
    assert_eq!(RunStatus::Claimed, pending.run(&run).unwrap().unwrap().status);
    assert_eq!(Retracted::Yes, pending.retract(&claim).unwrap());
    assert_eq!(RunStatus::Pending, pending.run(&run).unwrap().unwrap().status);
    assert_eq!(Retracted::Yes, pending.retract(&request).unwrap());
    assert!(pending.is_empty() && pending.run(&run).unwrap().is_none());
    assert_eq!(FUNDS, pending.account(ALICE.address()).unwrap().balance.get());
}

#[test]
fn what_paid_for_something_is_taken_back_after_it() {
    let world = World::with_forks(Params::default(), V7, &[(PROPOSER, 1)]);
    let mut pending = fresh(&world);
    let all = transfer(STRANGER, FUNDS / 2, 0);
    let paying = tx(&world, &pending, ALICE, &all);
    pending.admit(&paying).unwrap();
    let spending = tx(&world, &pending, STRANGER, &transfer(BOB, FUNDS / 4, 0));
    pending.admit(&spending).unwrap();
    assert_eq!(Retracted::Spent(STRANGER.address()), pending.retract(&paying).unwrap());
    assert_eq!(Retracted::Yes, pending.retract(&spending).unwrap());
    assert_eq!(Retracted::Yes, pending.retract(&paying).unwrap());
    let accounts = [ALICE, BOB, STRANGER].map(|who| pending.account(who.address()).unwrap());
    let funded = Account { nonce: 0, balance: Amount::new(FUNDS) };
    assert_eq!([funded, funded, Account::default()], accounts);
}

#[test]
fn before_v7_nothing_is_taken_back() {
    let world = World::new();
    let mut pending = fresh(&world);
    let sent = tx(&world, &pending, ALICE, &transfer(BOB, 1, 0));
    pending.admit(&sent).unwrap();
    assert_eq!(Retracted::Unknown, pending.retract(&sent).unwrap());
    assert_eq!(1, pending.len());
}

/// Only its runs, turns and blobs are looked at, to choose sensible actions.
fn empty_model(world: &World) -> Model {
    let rich = (1..7).map(|who| (Who(who).address(), i128::from(u64::MAX)));
    Model::new(world.chain.params.clone(), PROPOSER.address(), rich.collect())
}

fn admit(
    world: &World,
    pending: &mut PendingState,
    model: &mut Model,
    waiting: &mut Vec<CheckedTx>,
    act: Act,
) {
    let Chosen { sender, nonce, body, tx } = choose(world, pending, model, act);
    // The pool takes it before it knows the hash of what waits; it is not in any block then.
    if model.has_wrong_bytes(&body) {
        return;
    }
    if pending.admit(&tx).is_ok() {
        let place = ModelPlace { payload: tx.payload().len(), bid: &Bid::default() };
        let answer = model.send(sender.address(), nonce, &body, tx.hash(), &place);
        assert_eq!(answer, "ok");
        waiting.push(tx);
    }
}

fn commit_some(
    world: &mut World,
    pending: &mut PendingState,
    waiting: Vec<CheckedTx>,
    act: Act,
) -> Vec<CheckedTx> {
    let left_out = Who(act.who).address();
    let mut included = Vec::new();
    let mut rest = Vec::new();
    for tx in waiting {
        let is_left_out = tx.from() == left_out && act.twist.is_multiple_of(2);
        let outcome =
            if is_left_out { Ok(false) } else { world.builder().push(&tx).map(|()| true) };
        match outcome {
            Ok(true) => included.push(tx),
            Ok(false) | Err(PushError::Rejected(_)) => rest.push(tx),
            Err(other) => panic!("{other}"),
        }
    }
    let executed = world.next_block();
    assert_eq!(executed.swept(), []);
    // Fees are what nobody foresees.
    let mut credits: BTreeMap<Address, Amount> = BTreeMap::new();
    for Credit { address, amount } in executed.events.credits {
        let credit = credits.entry(address).or_default();
        *credit = credit.checked_add(amount).unwrap();
    }
    assert!(pending.advance(world.still(), &included, &credits, &BTreeMap::new()).unwrap());
    compare(world, pending, &rest, &included);
    rest
}

/// A blob of two chunks, of which the first is in a block.
fn begun_blob(world: &mut World, content: &[u8]) -> Vec<u8> {
    let bytes = vec![7; 400_001];
    let Body::BlobInit(init) = blob_init("b", &bytes) else { panic!("an INIT") };
    let content_hash = Hash::digest(content);
    world.must(ALICE, &Body::BlobInit(BlobInit { content_hash, ..init }));
    world.must(ALICE, &blob_chunk("b", 0, &bytes[..400_000]));
    world.next_block();
    bytes
}

#[test]
fn a_blob_may_be_finished_and_used_before_its_hash_is_known() {
    let mut world = World::new();
    let bytes = begun_blob(&mut world, &[7; 400_001]);
    let mut pending = fresh(&world);
    let finalize = tx(&world, &pending, ALICE, &blob_finalize("b"));
    let refused = pending.check(&finalize).unwrap_err();
    assert!(matches!(&refused, TxError::Rejected(it) if it.code().as_str() == "BLOB_CHUNK"));
    let mut all = Vec::new();
    let mut use_it = turn("see the blob");
    use_it.content_blob_id = Some("b".to_owned());
    let last = blob_chunk("b", 1, &bytes[400_000..]);
    for body in [last, blob_finalize("b"), Body::ChatTurn(use_it)] {
        let tx = tx(&world, &pending, ALICE, &body);
        pending.simulate(&tx, 9, world.parent.timestamp + SECOND).unwrap();
        pending.admit(&tx).unwrap();
        all.push(tx);
    }
    // The block has the same opinion, and knows the hash.
    for tx in &all {
        world.builder().push(tx).unwrap();
    }
    let blob = world.state().get::<Blobs>(&"b".to_owned()).unwrap().unwrap();
    assert_eq!((blob.is_final, blob.received_hash), (true, Some(Hash::digest(&bytes))));
}

#[test]
fn a_blob_of_other_bytes_is_refused_as_soon_as_its_hash_is_known() {
    let mut world = World::new();
    let bytes = begun_blob(&mut world, b"something else");
    let mut pending = fresh(&world);
    let last = tx(&world, &pending, ALICE, &blob_chunk("b", 1, &bytes[400_000..]));
    pending.admit(&last).unwrap();
    let finalize = tx(&world, &pending, ALICE, &blob_finalize("b"));
    pending.admit(&finalize).unwrap();
    world.builder().push(&last).unwrap();
    let refused = world.builder().push(&finalize).unwrap_err();
    assert!(matches!(&refused, PushError::Rejected(it) if it.code().as_str() == "BLOB_HASH"));
    world.next_block();
    drop(pending.reset(world.still()).unwrap());
    let refused = pending.check(&finalize).unwrap_err();
    assert!(matches!(&refused, TxError::Rejected(it) if it.code().as_str() == "BLOB_HASH"));
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
    let again = tx(&world, &pending, ALICE, &blob_chunk("b", 0, &bytes[..400_000]));
    let refused = pending.check(&again).unwrap_err();
    assert!(matches!(&refused, TxError::Rejected(it) if it.code().as_str() == "BLOB_CHUNK"));
    for body in [blob_chunk("b", 1, &bytes[400_000..]), blob_finalize("b")] {
        let tx = tx(&world, &pending, ALICE, &body);
        pending.simulate(&tx, 9, world.parent.timestamp + SECOND).unwrap();
        pending.admit(&tx).unwrap();
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
                Err(TxError::Rejected(reason)) => assert_eq!(reason.code().as_str(), "NONCE_STALE"),
                Err(TxError::Storage(fault)) => panic!("{fault}"),
            }
        }
    });
}
