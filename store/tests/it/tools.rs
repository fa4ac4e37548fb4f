//! Work on a stopped node.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use state::table::encode_value;
use state::tables::Accounts;
use state::{Changes, StorageError};
use store::tools::{
    self, Certificates, EncodedBlock, Replay, Supply, ToolError, V7Height, Verified,
};
use store::{Options, Store};
use tempfile::TempDir;
use types::{Address, Amount, Hash, SetMember};

use crate::fixture::{
    CERTIFICATE, TIME, TestChain, data, encoded, genesis_changes, genesis_hash, open, rules,
};

/// What is asked about the certificate of a block.
pub(crate) struct Question<'a> {
    pub(crate) v7: V7Height,
    pub(crate) set: Option<&'a [SetMember]>,
    pub(crate) height: u64,
    pub(crate) hash: &'a Hash,
    pub(crate) certificate: &'a [u8],
}

/// Accepts the certificates that a function finds right.
pub(crate) struct Judge(pub(crate) fn(&Question<'_>) -> bool);

impl Certificates for Judge {
    fn verify(
        &self,
        v7: V7Height,
        set: Option<&[SetMember]>,
        height: u64,
        hash: &Hash,
        certificate: &[u8],
    ) -> Result<Vec<Address>, String> {
        let is_right = (self.0)(&Question { v7, set, height, hash, certificate });
        if is_right { Ok(Vec::new()) } else { Err("not the fixture's".into()) }
    }
}

/// Accepts the certificate of the fixture and nothing else.
static FIXED: Judge = Judge(|asked| asked.certificate == CERTIFICATE);

pub(crate) fn replay(changes: &Changes) -> Replay<'_> {
    Replay {
        chain: rules(),
        genesis_hash: genesis_hash(),
        genesis_time: TIME,
        genesis_changes: changes,
        certificates: &FIXED,
        threads: NonZeroUsize::new(2).unwrap(),
    }
}

pub(crate) fn quiet(_: u64, _: u64) {}

/// Executes the blocks of a database again, with a scratch folder in this one, which is gone afterwards.
pub(crate) fn verify(
    store: &Store,
    dir: &Path,
    replay: &Replay<'_>,
) -> Result<Verified, ToolError> {
    let scratch = dir.join("scratch");
    let verified = tools::verify(store, &scratch, replay, &mut quiet);
    assert!(!scratch.exists());
    verified
}

/// A chain with some of everything in it, and the rows of its height 0.
fn sound() -> (TempDir, TestChain, Changes) {
    let (dir, mut chain) = TestChain::fresh(3);
    for number in 0..5 {
        let mut txs = chain.whole_run(number);
        txs.push(chain.wallets[0].turn(Hash::ZERO, "a turn"));
        txs.extend(chain.wallets[1].blob(&format!("blob-{number}"), b"bytes"));
        chain.block(&txs);
    }
    let changes = genesis_changes(&chain.wallets);
    (dir, chain, changes)
}

#[test]
fn a_sound_database_is_verified_and_the_scratch_folder_goes() {
    let (dir, chain, changes) = sound();
    let verified = verify(&chain.store, dir.path(), &replay(&changes)).unwrap();
    assert_eq!(verified.tip, chain.tip());
    assert_eq!((verified.report.runs, verified.report.steps), (5, 40));
}

#[test]
fn what_a_killed_verification_left_does_not_stop_the_next_one() {
    let (dir, chain, changes) = sound();
    let left = dir.path().join("scratch");
    tools::snapshot(&chain.store, &left).unwrap();
    let verified = verify(&chain.store, dir.path(), &replay(&changes)).unwrap();
    assert_eq!(verified.tip, chain.tip());
}

#[test]
fn a_row_that_the_blocks_do_not_give_or_that_is_missing_is_found() {
    let (dir, chain, changes) = sound();
    let path = data(&dir);
    drop(chain);
    // The version of the record, then three empty lists.
    let no_events = [&[1][..], &[0; 24]].concat();
    let last = 5_u64.to_be_bytes().to_vec();
    for (table, key, value, expected) in [
        ("accounts", vec![1; 20], Some(b"forged".to_vec()), "should not exist"),
        ("turns", vec![0; 32], Some(vec![1]), "should not exist"),
        ("block_events", last.clone(), Some(no_events), "has another value"),
        ("block_events", last, None, "is missing"),
    ] {
        tamper(&path, table, &key, value.as_deref());
        let error = verify(&open(&path), dir.path(), &replay(&changes)).unwrap_err();
        assert!(
            matches!(&error, ToolError::Row { table: found, what, .. }
                if *found == table && *what == expected),
            "{table}: {error}"
        );
        tamper(&path, table, &key, None);
    }
}

#[test]
fn what_an_older_program_left_has_events_from_the_next_block_on_and_is_sound() {
    let (dir, mut chain, changes) = sound();
    let path = data(&dir);
    let first = chain.tip().height + 1;
    chain.store = open(&dir.path().join("aside"));
    for height in 1..first {
        tamper(&path, "block_events", &height.to_be_bytes(), None);
    }
    tamper(&path, "meta", b"eventsFrom", None);
    let read_only = Store::open_read_only(&path, Options::default()).unwrap();
    assert_eq!(read_only.events_from(), first, "nothing is written by who only reads");
    drop(read_only);
    chain.store = open(&path);
    let tx = chain.transfer(0, 1, 5);
    chain.block(&[tx]);
    drop(chain);
    let store = open(&path);
    assert_eq!(store.events_from(), first);
    assert_eq!(store.snapshot().events(first - 1).unwrap(), None);
    assert!(store.snapshot().events(first).unwrap().is_some());
    verify(&store, dir.path(), &replay(&changes)).unwrap();
}

#[test]
fn a_forged_transaction_is_found() {
    let (dir, chain, changes) = sound();
    let mut bytes = chain.store.snapshot().block_bytes(2).unwrap().unwrap();
    let header = chain.store.snapshot().header(2).unwrap().unwrap().header.payload().len() + 4;
    drop(chain);
    // The first signature of the segment.
    let length = u32::from_le_bytes(bytes[header..header + 4].try_into().unwrap());
    bytes[header + 4 + usize::try_from(length).unwrap()] ^= 1;
    let key = [2_u64.to_be_bytes().as_slice(), &0_u32.to_be_bytes()].concat();
    tamper(&data(&dir), "bodies", &key, Some(&bytes[header..]));
    let error = verify(&open(&data(&dir)), dir.path(), &replay(&changes)).unwrap_err();
    assert!(matches!(&error, ToolError::Replay { height: 2, .. }), "{error}");
}

/// Changes a row behind the program's back.
pub(crate) fn tamper(path: &Path, table: &str, key: &[u8], value: Option<&[u8]>) {
    let options = rocksdb::Options::default();
    let families = rocksdb::DB::list_cf(&options, path).unwrap();
    let db = rocksdb::DB::open_cf(&options, path, families).unwrap();
    let family = db.cf_handle(table).unwrap();
    match value {
        Some(value) => db.put_cf(family, key, value).unwrap(),
        None => db.delete_cf(family, key).unwrap(),
    }
}

#[test]
fn a_table_that_cannot_be_rewritten_is_no_success() {
    let (dir, chain, _) = sound();
    tools::compact(&chain.store, &mut quiet).unwrap();
    drop(chain);
    harm(&data(&dir), "tx_index");
    let error = tools::compact(&open(&data(&dir)), &mut quiet).unwrap_err();
    assert!(error.to_string().contains("the table tx_index was not rewritten"), "{error}");
}

/// Damages the rows of a table on the disk.
fn harm(path: &Path, table: &str) {
    let options = rocksdb::Options::default();
    let families = rocksdb::DB::list_cf(&options, path).unwrap();
    let files = rocksdb::DB::open_cf(&options, path, families).unwrap().live_files().unwrap();
    let files: Vec<_> = files.iter().filter(|file| file.column_family_name == table).collect();
    assert!(!files.is_empty(), "no row is in a file");
    for file in files {
        let path = path.join(file.name.trim_start_matches('/'));
        let mut bytes = fs::read(&path).unwrap();
        bytes[10] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn exported_blocks_make_the_same_chain_elsewhere() {
    let (dir, chain, changes) = sound();
    let file = dir.path().join("blocks");
    assert_eq!(tools::export(&chain.store, &file, (1, None), &mut quiet).unwrap(), 5);
    let again = tools::export(&chain.store, &file, (1, None), &mut quiet).unwrap_err();
    assert!(matches!(again, ToolError::Exists { .. }), "{again}");
    let names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");

    let other = open(&dir.path().join("other"));
    let tip = tools::import(&other, &file, &replay(&changes), &mut quiet).unwrap();
    assert_eq!(tip, chain.tip());
    // What is there already is passed over.
    assert_eq!(tools::import(&other, &file, &replay(&changes), &mut quiet).unwrap(), tip);
}

#[test]
fn blocks_of_others_are_followed_up_to_the_first_wrong_one() {
    let (dir, chain, changes) = sound();
    let good = encoded(&chain.store, 1..=5);
    for damage in 0..4 {
        let mut blocks = good.clone();
        match damage {
            0 => blocks[2].certificate[0] ^= 1,
            1 => *blocks[2].bytes.last_mut().unwrap() ^= 1,
            2 => blocks[2].bytes.truncate(100),
            _ => blocks[2].bytes = good[3].bytes.clone(),
        }
        let path = dir.path().join(format!("other-{damage}"));
        let mut heights = Vec::new();
        {
            let store = open(&path);
            let blocks = blocks.into_iter().map(Supply::Block);
            let followed = tools::follow(&store, &replay(&changes), blocks, |tip, count| {
                heights.push((tip.height, count > 0));
            });
            let error = followed.unwrap_err();
            assert_eq!(Some(3), error.wrong_block(), "damage {damage}: {error}");
        }
        // Nothing of the wrong block is there, and what came before it is on the disk.
        assert_eq!(vec![(1, true), (2, true)], heights);
        let store = open(&path);
        assert_eq!(2, store.tip().unwrap().height);
        assert_eq!(None, store.snapshot().header(3).unwrap());
        let rest = good[2..].iter().cloned().map(Supply::Block);
        let tip = tools::follow(&store, &replay(&changes), rest, |_, _| {}).unwrap();
        assert_eq!(chain.tip(), tip);
    }
}

#[test]
fn a_decided_block_with_other_transactions_than_its_header_says_is_its_senders_fault() {
    let (dir, chain, changes) = sound();
    let good = encoded(&chain.store, 1..=5);
    let content = |at: usize| {
        let header = u32::from_le_bytes(good[at].bytes[..4].try_into().unwrap());
        good[at].bytes.split_at(usize::try_from(header).unwrap() + 4)
    };
    let mut blocks = good.clone();
    blocks[2].bytes = [content(2).0, content(3).1].concat();
    let store = open(&dir.path().join("other"));
    let blocks = blocks.into_iter().map(Supply::Block);
    let error = tools::follow(&store, &replay(&changes), blocks, |_, _| {}).unwrap_err();
    assert_eq!(Some(3), error.wrong_block(), "{error}");
    assert!(error.to_string().contains("txRoot"), "{error}");
}

#[test]
fn a_decided_block_that_a_wrong_state_cannot_execute_is_named_and_is_no_senders_fault() {
    let (dir, chain, changes) = sound();
    let good = encoded(&chain.store, 1..=5);
    let sender = chain.wallets[0].address();
    // A transaction of the third block is refused; or a row differs, and so the root after that block.
    for (name, nonce, more, wrong) in [("nonce", -1, 0, 3), ("root", 0, 1, 4)] {
        let path = dir.path().join(name);
        let follow = |blocks: &[EncodedBlock]| {
            let blocks = blocks.iter().cloned().map(Supply::Block);
            tools::follow(&open(&path), &replay(&changes), blocks, |_, _| {})
        };
        follow(&good[..2]).unwrap();
        let mut account = open(&path).snapshot().account(&sender).unwrap();
        account.nonce = account.nonce.checked_add_signed(nonce).unwrap();
        account.balance = account.balance.checked_add(Amount::new(more)).unwrap();
        let row = encode_value::<Accounts>(&account);
        tamper(&path, "accounts", sender.as_bytes(), Some(&row));
        let error = follow(&good[2..]).unwrap_err();
        assert_eq!((None, true), (error.wrong_block(), error.is_of_own_state()), "{error}");
        let text = error.to_string();
        assert!(text.starts_with(&format!("block {wrong}: the validators have decided")), "{text}");
        assert_eq!(wrong - 1, open(&path).tip().unwrap().height);
    }
}

#[test]
fn what_is_there_is_executed_before_a_source_that_waits_gives_more() {
    let (dir, chain, changes) = sound();
    let store = open(&dir.path().join("other"));
    let (told, committed) = std::sync::mpsc::channel();
    let mut good = encoded(&chain.store, 1..=5).into_iter();
    let mut given = 0_u64;
    let mut is_first = true;
    // A block is given only when the one before it is committed, as by a chain that is slow.
    let source = std::iter::from_fn(move || {
        if std::mem::replace(&mut is_first, false) {
            return Some(Supply::Pause);
        }
        if given > 0 {
            let waited = committed.recv_timeout(std::time::Duration::from_secs(20));
            assert_eq!(Ok(given), waited, "the last block waits for the next");
        }
        given += 1;
        is_first = true;
        good.next().map(Supply::Block)
    });
    let told = |height| told.send(height).expect("the test listens");
    let tip = tools::follow(&store, &replay(&changes), source, |tip, _| told(tip.height)).unwrap();
    assert_eq!(chain.tip(), tip);
}

#[test]
fn a_damaged_export_is_refused_before_its_first_block() {
    let (dir, chain, changes) = sound();
    let file = dir.path().join("blocks");
    tools::export(&chain.store, &file, (1, None), &mut quiet).unwrap();
    let good = fs::read(&file).unwrap();
    let other = open(&dir.path().join("other"));
    for damage in 0..5 {
        let mut bytes = good.clone();
        match damage {
            0 => bytes.truncate(10),
            1 => bytes.truncate(good.len() - 1),
            2 => bytes[0] ^= 1,
            3 => bytes[good.len() / 2] ^= 1,
            _ => *bytes.last_mut().unwrap() ^= 1,
        }
        fs::write(&file, bytes).unwrap();
        let error = tools::import(&other, &file, &replay(&changes), &mut quiet).unwrap_err();
        assert!(matches!(error, ToolError::Archive { .. }), "damage {damage}: {error}");
        assert_eq!(other.tip().unwrap().height, 0);
    }
}

#[test]
fn an_export_that_fails_leaves_no_file() {
    let (dir, chain, _) = sound();
    let file = dir.path().join("blocks");
    for range in [(4, Some(3)), (6, None), (7, Some(9))] {
        let error = tools::export(&chain.store, &file, range, &mut quiet).unwrap_err();
        assert!(matches!(error, ToolError::NoBlocks { .. }), "{range:?}: {error}");
    }
    drop(chain);
    tamper(&data(&dir), "commits", &4_u64.to_be_bytes(), None);
    let error = tools::export(&open(&data(&dir)), &file, (1, None), &mut quiet).unwrap_err();
    assert!(matches!(error, ToolError::Missing { height: 4 }), "{error}");
    let left = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 1, "only the database");
}

#[test]
fn a_snapshot_is_restored_elsewhere() {
    let (dir, chain, _) = sound();
    let (copy, home) = (dir.path().join("copy"), dir.path().join("home"));
    tools::snapshot(&chain.store, &copy).unwrap();
    let tip = chain.tip();
    chain.block(&[]);
    let wrong = tools::restore(&copy, &home, Hash::ZERO, Options::default()).unwrap_err();
    assert!(matches!(wrong, ToolError::Storage(StorageError::Genesis { .. })), "{wrong}");
    let restored = tools::restore(&copy, &home, genesis_hash(), Options::default()).unwrap();
    assert_eq!(restored, tip);
    let store = open(&home);
    assert_eq!(store.tip().unwrap(), tip);
    assert_eq!(store.snapshot().block(5).unwrap(), chain.store.snapshot().block(5).unwrap());
    let taken = tools::restore(&copy, &home, genesis_hash(), Options::default()).unwrap_err();
    assert!(matches!(taken, ToolError::Exists { .. }), "{taken}");
}

#[test]
fn the_last_block_can_be_taken_back() {
    let (dir, chain, changes) = sound();
    let path = data(&dir);
    let before = chain.store.snapshot().header(4).unwrap().unwrap();
    let last = chain.store.snapshot().block(5).unwrap().unwrap();
    let tip = chain.tip();
    drop(chain);
    let back = tools::rollback(&path, Options::default(), &replay(&changes), &mut quiet).unwrap();
    assert_eq!((back.height, back.hash), (4, before.hash));

    let store = open(&path);
    let parent = store.parent().unwrap();
    let again = state::execute_block(&rules(), store.latest(), &parent, last).unwrap();
    let twin = TestChain { store, chain: rules(), wallets: Vec::new() };
    assert_eq!(twin.commit(&again), tip);
}

#[test]
fn there_is_nothing_to_take_back_at_genesis() {
    let (dir, chain) = TestChain::fresh(1);
    let changes = genesis_changes(&chain.wallets);
    drop(chain);
    let back = tools::rollback(&data(&dir), Options::default(), &replay(&changes), &mut quiet);
    let error = back.unwrap_err();
    assert!(matches!(error, ToolError::AtGenesis), "{error}");
}
