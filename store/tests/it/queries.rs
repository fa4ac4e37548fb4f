//! Every query, on a chain that has one of everything.

use state::params::BASE_FEE_FLOOR;
use state::table::{Table as _, encode_value};
use state::tables::{NextValue, ParamRow, ParamRows};
use types::tx::Protection;
use types::{Address, Amount, Event, Hash, RunStatus, TxLocation};

use crate::fixture::{BALANCE, TestChain, proposer, whole_run};

const LIMIT: usize = 100;

#[test]
fn blocks_are_found_by_height_and_by_hash_newest_first() {
    let (_dir, chain) = TestChain::fresh(3);
    let tips: Vec<_> = (0..5).map(|_| chain.block(&[])).collect();
    let snapshot = chain.store.snapshot();
    assert_eq!(snapshot.tip().unwrap(), tips[4]);
    for tip in &tips {
        assert_eq!(snapshot.height_by_hash(&tip.hash).unwrap(), Some(tip.height));
        let stored = snapshot.header(tip.height).unwrap().unwrap();
        assert_eq!((stored.hash, stored.header.hash()), (tip.hash, tip.hash));
    }
    assert_eq!(snapshot.height_by_hash(&Hash::ZERO).unwrap(), None);
    assert!(snapshot.header(0).unwrap().is_none() && snapshot.block(6).unwrap().is_none());
    let heights = |newest, limit| {
        let headers = snapshot.headers(newest, limit).unwrap();
        headers.iter().map(|stored| stored.header.index).collect::<Vec<_>>()
    };
    assert_eq!(heights(None, 3), [5, 4, 3]);
    assert_eq!(heights(Some(2), 3), [2, 1]);
    assert_eq!(heights(None, 0), [0; 0]);
}

