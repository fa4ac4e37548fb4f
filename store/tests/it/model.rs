//! The database and the rows in memory are the same state: reads, ranges, and what execution makes
//! of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use state::table::Table;
use state::tables::{self, Accounts, Deadlines, Runs, Steps};
use state::view::{Range, Read};
use state::{Changes, Memory};
use store::{Options, Store};
use types::{Block, BlockEvents, Hash, Header};

use crate::fixture::{CERTIFICATE, TestChain, genesis_changes, genesis_hash, proposer, whole_run};

/// Commits made-up rows: blocks without transactions that change whatever the test wants.
fn commit(store: &Store, changes: &Changes) {
    let tip = store.tip().unwrap();
    let header = Header {
        chain_id: "model".into(),
        index: tip.height + 1,
        previous_hash: tip.hash,
        timestamp: tip.timestamp + 1,
        proposer: proposer(),
        tx_root: types::block::merkle_root(&[]),
        state_root: tip.state_root,
        tokens_burned: types::Amount::ZERO,
        tx_count: 0,
        randomness: None,
    };
    let block = Block { header, transactions: Vec::new() };
    let input =
        store::CommitBlock { block: &block, changes, events: &BlockEvents::default(), missed: &[] };
    store.commit_block(&input, CERTIFICATE).unwrap();
}

fn change() -> impl Strategy<Value = (usize, u8, Option<Vec<u8>>)> {
    let value = prop_oneof![
        3 => proptest::collection::vec(any::<u8>(), 1..30).prop_map(Some),
        1 => Just(None),
    ];
    (0_usize..4, 0_u8..24, value)
}

const TABLES: [state::table::TableId; 4] = [Accounts::ID, Runs::ID, Steps::ID, Deadlines::ID];

fn same(model: &Memory, store: &dyn Read) {
    for table in TABLES {
        for key in 0_u8..24 {
            let row = |read: &dyn Read| {
                (read.get_raw(table, &[key]).unwrap(), read.contains_raw(table, &[key]).unwrap())
            };
            assert_eq!(row(store), row(model));
        }
        for (from, to, limit) in
            [(0, None, 100), (0, Some(12), 100), (0, Some(3), 1), (7, Some(20), 3), (23, None, 9)]
        {
            let to = to.map(|to: u8| [to]);
            let to = to.as_ref().map(<[u8; 1]>::as_slice);
            for from in [&[from][..], &[]] {
                let range = Range { from, to, limit };
                let [found, expected] =
                    [store, model].map(|read: &dyn Read| read.scan_raw(table, range));
                assert_eq!(found.unwrap(), expected.unwrap());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_database_is_the_model_after_any_history(
        history in proptest::collection::vec(proptest::collection::vec(change(), 0..20), 1..12)
    ) {
        let (_dir, chain) = TestChain::fresh(0);
        let model = Memory::default();
        model.apply(&genesis_changes(&[]));
        let latest = chain.store.latest();
        for block in history {
            let mut changes = Changes::new();
            for (table, key, value) in block {
                changes.entry(TABLES[table]).or_default().insert(vec![key], value);
            }
            commit(&chain.store, &changes);
            model.apply(&changes);
            same(&model, &*latest);
            same(&model, &chain.store.snapshot());
        }
    }
}

#[test]
fn execution_makes_the_same_of_both() {
    let (_dir, mut chain) = TestChain::fresh(4);
    let model = Arc::new(Memory::default());
    model.apply(&genesis_changes(&chain.wallets));
    for number in 0..20 {
        let (user, miner) = chain.pair(number % 2, 2 + number % 2);
        let mut txs = whole_run(u64::try_from(number).unwrap(), user, miner).1;
        txs.push(user.transfer(miner.address(), 3));
        let executed = chain.execute(&txs);
        let parent = chain.store.parent().unwrap();
        let base: Arc<dyn Read> = Arc::<Memory>::clone(&model);
        let again = state::execute_block(&chain.chain, base, &parent, executed.block.clone());
        assert_eq!(again.unwrap().changes, executed.changes);
        model.apply(&executed.changes);
        chain.commit(&executed);
    }
    let snapshot = chain.store.snapshot();
    let mut stored = Vec::new();
    for table in tables::ALL {
        let range = Range { from: &[], to: None, limit: usize::MAX };
        let rows = snapshot.scan_raw(table, range).unwrap();
        stored.extend(rows.into_iter().map(|(key, value)| (table.name, key, value)));
    }
    assert_eq!(stored, model.rows());
}

#[test]
fn two_databases_with_the_same_blocks_have_the_same_roots() {
    let other = tempfile::tempdir().unwrap();
    let (_dir, mut chain) = TestChain::fresh(3);
    // The other one has room for nothing in memory and forgets old roots at once.
    let options = Options {
        hot_value_bytes: 1,
        node_cache_bytes: 1,
        provable_heights: 0,
        ..Options::default()
    };
    let twin = TestChain::with(Store::open(other.path(), options).unwrap(), 3);
    assert_eq!(twin.store.genesis_hash().unwrap(), Some(genesis_hash()));
    for number in 0..15 {
        let txs = chain.whole_run(number);
        let executed = chain.execute(&txs);
        assert_eq!(twin.execute(&txs).changes, executed.changes);
        assert_eq!(twin.commit(&executed), chain.commit(&executed));
    }
}

#[test]
fn readers_on_other_threads_do_not_disturb_where_the_deadlines_begin() {
    let (_dir, chain) = TestChain::fresh(0);
    let model = Memory::default();
    let stop = AtomicBool::new(false);
    let latest = chain.store.latest();
    let all = Range { from: &[], to: None, limit: usize::MAX };
    std::thread::scope(|scope| {
        for limit in [1, usize::MAX] {
            let (latest, stop) = (&latest, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    latest.scan_raw(Deadlines::ID, Range { limit, ..all }).unwrap();
                }
            });
        }
        // Deadlines come in anywhere and go from the front, as runs begin and end.
        for round in 0_u32..150 {
            let mut changes = Changes::new();
            let rows = changes.entry(Deadlines::ID).or_default();
            let front = model.scan_raw(Deadlines::ID, Range { limit: 2, ..all }).unwrap();
            rows.extend(front.into_iter().map(|(key, _)| (key, None)));
            for number in 0..3_u32 {
                let key = Hash::digest(&(round * 3 + number).to_be_bytes());
                rows.insert(key.as_bytes()[..4].to_vec(), Some(vec![1]));
            }
            commit(&chain.store, &changes);
            model.apply(&changes);
            let found = latest.scan_raw(Deadlines::ID, all);
            if !matches!(&found, Ok(rows) if *rows == model.scan_raw(Deadlines::ID, all).unwrap()) {
                stop.store(true, Ordering::Relaxed);
                panic!("round {round}: {found:?}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
