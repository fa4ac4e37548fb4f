//! Submissions, blocks, flushes and queries at the same time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use txpool::{BlockLimits, Config};
use types::{CheckedTx, Hash};

use crate::journal::restore;
use crate::support::World;
use crate::support::world::NOW;

const PER_SENDER: u64 = 300;

/// Sends a wallet's transactions in small batches, every second batch in reverse.
fn send(world: &World, txs: &[CheckedTx], still_sending: &AtomicUsize) {
    for (number, batch) in txs.chunks(7).enumerate() {
        let mut batch = batch.to_vec();
        if number % 2 == 1 {
            batch.reverse();
        }
        for answer in world.pool.submit(&batch, NOW) {
            answer.unwrap();
        }
    }
    still_sending.fetch_sub(1, Ordering::SeqCst);
}

/// Makes blocks until nobody sends and nothing is left; answers what was included.
fn make_blocks(world: &World, still_sending: &AtomicUsize) -> Vec<Hash> {
    let mut all = Vec::new();
    loop {
        let is_last = still_sending.load(Ordering::SeqCst) == 0;
        let mut included = world.pool.candidates(BlockLimits { bytes: 10_000, count: 25 });
        let mut block = world.chain.begin();
        included.retain(|tx| block.push(tx).is_ok());
        if block.is_empty() {
            if is_last {
                return all;
            }
            std::thread::yield_now();
            continue;
        }
        all.extend(included.iter().map(|tx| tx.hash()));
        world.commit_block(block);
    }
}

#[test]
fn every_accepted_transaction_gets_into_a_block_once() {
    let directory = TempDir::new().unwrap();
    let (without, [a, b, c]) = World::of_three();
    let world = without.restarted(Config::default(), directory.path());
    restore(&world).unwrap();
    let sent = [&a, &b, &c].map(|wallet| wallet.each(0..PER_SENDER, |it| it.transfer(&a, 1)));
    let still_sending = AtomicUsize::new(sent.len());

    let included = std::thread::scope(|scope| {
        for txs in &sent {
            scope.spawn(|| send(&world, txs, &still_sending));
        }
        scope.spawn(|| {
            while still_sending.load(Ordering::SeqCst) > 0 {
                world.pool.flush_journal().unwrap();
                assert!(world.pool.content(None, 10).items.len() <= sent.len());
                world.pool.account(a.address()).unwrap();
            }
        });
        let blocks = scope.spawn(|| make_blocks(&world, &still_sending));
        blocks.join().unwrap()
    });

    let once: BTreeSet<Hash> = included.iter().copied().collect();
    let expected: BTreeSet<Hash> = sent.iter().flatten().map(|tx| tx.hash()).collect();
    assert_eq!((expected.len(), expected), (included.len(), once));
    let stats = world.pool.stats();
    assert_eq!((0, 0, 0, 0), (stats.pending, stats.queued, stats.bytes, stats.senders));
    world.pool.flush_journal().unwrap();
    let again = world.restarted(Config::default(), directory.path());
    assert_eq!(0, restore(&again).unwrap().accepted);
}