#[test]
fn a_run_shows_its_transactions_and_steps() {
    let (_dir, mut chain) = TestChain::fresh(3);
    let (user, miner) = chain.pair(0, 1);
    let (run, txs) = whole_run(1, user, miner);
    // Over several blocks, as it really happens.
    for part in txs.chunks(4) {
        chain.block(part);
    }
    let snapshot = chain.store.snapshot();
    let detail = snapshot.run_detail(&run).unwrap().unwrap();
    assert_eq!(detail.run.status, RunStatus::Completed);
    assert_eq!(detail.request, txs[0]);
    assert_eq!(detail.claim.as_ref(), Some(&txs[1]));
    assert_eq!(detail.finish.as_ref(), Some(&txs[10]));
    let steps = snapshot.steps(&run, None, LIMIT).unwrap();
    let indexes: Vec<u64> = steps.iter().map(|one| one.step.step_index).collect();
    assert_eq!(indexes, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(steps.iter().map(|one| one.tx.clone()).collect::<Vec<_>>(), txs[2..10]);
    let rest = snapshot.steps(&run, Some(5), 1).unwrap();
    assert_eq!((rest.len(), rest[0].step.step_index), (1, 6));
    assert!(snapshot.run_detail(&Hash::ZERO).unwrap().is_none());
    assert!(snapshot.steps(&Hash::ZERO, None, LIMIT).unwrap().is_empty());
}

#[test]
fn a_history_has_what_an_account_sent_received_and_was_refunded() {
    let (_dir, mut chain) = TestChain::fresh(3);
    let (user, miner) = chain.pair(0, 1);
    let gift = miner.transfer(user.address(), 7);
    let (_, run) = whole_run(1, user, miner);
    let own = user.transfer(user.address(), 1);
    chain.block(std::slice::from_ref(&gift));
    chain.block(&run);
    chain.block(std::slice::from_ref(&own));
    let user = chain.wallets[0].address();
    let snapshot = chain.store.snapshot();
    let history = snapshot.account_transactions(&user, None, LIMIT).unwrap();
    let hashes: Vec<Hash> = history.iter().map(|one| one.tx.hash()).collect();
    // Newest first: its transfer to itself once, the settlement, its request, the gift.
    assert_eq!(hashes, [own.hash(), run[10].hash(), run[0].hash(), gift.hash()]);
    let nobody = Address::new([1; 20]);
    assert!(snapshot.account_transactions(&nobody, None, LIMIT).unwrap().is_empty());
    assert_eq!(snapshot.account(&nobody).unwrap().balance.get(), 0);
    let fees = snapshot.account_transactions(&proposer(), None, LIMIT).unwrap();
    assert!(fees.is_empty(), "a fee is no transaction of the proposer");
}

#[test]
fn conversations_are_read_in_chain_order() {
    let (_dir, mut chain) = TestChain::fresh(3);
    let id = Hash::digest(b"a conversation");
    let turn = |number: usize| chain.wallets[number % 3].turn(id, &format!("turn {number}"));
    let turns: Vec<_> = (0..6).map(turn).collect();
    let elsewhere = chain.wallets[0].turn(Hash::digest(b"another"), "not here");
    chain.block(&turns[..4]);
    chain.block(&[elsewhere, turns[4].clone(), turns[5].clone()]);
    let snapshot = chain.store.snapshot();
    let page = snapshot.conversation(&id, None, LIMIT).unwrap();
    assert_eq!(page.iter().map(|turn| turn.tx.clone()).collect::<Vec<_>>(), turns);
    let rest = snapshot.conversation(&id, Some(page[3].location), 1).unwrap();
    assert_eq!((rest.len(), &rest[0].tx), (1, &turns[4]));
    let turn = snapshot.turn(&turns[5].hash()).unwrap().unwrap();
    assert_eq!(turn.location, TxLocation { height: 2, position: 2 });
    assert_eq!(turn.tx, turns[5]);
    assert!(snapshot.turn(&Hash::ZERO).unwrap().is_none());
}

#[test]
fn miners_and_blobs_are_found() {
    let (_dir, mut chain) = TestChain::fresh(3);
    let miner_address = chain.wallets[1].address();
    let register = chain.wallets[1].register("the first");
    let run = chain.whole_run(1);
    let blob = chain.wallets[2].blob("a-blob", b"some bytes");
    chain.block(&[register]);
    chain.block(&run);
    chain.block(&blob[..2]);
    assert_eq!(chain.store.snapshot().blob_bytes("a-blob").unwrap(), None, "not final yet");
    chain.block(&blob[2..]);
    let snapshot = chain.store.snapshot();
    let found = snapshot.miner(&miner_address).unwrap().unwrap();
    assert_eq!((found.figures.completed, found.figures.tokens), (1, 5_000));
    assert_eq!(snapshot.miner_by_id(&found.miner.miner_id).unwrap().as_ref(), Some(&found));
    assert_eq!(snapshot.miners(None, LIMIT).unwrap(), [found]);
    assert!(snapshot.miners(Some(&miner_address), LIMIT).unwrap().is_empty());
    assert!(snapshot.blob("a-blob").unwrap().unwrap().is_final);
    assert_eq!(snapshot.blob_bytes("a-blob").unwrap().unwrap(), b"some bytes");
    assert_eq!(snapshot.blob_bytes("no-blob").unwrap(), None);
    let supply = snapshot.supply().unwrap();
    assert_eq!(supply.genesis.get(), 3 * BALANCE);
    assert_eq!(supply.escrowed.get(), 0);
}

#[test]
fn what_a_block_did_is_kept_with_it() {
    let (_dir, mut chain) = TestChain::fresh(3);
    let (tx, run) = chain.wallets[0].request(Hash::ZERO, "nobody will claim this");
    chain.block(&[tx]);
    let wait = chain.chain.params.pending_ttl_ms + 1;
    let executed = chain.execute_after(wait, &[]);
    let tip = chain.commit(&executed);
    let events = chain.store.snapshot().events(tip.height).unwrap().unwrap();
    assert_eq!(events, executed.events);
    assert!(
        matches!(&events.end[..], [Event::RunTimedOut { agent_run_id, .. }, ..] if *agent_run_id == run),
        "{events:?}"
    );
    assert_eq!(chain.store.snapshot().events(tip.height + 1).unwrap(), None);
    assert_eq!(chain.store.events_from(), 1);
    let status = chain.store.snapshot().run(&run).unwrap().unwrap().status;
    assert_eq!(status, RunStatus::Timeout);
}

#[test]
fn what_places_cost_is_kept_beside_the_events_from_v7_on() {
    let (_dir, mut chain) = TestChain::fresh(3);
    let before = chain.tip().height;
    chain.begin_v7(before + 1);
    let tx = chain.transfer(0, 1, 1);
    let executed = chain.execute(&[tx]);
    let tip = chain.commit(&executed);
    let snapshot = chain.store.snapshot();
    assert_eq!(snapshot.fees(before).unwrap(), None);
    let fees = snapshot.fees(tip.height).unwrap();
    assert_eq!(fees, executed.events.fees());
    assert!(fees.is_some_and(|fees| fees.burned.get() > 0), "{fees:?}");
}

#[test]
fn the_lowest_base_fee_of_a_past_block_is_known_after_it_has_changed() {
    let (_dir, mut chain) = TestChain::fresh(3);
    let before = chain.tip().height;
    chain.begin_v7(before + 1);
    chain.block(&[]);
    let first = chain.chain.params.base_fee_floor;
    let mut executed = chain.execute(&[]);
    let later = NextValue { value: first + 90, height: before + 100 };
    let row = ParamRow { value: first + 15, next: Some(later) };
    let rows = executed.changes.entry(ParamRows::ID).or_default();
    rows.insert(BASE_FEE_FLOOR.into(), Some(encode_value::<ParamRows>(&row)));
    chain.commit(&executed);
    chain.block(&[]);
    let snapshot = chain.store.snapshot();
    let floors: Vec<_> =
        (before..before + 5).map(|height| snapshot.fee_floor(height).unwrap()).collect();
    assert_eq!(floors, [None, Some(first), Some(first + 15), Some(first + 15), None]);
}

/// A reward that is held is in escrow: whoever adds up escrows and misses it is wrong when it is paid.
#[test]
fn escrows_are_those_of_open_runs_and_of_rewards_that_are_held() {
    let (_dir, mut chain) = TestChain::fresh(3);
    chain.begin_v7(chain.tip().height + 1);
    let conversation = Hash::digest(b"conversation");
    let (open, open_run) = chain.wallets[0].request(conversation, "open");
    let protection = Protection { refuse_ms: Some(600_000), ..Protection::default() };
    let (held, held_run) = chain.wallets[0].request_with(conversation, "held", protection);
    let (paid, paid_run) = chain.wallets[0].request(conversation, "paid");
    let mut txs = vec![open, held, paid];
    for run in [held_run, paid_run] {
        let miner = &mut chain.wallets[1];
        txs.extend([miner.claim(run), miner.step(run, 0), miner.finish(run, 1)]);
    }
    chain.block(&txs);
    let mut escrows = Vec::new();
    let visit = |run: &types::Run, amount: Amount| escrows.push((run.agent_run_id, amount.get()));
    chain.store.snapshot().visit_escrows(visit).unwrap();
    assert_eq!(escrows, [(held_run, 625), (open_run, 1_000_000)]);
}
