//! What happens, for subscribers, for peers and for the pace of blocks: committed heights and events
//! of the pool.
//!
//! ```text
//! pool, under its lock ──▶ queue ──▶ announce (main threads) ──▶ peers
//!                      └─▶ queue ─┐
//!                                ├─▶ relay (threads of the interfaces) ──▶ feeds, heights ──▶ subscribers
//! consensus ──▶ height ──────────┘
//! ```
//!
//! Whoever commits a block or changes the pool wakes two tasks at most. The relay wakes all others:
//! strangers decide how many there are.

mod queue;

use std::future::Future;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rpc::ports::{DroppedTx, Events, Feed, FeedBounds, Feeder, PoolEvent, PoolStanding};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use txpool::TxStanding;
use types::CheckedTx;

use crate::fault::NodeFault;
use crate::pace::Wake;
pub(crate) use queue::{Next, QueueReceiver};
use queue::{QueueSender, queue};

/// Dropped transactions that whoever waits for them may fall behind before it loses the oldest.
const DROPS_KEPT: FeedBounds = FeedBounds { events_max: 4_096, bytes_max: 16 * 1024 * 1024 };
/// Events that the relay passes on before it wakes those who listen.
const RELAYED_TOGETHER: usize = 256;

/// The one source of all events.
#[derive(Debug)]
pub(crate) struct EventBus {
    /// The height as consensus tells it, to the relay alone.
    committed: watch::Sender<u64>,
    /// The height as the relay tells it.
    relayed: watch::Sender<u64>,
    /// To the task that announces transactions to peers, once there is one.
    accepted: RwLock<Option<QueueSender<CheckedTx>>>,
    /// To the relay.
    happened: QueueSender<PoolEvent>,
    to_relay: Mutex<Option<QueueReceiver<PoolEvent>>>,
    pool: Feeder<PoolEvent>,
    dropped: Feeder<Arc<DroppedTx>>,
    wake: Arc<Wake>,
}

impl EventBus {
    /// A bus at this height; `wake` is told when a block may be due. So much is kept of the pool's events for
    /// subscribers that fall behind.
    pub(crate) fn new(height: u64, kept: FeedBounds, wake: Arc<Wake>) -> Self {
        let (happened, to_relay) = queue();
        Self {
            committed: watch::Sender::new(height),
            relayed: watch::Sender::new(height),
            accepted: RwLock::default(),
            happened,
            to_relay: Mutex::new(Some(to_relay)),
            pool: Feeder::new(kept),
            dropped: Feeder::new(DROPS_KEPT),
            wake,
        }
    }

    /// A block is committed and can be read.
    pub(crate) fn block_committed(&self, height: u64) {
        self.committed.send_replace(height);
    }

    /// The transactions that the pool accepts from now on, for the one task that announces them to peers.
    pub(crate) fn accepted(&self) -> QueueReceiver<CheckedTx> {
        let (sender, receiver) = queue();
        *self.accepted.write() = Some(sender);
        receiver
    }

    /// Tells subscribers what happens, until asked to stop. There is one such task.
    pub(crate) fn relay(
        self: Arc<Self>,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), NodeFault>> {
        let receiver = self.to_relay.lock().take();
        async move {
            let Some(receiver) = receiver else {
                stop.cancelled().await;
                return Ok(());
            };
            stop.run_until_cancelled(self.relay_from(receiver)).await;
            Ok(())
        }
    }

    async fn relay_from(&self, mut receiver: QueueReceiver<PoolEvent>) {
        let mut committed = self.committed.subscribe();
        self.relayed.send_replace(*committed.borrow_and_update());
        loop {
            tokio::select! {
                next = receiver.next() => {
                    let Some(next) = next else { return };
                    self.pass_on(next, &mut receiver);
                }
                changed = committed.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let height = *committed.borrow_and_update();
                    // First what the pool did before.
                    if let Some(next) = receiver.here() {
                        self.pass_on(next, &mut receiver);
                    }
                    self.relayed.send_replace(height);
                }
            }
            // There may be no end of events.
            tokio::task::yield_now().await;
        }
    }

    /// Passes on this and what else is here, as far as it goes at once.
    fn pass_on(&self, first: Next<PoolEvent>, receiver: &mut QueueReceiver<PoolEvent>) {
        self.add(first);
        for _ in 1..RELAYED_TOGETHER {
            let Some(next) = receiver.here() else { break };
            self.add(next);
        }
        self.dropped.tell();
        self.pool.tell();
    }

    fn add(&self, Next { lost, item }: Next<PoolEvent>) {
        if lost > 0 {
            self.pool.lose(lost);
            // There may have been dropped ones among them.
            self.dropped.lose(lost);
        }
        let Some(event) = item else { return };
        let bytes = event.memory_bytes();
        if let PoolEvent::Dropped(dropped) = &event {
            self.dropped.push(bytes, Arc::clone(dropped));
        }
        self.pool.push(bytes, event);
    }
}

impl Events for EventBus {
    fn committed(&self) -> watch::Receiver<u64> {
        self.relayed.subscribe()
    }

    fn pool(&self) -> Feed<PoolEvent> {
        // What is under way to the relay is older than this listener.
        self.pool.listen_from(|| self.happened.end())
    }

    fn dropped(&self) -> Feed<Arc<DroppedTx>> {
        self.dropped.listen()
    }
}

/// A dropped transaction in the words of the interfaces.
pub(crate) fn dropped(dropped: &txpool::Dropped) -> Arc<DroppedTx> {
    let txpool::Dropped { tx, reason, at_ms } = dropped;
    Arc::new(DroppedTx { tx: tx.clone(), reason: reason.clone(), at: *at_ms })
}

/// Where an accepted transaction stands in the words of the interfaces.
const fn standing_of(standing: TxStanding) -> PoolStanding {
    match standing {
        TxStanding::Pending | TxStanding::Included => PoolStanding::Pending,
        TxStanding::Queued => PoolStanding::Queued,
    }
}

/// An event in the words of the interfaces, if they tell of it.
fn told(event: txpool::PoolEvent) -> Option<PoolEvent> {
    match event {
        txpool::PoolEvent::Accepted { tx, standing } => {
            Some(PoolEvent::Accepted { tx, standing: standing_of(standing) })
        }
        txpool::PoolEvent::Dropped(it) => Some(PoolEvent::Dropped(dropped(&it))),
        txpool::PoolEvent::Promoted(_) | txpool::PoolEvent::Demoted(_) => None,
    }
}

impl txpool::ports::EventSink for EventBus {
    // Nobody listening is no trouble to any of these.
    fn publish(&self, events: Vec<txpool::PoolEvent>) {
        let announced = self.accepted.read();
        let is_heard = self.pool.listeners() > 0;
        for event in events.into_iter().filter_map(told) {
            let bytes = event.memory_bytes();
            if let PoolEvent::Accepted { tx, .. } = &event {
                if let Some(sender) = &*announced {
                    sender.put(bytes, tx.clone());
                }
                if !is_heard {
                    continue;
                }
            }
            self.happened.put(bytes, event);
        }
    }

    fn executable(&self) {
        self.wake.block_may_be_due();
    }
}

#[cfg(test)]
mod tests;
