//! What happens, for subscribers: committed heights and events of the pool.

use std::sync::Arc;

use rpc::ports::{DroppedTx, Events, PoolEvent};
use tokio::sync::{broadcast, watch};

/// The one source of both kinds of events.
#[derive(Debug)]
pub(crate) struct EventBus {
    committed: watch::Sender<u64>,
    pool: broadcast::Sender<PoolEvent>,
}

impl EventBus {
    /// A subscriber may fall `pool_events_max` events of the pool behind before it loses the oldest.
    pub(crate) fn new(height: u64, pool_events_max: u32) -> Self {
        let kept = usize::try_from(pool_events_max).unwrap_or(usize::MAX);
        // A channel has at least one place, and no more than half of what can be addressed.
        let kept = kept.clamp(1, usize::MAX / 2);
        Self { committed: watch::Sender::new(height), pool: broadcast::Sender::new(kept) }
    }

    /// A block is committed and can be read.
    pub(crate) fn block_committed(&self, height: u64) {
        self.committed.send_replace(height);
    }
}

impl Events for EventBus {
    fn committed(&self) -> watch::Receiver<u64> {
        self.committed.subscribe()
    }

    fn pool(&self) -> broadcast::Receiver<PoolEvent> {
        self.pool.subscribe()
    }
}

/// A dropped transaction in the words of the interfaces.
pub(crate) fn dropped(dropped: &txpool::Dropped) -> Arc<DroppedTx> {
    let txpool::Dropped { tx, reason, at_ms } = dropped;
    Arc::new(DroppedTx { tx: tx.clone(), reason: reason.clone(), at: *at_ms })
}

impl txpool::ports::EventSink for EventBus {
    fn publish(&self, events: Vec<txpool::PoolEvent>) {
        if self.pool.receiver_count() == 0 {
            return;
        }
        for event in events {
            let event = match event {
                txpool::PoolEvent::Accepted { tx, .. } => PoolEvent::Accepted(tx),
                txpool::PoolEvent::Dropped(it) => PoolEvent::Dropped(dropped(&it)),
                txpool::PoolEvent::Promoted(_) | txpool::PoolEvent::Demoted(_) => continue,
            };
            // Nobody listening any more is no trouble.
            drop(self.pool.send(event));
        }
    }
}
