//! Opening a database: the right one, the wrong one, one in use, one that was there before.

use state::StorageError;
use store::{GenesisState, Options, Store};
use types::Hash;

use crate::fixture::{TestChain, data, genesis, genesis_changes, genesis_hash, open};

#[test]
fn an_empty_database_has_no_tip() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    assert!(matches!(store.tip(), Err(StorageError::Empty)));
    assert_eq!(store.genesis_hash().unwrap(), None);
}

#[test]
fn another_genesis_is_refused_with_both_hashes() {
    let (_dir, chain) = TestChain::fresh(1);
    let changes = genesis_changes(&chain.wallets);
    let other = Hash::digest(b"another chain");
    let answer = chain.store.init(&GenesisState { hash: other, ..genesis(&changes) });
    let text = answer.unwrap_err().to_string();
    assert!(text.contains(&other.to_string()) && text.contains(&genesis_hash().to_string()));
}

#[test]
fn the_same_genesis_is_welcome_again() {
    let (_dir, chain) = TestChain::fresh(1);
    let tip = chain.block(&[]);
    let changes = genesis_changes(&chain.wallets);
    assert_eq!(chain.store.init(&genesis(&changes)).unwrap(), tip);
}

#[test]
fn a_database_in_use_says_so() {
    let (dir, _chain) = TestChain::fresh(1);
    let error = Store::open(&data(&dir), Options::default()).unwrap_err();
    assert!(matches!(error, StorageError::Locked { .. }), "{error}");
}

#[test]
fn tools_may_read_a_database_in_use() {
    let (dir, chain) = TestChain::fresh(1);
    let tip = chain.block(&[]);
    let reader = Store::open_read_only(&data(&dir), Options::default()).unwrap();
    assert_eq!(reader.tip().unwrap(), tip);
    assert!(reader.snapshot().block(1).unwrap().is_some());
}

#[test]
fn reading_where_nothing_is_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nowhere");
    let error = Store::open_read_only(&path, Options::default()).unwrap_err();
    assert!(matches!(error, StorageError::Missing { .. }), "{error}");
    assert!(!path.exists());
}

#[test]
fn another_format_is_refused_and_left_as_it_is() {
    for newer_table in [None, Some("a_table_of_the_future")] {
        let dir = tempfile::tempdir().unwrap();
        drop(TestChain::new(dir.path(), 1));
        let options = rocksdb::Options::default();
        let families = || rocksdb::DB::list_cf(&options, dir.path()).unwrap();
        {
            // The one cell that every version of the program can read.
            let mut db = rocksdb::DB::open_cf(&options, dir.path(), families()).unwrap();
            db.put_cf(db.cf_handle("meta").unwrap(), b"format", 99_u32.to_le_bytes()).unwrap();
            newer_table.into_iter().for_each(|name| db.create_cf(name, &options).unwrap());
        }
        let before = families();
        for open in [Store::open, Store::open_read_only] {
            let error = open(dir.path(), Options::default()).unwrap_err();
            assert!(matches!(error, StorageError::Format { found: 99, expected: 1 }), "{error}");
        }
        assert_eq!(families(), before);
    }
}
