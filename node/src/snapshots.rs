//! Making snapshots of the state for others, while the node runs.
//!
//! The thread of commits hands over at certain heights, so that all nodes make them of the same ones
//! and a fetching node can ask them for the same chunks. It goes on as soon as the database holds the
//! moment fast, which takes microseconds; the writing is done here, at a low rate.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use store::Store;
use store::snapshots::{MakeError, SnapshotStore};
use tokio_util::sync::CancellationToken;

use crate::fault::NodeFault;

/// Bytes a second that are read and written: a small part of what a disk gives.
const BYTES_PER_SECOND: u64 = 32 << 20;
/// How long to sleep at least, once there is a reason to.
const NAP: Duration = Duration::from_millis(5);
/// How often the thread looks whether it shall stop, and whether the next block is there.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How long a commit waits to be let go on; far more than it takes.
const PIN_TIME_MAX: Duration = Duration::from_secs(2);

/// Called after commits.
#[derive(Debug)]
pub(crate) struct Pinner {
    interval: u64,
    orders: SyncSender<SyncSender<()>>,
}

/// The thread's end.
#[derive(Debug)]
pub(crate) struct Maker {
    snapshot_store: Arc<SnapshotStore>,
    store: Store,
    orders: Receiver<SyncSender<()>>,
}

/// Both ends. A snapshot is made of every height that is a multiple of `interval`.
pub(crate) fn open(
    snapshot_store: Arc<SnapshotStore>,
    store: Store,
    interval: u64,
) -> (Pinner, Maker) {
    // Without room in between: an order is taken by a thread that waits for it, or not at all.
    let (sender, orders) = mpsc::sync_channel(0);
    (Pinner { interval: interval.max(1), orders: sender }, Maker { snapshot_store, store, orders })
}

impl Pinner {
    /// Has the state pinned if it is one to be offered. If the thread is still writing an earlier
    /// one, this one is left out.
    pub(crate) fn committed(&self, height: u64) {
        if !height.is_multiple_of(self.interval) {
            return;
        }
        let (pinned, answer) = mpsc::sync_channel(1);
        if self.orders.try_send(pinned).is_err() {
            tracing::debug!(height, "no snapshot: an earlier one is still being written");
            return;
        }
        if answer.recv_timeout(PIN_TIME_MAX).is_err() {
            // The commit goes on: at worst the snapshot is of a later height.
            tracing::debug!(height, "the state was not pinned in time");
        }
    }
}

impl Maker {
    /// Makes snapshots until asked to stop. Blocks its thread.
    pub(crate) fn run(self, stop: &CancellationToken) -> Result<(), NodeFault> {
        let (mut waits, mut has_failed) = (true, false);
        while !stop.is_cancelled() {
            match self.orders.recv_timeout(LOOK_INTERVAL) {
                Ok(pinned) => {
                    self.make(&pinned, stop);
                    (waits, has_failed) = (true, false);
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The chain is gone with its end; the node stops.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK_INTERVAL),
            }
            waits = waits && self.settle(&mut has_failed);
        }
        Ok(())
    }

    /// A snapshot that fails costs this node nothing but the snapshot.
    fn make(&self, pinned: &SyncSender<()>, stop: &CancellationToken) {
        let started = Instant::now();
        let mut bytes = 0_u64;
        let mut throttle = |more: u64| {
            bytes = bytes.saturating_add(more);
            let due = Duration::from_millis(bytes.saturating_mul(1_000) / BYTES_PER_SECOND);
            let ahead = due.saturating_sub(started.elapsed());
            if ahead >= NAP {
                std::thread::sleep(ahead.min(LOOK_INTERVAL));
            }
            !stop.is_cancelled()
        };
        let tell = |height| {
            if pinned.try_send(()).is_err() {
                tracing::debug!(height, "the commit did not wait for the state to be pinned");
            }
        };
        match self.snapshot_store.make(&self.store, tell, &mut throttle) {
            Ok(height) => tracing::info!(height, bytes, "wrote a snapshot of the state"),
            Err(MakeError::Stopped) => {}
            Err(error) => tracing::warn!(%error, "cannot write a snapshot of the state"),
        }
    }

    /// Offers what was written, once the next block is there. Answers whether something still waits. What
    /// fails is told once.
    fn settle(&self, has_failed: &mut bool) -> bool {
        let tip = self.store.tip().map_or(0, |tip| tip.height);
        match self.snapshot_store.settle(&self.store) {
            Ok(newest) => tracing::debug!(?newest, "snapshots are offered"),
            Err(error) if !std::mem::replace(has_failed, true) => {
                tracing::warn!(%error, "cannot maintain the snapshots");
            }
            Err(_told) => {}
        }
        self.snapshot_store.waiting().is_some_and(|height| height >= tip)
    }
}
