//! A double of the pool. What it does with a transaction stands in its text.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use p2p::SignedTx;
use p2p::ports::{Listing, Outcome, Pool};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use types::{Address, Code, Hash};

/// A transaction with `bad` in it has a wrong signature, one with `lost` lost a race; every other
/// is taken. Its sender is the first byte of its hash.
pub(crate) struct DoublePool {
    taken: Mutex<BTreeMap<Hash, SignedTx>>,
    offered: AtomicUsize,
    /// Takes everything, as a dishonest node does.
    takes_all: bool,
    /// Closed while the pool is busy.
    gate: Semaphore,
}

impl Default for DoublePool {
    fn default() -> Self {
        Self {
            taken: Mutex::default(),
            offered: AtomicUsize::new(0),
            takes_all: false,
            gate: Semaphore::new(1),
        }
    }
}

fn sender(hash: &Hash) -> Address {
    let mut address = [0; 20];
    address[0] = hash.as_bytes()[0];
    Address::new(address)
}

impl DoublePool {
    pub(crate) fn that_takes_all() -> Self {
        Self { takes_all: true, ..Self::default() }
    }

    pub(crate) fn that_is_busy() -> Self {
        Self { gate: Semaphore::new(0), ..Self::default() }
    }

    pub(crate) fn put(&self, tx: SignedTx) {
        self.taken.lock().insert(tx.hash(), tx);
    }

    pub(crate) fn has(&self, hash: &Hash) -> bool {
        self.taken.lock().contains_key(hash)
    }

    /// Whether a transaction whose text begins like this was taken.
    pub(crate) fn has_like(&self, beginning: &str) -> bool {
        self.taken.lock().values().any(|tx| tx.payload().starts_with(beginning))
    }

    /// Transactions whose texts begin like this.
    pub(crate) fn count_like(&self, beginning: &str) -> usize {
        self.taken.lock().values().filter(|tx| tx.payload().starts_with(beginning)).count()
    }

    pub(crate) fn count(&self) -> usize {
        self.taken.lock().len()
    }

    /// How many transactions peers' messages brought before the pool.
    pub(crate) fn offered(&self) -> usize {
        self.offered.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Pool for DoublePool {
    async fn submit(&self, txs: Vec<SignedTx>) -> Vec<Outcome> {
        self.offered.fetch_add(txs.len(), Ordering::SeqCst);
        let _open = self.gate.acquire().await.expect("the gate stays");
        let mut taken = self.taken.lock();
        let answers = txs.into_iter().map(|tx| {
            if tx.payload().contains("bad") && !self.takes_all {
                Outcome::Refused(Code::BadSignature)
            } else if tx.payload().contains("lost") && !self.takes_all {
                Outcome::Refused(Code::RunNotPending)
            } else if taken.insert(tx.hash(), tx).is_some() {
                Outcome::Known
            } else {
                Outcome::New
            }
        });
        answers.collect()
    }

    async fn unknown(&self, mut hashes: Vec<Hash>) -> Vec<Hash> {
        let taken = self.taken.lock();
        hashes.retain(|hash| !taken.contains_key(hash));
        hashes
    }

    async fn list(&self, after: Option<Address>, wanted: usize) -> Listing {
        let taken = self.taken.lock();
        let mut listing = Listing::default();
        for hash in taken.keys().filter(|hash| after.is_none_or(|after| sender(hash) > after)) {
            let last = listing.hashes.last().map(sender);
            if listing.hashes.len() >= wanted && last != Some(sender(hash)) {
                listing.next = last;
                break;
            }
            listing.hashes.push(*hash);
        }
        listing
    }

    async fn fetch(&self, hashes: Vec<Hash>) -> Vec<SignedTx> {
        let taken = self.taken.lock();
        hashes.iter().filter_map(|hash| taken.get(hash).cloned()).collect()
    }

    fn height(&self) -> u64 {
        5
    }
}
