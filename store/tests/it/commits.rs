//! Commits: whole or not at all, in order, and small.

use state::StorageError;
use state::tables::Accounts;
use state::view;
use store::{CommitBlock, Options, Store, Undecided, UndecidedHead, tools};
use types::Address;

use crate::fixture::{CERTIFICATE, TestChain, data, input, open, proposer};

#[test]
fn a_prepared_block_that_is_not_committed_leaves_nothing() {
    let (dir, mut chain) = TestChain::fresh(2);
    let tx = chain.transfer(0, 1, 5);
    let before = chain.tip();
    let executed = chain.execute(std::slice::from_ref(&tx));
    let prepared = chain.store.prepare(&input(&executed)).unwrap();
    assert_eq!(prepared.height(), 1);
    drop(prepared); // the process ends here
    drop(chain);

    let store = open(&data(&dir));
    assert_eq!(store.tip().unwrap(), before);
    let snapshot = store.snapshot();
    assert!(snapshot.transaction(&tx.hash()).unwrap().is_none());
    assert!(snapshot.header(1).unwrap().is_none());
    assert!(snapshot.headers(None, 10).unwrap().is_empty());
}

#[test]
fn the_root_of_a_block_is_known_before_it_is_written() {
    let (_dir, mut chain) = TestChain::fresh(2);
    let tx = chain.transfer(0, 1, 5);
    let executed = chain.execute(&[tx]);
    let first = chain.store.prepare(&input(&executed)).unwrap();
    let second = chain.store.prepare(&input(&executed)).unwrap();
    assert_eq!(first.state_root(), second.state_root());
    let root = first.state_root();
    let tip = chain.store.commit(first, CERTIFICATE).unwrap();
    assert_eq!(tip.state_root, root);
    let error = chain.store.commit(second, CERTIFICATE).unwrap_err();
    assert!(matches!(error, StorageError::Height { found: 1, expected: 2 }), "{error}");
}

#[test]
fn a_block_that_does_not_follow_the_tip_is_refused() {
    let (_dir, chain) = TestChain::fresh(1);
    let executed = chain.execute(&[]);
    chain.commit(&executed);
    let error = chain.store.prepare(&input(&executed)).unwrap_err();
    assert!(matches!(error, StorageError::Height { found: 1, expected: 2 }), "{error}");
}

#[test]
fn latest_reads_see_a_commit_at_once_and_snapshots_never() {
    let (_dir, mut chain) = TestChain::fresh(2);
    let to = chain.wallets[1].address();
    let latest = chain.store.latest();
    let balance = |address: &Address| {
        view::get::<Accounts>(&*latest, address).unwrap().unwrap().balance.get()
    };
    let tx = chain.transfer(0, 1, 5);
    let store = chain.store.clone();
    let snapshot = store.snapshot();
    let before = balance(&to);
    chain.block(&[tx]);
    assert_eq!(balance(&to), before + 5);
    assert_eq!(snapshot.account(&to).unwrap().balance.get(), before);
    assert_eq!(snapshot.tip().unwrap().height, 0);
    assert_eq!(store.snapshot().account(&to).unwrap().balance.get(), before + 5);
}

#[test]
fn undecided_proposals_live_until_their_height_is_committed() {
    let (_dir, chain) = TestChain::fresh(1);
    let executed = chain.execute(&[]);
    let proposal = |round| Undecided {
        round,
        proposer: proposer(),
        hash: executed.block.hash(),
        seal: None,
        bytes: executed.block.encode(),
    };
    chain.store.put_undecided(1, &proposal(0)).unwrap();
    chain.store.put_undecided(1, &proposal(3)).unwrap();
    chain.store.put_undecided(2, &proposal(0)).unwrap();
    let head = |row| {
        let Undecided { round, proposer, hash, seal, bytes: _ } = proposal(row);
        UndecidedHead { round, proposer, hash, seal }
    };
    assert_eq!(chain.store.undecided(1).unwrap(), [head(0), head(3)]);
    let found = chain.store.undecided_by_hash(1, &executed.block.hash()).unwrap();
    assert_eq!(found, Some(proposal(0)));
    chain.commit(&executed);
    assert!(chain.store.undecided(1).unwrap().is_empty());
    assert_eq!(chain.store.undecided(2).unwrap(), [head(0)]);
    chain.store.put_undecided(1, &proposal(7)).unwrap();
    assert!(chain.store.undecided(1).unwrap().is_empty(), "a late proposal would stay for ever");
}

