//! How many executions go on at once, for each executor.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use types::agent::ExecutorId;

/// Executions that go on.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Arc<Taken>);

#[derive(Debug, Default)]
struct Taken {
    counts: Mutex<BTreeMap<ExecutorId, u64>>,
    freed: Notify,
}

/// The right to execute; it goes with the thread that does.
#[derive(Debug)]
pub(super) struct Slot {
    taken: Arc<Taken>,
    executor: ExecutorId,
}

impl Slots {
    /// Waits for a slot of an executor, of which there are as many as `most` says at that time.
    pub(super) async fn take(&self, executor: ExecutorId, most: impl Fn() -> u64) -> Slot {
        loop {
            let freed = self.0.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            {
                let mut counts = self.0.counts.lock();
                let count = counts.entry(executor).or_default();
                if *count < most() {
                    *count = count.saturating_add(1);
                    return Slot { taken: Arc::clone(&self.0), executor };
                }
            }
            freed.await;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.taken.counts.lock();
        if let Some(count) = counts.get_mut(&self.executor) {
            *count = count.saturating_sub(1);
        }
        drop(counts);
        self.taken.freed.notify_waiters();
    }
}
