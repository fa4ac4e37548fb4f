//! What happens, for subscribers, for peers and for the pace of blocks: committed heights and events
//! of the pool.

use std::sync::Arc;

use rpc::ports::{DroppedTx, Events, PoolEvent, PoolStanding};
use tokio::sync::{broadcast, watch};
use txpool::TxStanding;
use types::CheckedTx;

use crate::pace::Wake;

/// Dropped transactions that whoever waits for them may fall behind before it loses the oldest.
const DROPS_KEPT: usize = 4_096;

/// The one source of all events.
#[derive(Debug)]
pub(crate) struct EventBus {
    committed: watch::Sender<u64>,
    accepted: broadcast::Sender<CheckedTx>,
    pool: broadcast::Sender<PoolEvent>,
    dropped: broadcast::Sender<Arc<DroppedTx>>,
    wake: Arc<Wake>,
}

impl EventBus {
    /// A bus at this height; `wake` is told when a block may be due. A subscriber may fall
    /// `pool_events_max` events of the pool behind before it loses the oldest.
    pub(crate) fn new(height: u64, pool_events_max: u32, wake: Arc<Wake>) -> Self {
        let kept = usize::try_from(pool_events_max).unwrap_or(usize::MAX);
        // A channel has at least one place, and no more than half of what can be addressed.
        let kept = kept.clamp(1, usize::MAX / 2);
        Self {
            committed: watch::Sender::new(height),
            accepted: broadcast::Sender::new(kept),
            pool: broadcast::Sender::new(kept),
            dropped: broadcast::Sender::new(DROPS_KEPT),
            wake,
        }
    }

    /// A block is committed and can be read.
    pub(crate) fn block_committed(&self, height: u64) {
        self.committed.send_replace(height);
    }

    /// The transactions that the pool accepts from now on. A receiver that falls behind loses the
    /// oldest.
    pub(crate) fn accepted(&self) -> broadcast::Receiver<CheckedTx> {
        self.accepted.subscribe()
    }
}

impl Events for EventBus {
    fn committed(&self) -> watch::Receiver<u64> {
        self.committed.subscribe()
    }

    fn pool(&self) -> broadcast::Receiver<PoolEvent> {
        self.pool.subscribe()
    }

    fn dropped(&self) -> broadcast::Receiver<Arc<DroppedTx>> {
        self.dropped.subscribe()
    }
}

/// A dropped transaction in the words of the interfaces.
pub(crate) fn dropped(dropped: &txpool::Dropped) -> Arc<DroppedTx> {
    let txpool::Dropped { tx, reason, at_ms } = dropped;
    Arc::new(DroppedTx { tx: tx.clone(), reason: reason.clone(), at: *at_ms })
}

/// Where an accepted transaction stands in the words of the interfaces.
const fn told(standing: TxStanding) -> PoolStanding {
    match standing {
        TxStanding::Pending | TxStanding::Included => PoolStanding::Pending,
        TxStanding::Queued => PoolStanding::Queued,
    }
}

impl txpool::ports::EventSink for EventBus {
    // Nobody listening is no trouble to any of these.
    fn publish(&self, events: Vec<txpool::PoolEvent>) {
        let is_announced = self.accepted.receiver_count() > 0;
        let is_subscribed = self.pool.receiver_count() > 0;
        for event in events {
            match event {
                txpool::PoolEvent::Accepted { tx, standing } => {
                    if is_subscribed {
                        let (tx, standing) = (tx.clone(), told(standing));
                        drop(self.pool.send(PoolEvent::Accepted { tx, standing }));
                    }
                    if is_announced {
                        drop(self.accepted.send(tx));
                    }
                }
                txpool::PoolEvent::Dropped(it) => {
                    let it = dropped(&it);
                    drop(self.dropped.send(Arc::clone(&it)));
                    drop(self.pool.send(PoolEvent::Dropped(it)));
                }
                txpool::PoolEvent::Promoted(_) | txpool::PoolEvent::Demoted(_) => {}
            }
        }
    }

    fn executable(&self) {
        self.wake.block_may_be_due();
    }
}

#[cfg(test)]
mod tests {
    //! Who hears what.

    use tokio::sync::broadcast::error::TryRecvError;
    use txpool::ports::EventSink as _;
    use types::{Code, Rejection};

    use super::*;
    use crate::ingest::testing::{World, transfer};

    #[test]
    fn peers_hear_of_what_is_accepted_and_subscribers_of_drops_too() {
        let bus = EventBus::new(0, 16, Arc::default());
        let tx = World::new().checked(&transfer(0, 0, 1));
        let accepted = |standing| txpool::PoolEvent::Accepted { tx: tx.clone(), standing };
        let reason = Rejection::new(Code::PoolFull, "pool", "full", "room");
        let dropped = txpool::Dropped { tx: tx.clone(), reason: reason.clone(), at_ms: 7 };
        let dropped = || txpool::PoolEvent::Dropped(Arc::new(dropped.clone()));

        let mut peers = bus.accepted();
        let promoted = txpool::PoolEvent::Promoted(tx.clone());
        bus.publish(vec![accepted(TxStanding::Pending), dropped(), promoted]);
        assert_eq!(Ok(tx.clone()), peers.try_recv());
        assert_eq!(Err(TryRecvError::Empty), peers.try_recv());

        let mut subscriber = bus.pool();
        bus.publish(vec![accepted(TxStanding::Pending), accepted(TxStanding::Queued), dropped()]);
        assert_eq!([Ok(tx.clone()), Ok(tx.clone())], [peers.try_recv(), peers.try_recv()]);
        for standing in [PoolStanding::Pending, PoolStanding::Queued] {
            let told = PoolEvent::Accepted { tx: tx.clone(), standing };
            assert_eq!(Ok(told), subscriber.try_recv());
        }
        let told = DroppedTx { tx, reason, at: 7 };
        assert_eq!(Ok(PoolEvent::Dropped(Arc::new(told))), subscriber.try_recv());
        assert_eq!(Err(TryRecvError::Empty), subscriber.try_recv());
    }
}
