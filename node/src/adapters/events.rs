//! What happens, for subscribers: committed heights and events of the pool.

use std::sync::Arc;

use rpc::ports::{DroppedTx, Events, PoolEvent};
use tokio::sync::{broadcast, watch};

/// Pool events that a slow subscriber may fall behind before it loses the oldest: at full speed
/// about half a second's worth.
const POOL_EVENTS_KEPT: usize = 16_384;

/// The one source of both kinds of events.
#[derive(Debug)]
pub(crate) struct EventBus {
    committed: watch::Sender<u64>,
    pool: broadcast::Sender<PoolEvent>,
}

impl EventBus {
    pub(crate) fn new(height: u64) -> Self {
        Self {
            committed: watch::Sender::new(height),
            pool: broadcast::Sender::new(POOL_EVENTS_KEPT),
        }
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
