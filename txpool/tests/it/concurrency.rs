//! Submissions, blocks, flushes and queries at the same time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tempfile::TempDir;
use txpool::ports::CommittedChain;
use txpool::{BlockLimits, Config, Pool, PoolFault, Ports};
use types::{CheckedTx, Hash};

use crate::journal::restore;
use crate::support::ledger::{TestChain, TestDraft, params};
use crate::support::world::{NOW, Recorder, SKEW};
use crate::support::{Wallet, World};

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

/// Looks at the account of each sender when the pool asks to be prepared for its transaction.
struct Looking {
    chain: Arc<TestChain>,
    pool: OnceLock<Arc<Pool>>,
    nonces: Mutex<Vec<u64>>,
}

impl CommittedChain for Looking {
    fn is_included(&self, hash: Hash) -> Result<bool, PoolFault> {
        self.chain.is_included(hash)
    }

    fn prepare(&self, tx: &CheckedTx) {
        let pool = self.pool.get().unwrap();
        self.nonces.lock().push(pool.account(tx.from()).unwrap().nonce);
    }
}

#[test]
fn others_get_the_pool_between_the_parts_of_a_batch() {
    let [a, b] = Wallet::first();
    let chain = TestChain::new(params(), &[(&a, 1_000)], &[]);
    let ledger = Box::new(TestDraft::new(Arc::clone(&chain)));
    let looking = Looking { chain, pool: OnceLock::new(), nonces: Mutex::default() };
    let looking = Arc::new(looking);
    let chain: Arc<dyn CommittedChain> = Arc::<Looking>::clone(&looking);
    let ports = Ports { ledger, chain, events: Arc::<Recorder>::default() };
    let pool = Arc::new(Pool::new(Config::default(), SKEW, ports));
    looking.pool.set(Arc::clone(&pool)).unwrap();
    let answers = pool.submit(&a.each(0..20, |it| it.transfer(&b, 1)), NOW);
    assert!(answers.iter().all(Result::is_ok));
    let parts = [[0; 8].as_slice(), &[8; 8], &[16; 4]].concat();
    assert_eq!(parts, *looking.nonces.lock());
}
