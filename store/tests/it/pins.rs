//! The state of one height, while the database moves on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use state::table::{Key, Table, TableId};
use state::tables::{Accounts, Deadlines};
use state::view::{Range, RawRow, Read};
use state::{PendingState, SharedPending, StorageError, TxError};
use store::{Pinned, pinned_tables};
use types::{Amount, CheckedTx, Code, Event};

use crate::fixture::{BLOCK_MS, TestChain, Wallet};

/// Every row that a pin has, by scans, and each of them once more by its key.
fn rows(pin: &Pinned) -> Vec<(TableId, RawRow)> {
    let range = Range { from: &[], to: None, limit: usize::MAX };
    let all = pinned_tables().flat_map(|table| {
        let rows = pin.scan_raw(table, range).unwrap();
        rows.into_iter().map(move |row| (table, row))
    });
    let all: Vec<_> = all.collect();
    for (table, (key, value)) in &all {
        assert_eq!(pin.get_raw(*table, key).unwrap().as_ref(), Some(value));
        assert!(pin.contains_raw(*table, key).unwrap());
    }
    all
}

/// The transactions of a block of everything: a run, a blob, a registration, payments to new accounts.
fn of_everything(chain: &mut TestChain, number: u64) -> Vec<CheckedTx> {
    let mut txs = chain.whole_run(number);
    let user = &mut chain.wallets[0];
    txs.extend(user.blob(&format!("blob-{number}"), b"a few bytes"));
    txs.push(user.transfer(Wallet::new(1_000 + number).address(), 5));
    txs
}

#[test]
fn a_pin_stands_still_while_blocks_are_committed() {
    let (_dir, mut chain) = TestChain::fresh(2);
    let pinned = |chain: &TestChain| {
        let pin = chain.store.pin().unwrap();
        let now = rows(&pin);
        (pin, now)
    };
    let mut pins = vec![pinned(&chain)];
    for number in 0..4 {
        let txs = of_everything(&mut chain, number);
        chain.block(&txs);
        let fresh = Wallet::new(1_000 + number).address();
        for (pin, before) in &pins {
            assert_eq!(rows(pin), *before, "the state after block {}", pin.height());
            assert_eq!(pin.get_raw(Accounts::ID, &fresh.to_bytes()).unwrap(), None);
            assert!(!pin.contains_raw(Accounts::ID, &fresh.to_bytes()).unwrap());
        }
        let (pin, now) = pinned(&chain);
        assert_eq!(pin.height(), number + 1);
        assert!(pin.contains_raw(Accounts::ID, &fresh.to_bytes()).unwrap());
        pins.push((pin, now));
    }
    // Pieces of a page are pieces of the whole.
    let (pin, all) = &pins[2];
    let accounts: Vec<&RawRow> =
        all.iter().filter(|(table, _)| *table == Accounts::ID).map(|(_, row)| row).collect();
    let page = pin.scan_raw(Accounts::ID, Range { from: &[], to: None, limit: 2 }).unwrap();
    assert_eq!(page.iter().collect::<Vec<_>>(), accounts[..2]);
}

#[test]
fn a_pin_is_lost_after_a_few_blocks_and_says_so() {
    let (_dir, chain) = TestChain::fresh(1);
    let pin = chain.store.pin().unwrap();
    let key = chain.wallets[0].address().to_bytes();
    for _ in 0..4 {
        chain.block(&[]);
        pin.get_raw(Accounts::ID, &key).unwrap();
    }
    chain.block(&[]);
    let lost = pin.get_raw(Accounts::ID, &key).unwrap_err();
    assert!(matches!(lost, StorageError::Moved { height: 0 }), "{lost}");
}

#[test]
fn a_pin_refuses_what_it_does_not_hold() {
    let (_dir, chain) = TestChain::fresh(1);
    let pin = chain.store.pin().unwrap();
    let refused = pin.get_raw(Deadlines::ID, &[]).unwrap_err();
    assert!(matches!(refused, StorageError::Inconsistent { .. }), "{refused}");
}

/// What a pin reads while blocks are written is of its height at any time, not only between them.
#[test]
fn a_pin_stands_still_in_the_middle_of_a_commit() {
    let (_dir, mut chain) = TestChain::fresh(40);
    let ends = AtomicBool::new(false);
    let store = chain.store.clone();
    let addresses: Vec<_> = chain.wallets.iter().map(|it| it.address().to_bytes()).collect();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut moments = 0_u32;
            while !ends.load(Ordering::SeqCst) {
                let pin = store.pin().unwrap();
                let all = || -> Option<Vec<_>> {
                    let read = |key: &Vec<u8>| pin.get_raw(Accounts::ID, key).ok();
                    addresses.iter().map(read).collect()
                };
                let Some(first) = all() else { continue };
                for _ in 0..50 {
                    let Some(again) = all() else { break };
                    assert_eq!(first, again, "the state after block {}", pin.height());
                }
                moments += 1;
            }
            moments
        });
        for _ in 0..60 {
            let to = chain.wallets[0].address();
            let txs: Vec<_> = chain.wallets.iter_mut().map(|it| it.transfer(to, 1)).collect();
            chain.block(&txs);
        }
        ends.store(true, Ordering::SeqCst);
        assert!(reader.join().unwrap() > 0);
    });
}

/// Between the write of a block that drops a blob and the moment when the pool follows it, the last
/// chunks of the blob are as valid as before.
#[test]
fn the_last_chunk_of_a_blob_that_a_block_has_just_dropped_is_no_fault() {
    let (_dir, mut chain) = TestChain::fresh(1);
    let bytes = vec![7; 800_001];
    let mut parts = chain.wallets[0].blob("b", &bytes);
    let finalize = parts.pop().unwrap();
    let (rest, begun) = (parts.split_off(2), parts);
    chain.block(&begun);
    let base = chain.store.pin().unwrap();
    let shared = Arc::new(SharedPending::new(base.into(), Arc::clone(&chain.chain)).unwrap());
    shared.lock().admit(&rest[0]).unwrap();
    let executed = chain.execute_after(3_600_001, &[]);
    assert!(executed.events.end.contains(&Event::BlobDropped { blob_id: "b".to_owned() }));
    chain.commit(&executed);
    // The block is written; the pool has not heard of it.
    shared.simulate(&rest[1], 3, 0).unwrap();
    shared.lock().check(&rest[1]).unwrap();
    shared.lock().admit(&rest[1]).unwrap();
    shared.lock().admit(&finalize).unwrap();
    // Then it has.
    let base = chain.store.pin().unwrap();
    let before: PendingState = shared.lock().reset(base.into()).unwrap();
    assert_eq!(before.len(), 3);
    let refused = shared.lock().admit(&rest[0]).unwrap_err();
    let is_gone = matches!(&refused, TxError::Rejected(it) if it.code() == Code::BlobNotFound);
    assert!(is_gone, "{refused}");
    let account = shared.lock().account(chain.wallets[0].address()).unwrap();
    assert_eq!(account.nonce, 2);
    assert!(account.balance > Amount::ZERO);
    chain.execute_after(BLOCK_MS, &[]);
}