#[test]
fn validators_are_counted() {
    let (_dir, chain) = TestChain::fresh(1);
    let late = Address::new([9; 20]);
    let executed = chain.execute(&[]);
    let input = CommitBlock { missed: &[late, late, proposer()], ..input(&executed) };
    chain.store.commit_block(&input, CERTIFICATE).unwrap();
    chain.block(&[]);
    let snapshot = chain.store.snapshot();
    let own = snapshot.validator_stats(&proposer()).unwrap();
    assert_eq!((own.proposed, own.missed), (2, 1));
    let late = snapshot.validator_stats(&late).unwrap();
    assert_eq!((late.proposed, late.missed), (0, 2));
    assert_eq!(snapshot.all_validator_stats(10).unwrap().len(), 2);
}

#[test]
fn old_nodes_of_the_state_tree_do_not_pile_up() {
    [4, 0].into_iter().for_each(nodes_do_not_pile_up);
}

fn nodes_do_not_pile_up(provable_heights: u64) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { provable_heights, ..Options::default() };
    let mut chain = TestChain::with(Store::open(dir.path(), options).unwrap(), 20);
    let mut rows = Vec::new();
    for round in 0..3 {
        for number in 0..60 {
            let amount = 1 + u64::try_from(number).unwrap();
            let tx = chain.transfer(number % 20, (number + 7) % 20, amount);
            chain.block(&[tx]);
        }
        tools::compact(&chain.store, &mut |_, _| ()).unwrap();
        let stats = tools::stats(&chain.store).unwrap();
        let of = |name| stats.iter().find(|one| one.table == name).unwrap().rows;
        rows.push((round, of("tree_nodes"), of("tree_stale")));
    }
    let (_, first, _) = rows[0];
    for (_, nodes, stale) in &rows {
        assert!(nodes.abs_diff(first) < 40, "nodes pile up: {rows:?}");
        assert!(*stale <= 6, "lists of stale nodes pile up: {rows:?}");
    }
}

#[test]
fn the_store_says_what_memory_its_database_holds() {
    let (_dir, mut chain) = TestChain::fresh(2);
    let before = chain.store.memory().unwrap();
    for number in 0..20 {
        let tx = chain.transfer(0, 1, 1 + number);
        chain.block(&[tx]);
    }
    let written = chain.store.memory().unwrap();
    assert!(written.memtables > before.memtables, "{before:?}, then {written:?}");
    tools::compact(&chain.store, &mut |_, _| ()).unwrap();
    assert!(chain.store.snapshot().block(1).unwrap().is_some());
    let in_files = chain.store.memory().unwrap();
    assert!(in_files.memtables < written.memtables, "{written:?}, then {in_files:?}");
    assert!(in_files.block_cache > before.block_cache, "{before:?}, then {in_files:?}");
}

#[test]
fn a_block_of_many_segments_reads_back_as_it_was() {
    let (_dir, mut chain) = TestChain::fresh(2);
    let txs: Vec<_> = (0..40).flat_map(|number| chain.whole_run(number)).collect();
    let executed = chain.execute(&txs);
    chain.commit(&executed);
    let snapshot = chain.store.snapshot();
    assert_eq!(snapshot.block(1).unwrap().unwrap(), executed.block);
    assert_eq!(snapshot.block_bytes(1).unwrap().unwrap(), executed.block.encode());
    assert_eq!(snapshot.certificate(1).unwrap().unwrap(), CERTIFICATE);
    for (tx, position) in txs.iter().zip(0..) {
        let found = snapshot.transaction(&tx.hash()).unwrap().unwrap();
        assert_eq!((found.location.position, &found.tx), (position, tx));
    }
}
