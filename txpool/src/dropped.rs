//! The memory of dropped transactions, so that clients can ask why.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use types::Hash;

use crate::{Config, Dropped};

/// The last dropped transactions, bounded by count, bytes and age.
#[derive(Debug)]
pub(crate) struct DroppedRing {
    count_max: usize,
    bytes_max: usize,
    age_max_ms: u64,
    oldest_first: VecDeque<Arc<Dropped>>,
    by_hash: BTreeMap<Hash, Arc<Dropped>>,
    bytes: usize,
}

impl DroppedRing {
    pub(crate) const fn new(config: &Config) -> Self {
        Self {
            count_max: config.dropped_count_max,
            bytes_max: config.dropped_bytes_max,
            age_max_ms: config.dropped_age_max_ms,
            oldest_first: VecDeque::new(),
            by_hash: BTreeMap::new(),
            bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, dropped: Arc<Dropped>) {
        let now_ms = dropped.at_ms;
        self.bytes = self.bytes.saturating_add(dropped.tx.encoded_bytes());
        self.by_hash.insert(dropped.tx.hash(), Arc::clone(&dropped));
        self.oldest_first.push_back(dropped);
        self.expire(now_ms);
    }

    /// Forgets what is over the limits.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        let oldest_ms = now_ms.saturating_sub(self.age_max_ms);
        while let Some(first) = self.oldest_first.front() {
            let over = self.oldest_first.len() > self.count_max || self.bytes > self.bytes_max;
            if !over && first.at_ms >= oldest_ms {
                return;
            }
            self.bytes = self.bytes.saturating_sub(first.tx.encoded_bytes());
            let hash = first.tx.hash();
            if self.by_hash.get(&hash).is_some_and(|latest| Arc::ptr_eq(latest, first)) {
                self.by_hash.remove(&hash);
            }
            self.oldest_first.pop_front();
        }
    }

    /// The transaction was accepted again.
    pub(crate) fn forget(&mut self, hash: Hash) {
        self.by_hash.remove(&hash);
    }

    pub(crate) fn get(&self, hash: Hash) -> Option<&Arc<Dropped>> {
        self.by_hash.get(&hash)
    }
}
