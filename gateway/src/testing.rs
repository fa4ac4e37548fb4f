//! What the tests of this crate share: a clock, somebody who counts, and requests with their records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent::clock::Clock;
use parking_lot::Mutex;
use types::Hash;

use crate::keys::{Key, KeyId, hash_of};
use crate::operate::{Counters, Event};
use crate::record::{Bill, Delivery, Phase, Record, RequestId, Work};
use crate::store::NewRequest;

/// What the clock says when a test begins.
pub(crate) const NOW_MS: u64 = 1_800_000_000_000;

/// A clock that tests set.
#[derive(Debug)]
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(NOW_MS)))
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Everything that was counted.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Vec<Event>>);

impl Counters for Told {
    fn count(&self, event: Event) {
        self.0.lock().push(event);
    }
}

impl Told {
    /// What was counted since this was asked last.
    pub(crate) fn news(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A request for a run that may cost so much.
pub(crate) fn wants(key: &Key, body: &str, micro: u64) -> NewRequest {
    NewRequest {
        key: key.clone(),
        body: hash_of(body),
        name: None,
        is_retry: false,
        model: "ombra".to_owned(),
        work: Work::Run,
        max_fee_micro: micro - 10,
        micro,
        balance_micro: 1_000_000,
    }
}

/// What is written down of a request for a run, of which nothing is in a block.
pub(crate) fn record(phase: Phase) -> Record {
    Record {
        id: RequestId(1),
        key: KeyId(1),
        body: Hash::ZERO,
        name: None,
        created_ms: 5,
        model: "ombra".to_owned(),
        work: Work::Run,
        max_fee_micro: 1_000,
        reserved_micro: 1_100,
        phase,
        included: Vec::new(),
        delivery: Delivery::Waiting,
    }
}

/// What an answered run cost.
pub(crate) fn bill(run: Hash) -> Bill {
    Bill {
        run,
        status: "completed".to_owned(),
        reward_micro: 20,
        network_fee_micro: 100,
        fees_micro: 30,
        settlement_tx: None,
        block: None,
    }
}
