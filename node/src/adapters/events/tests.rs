//! Who hears what, and who is woken by whom.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake as Waking, Waker};

use futures::FutureExt as _;
use rpc::ports::FeedError;
use txpool::ports::EventSink as _;
use types::{Code, Rejection};

use super::*;
use crate::ingest::testing::{World, transfer};

const KEPT: FeedBounds = FeedBounds { events_max: 16, bytes_max: 1024 * 1024 };

fn bus() -> Arc<EventBus> {
    Arc::new(EventBus::new(0, KEPT, Arc::default()))
}

fn tx() -> CheckedTx {
    World::new().checked(&transfer(0, 0, 1))
}

fn accepted(tx: &CheckedTx) -> txpool::PoolEvent {
    txpool::PoolEvent::Accepted { tx: tx.clone(), standing: TxStanding::Pending }
}

/// Counts how often somebody is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Waking for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What a relay passes on while there is something to pass on.
async fn relay(bus: &Arc<EventBus>, heard: impl Future<Output = ()>) {
    let stop = CancellationToken::new();
    tokio::select! {
        _ = Arc::clone(bus).relay(stop) => unreachable!("nobody has stopped it"),
        () = heard => {}
    }
}

#[tokio::test]
async fn peers_hear_of_what_is_accepted_and_subscribers_of_drops_too() {
    let (bus, tx) = (bus(), tx());
    let reason = Rejection::new(Code::PoolFull, "pool", "full", "room");
    let dropped = txpool::Dropped { tx: tx.clone(), reason: reason.clone(), at_ms: 7 };
    let dropped = || txpool::PoolEvent::Dropped(Arc::new(dropped.clone()));

    let mut peers = bus.accepted();
    bus.publish(vec![accepted(&tx), dropped(), txpool::PoolEvent::Promoted(tx.clone())]);
    assert_eq!(Some(Next { lost: 0, item: Some(tx.clone()) }), peers.here());
    assert_eq!(None, peers.here());

    let (mut subscriber, mut waiting) = (bus.pool(), bus.dropped());
    bus.publish(vec![accepted(&tx), dropped()]);
    assert_eq!(Some(Next { lost: 0, item: Some(tx.clone()) }), peers.here());
    let told = Arc::new(DroppedTx { tx: tx.clone(), reason, at: 7 });
    let heard = async {
        assert_eq!(
            Ok(PoolEvent::Accepted { tx: tx.clone(), standing: PoolStanding::Pending }),
            subscriber.next().await
        );
        assert_eq!(Ok(PoolEvent::Dropped(Arc::clone(&told))), subscriber.next().await);
        assert_eq!(None, subscriber.next().now_or_never(), "what was before it is not told");
        // Whoever waits for drops has been there all the time.
        assert_eq!(Ok(Arc::clone(&told)), waiting.next().await);
    };
    relay(&bus, heard).await;
}

#[tokio::test]
async fn whoever_listens_is_woken_by_the_relay_and_by_nobody_else() {
    let (bus, tx, count) = (bus(), tx(), Arc::new(Count::default()));
    let waker = Waker::from(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let mut feeds: Vec<_> = (0..20).map(|_| bus.pool()).collect();
    let mut heights: Vec<_> = (0..20).map(|_| bus.committed()).collect();
    let mut waiting: Vec<_> = feeds.iter_mut().map(|feed| Box::pin(feed.next())).collect();
    let mut watching: Vec<_> = heights.iter_mut().map(|it| Box::pin(it.changed())).collect();
    assert!(waiting.iter_mut().all(|it| it.as_mut().poll(&mut context).is_pending()));
    assert!(watching.iter_mut().all(|it| it.as_mut().poll(&mut context).is_pending()));

    bus.publish(vec![accepted(&tx)]);
    bus.block_committed(1);
    assert_eq!(0, count.0.load(Ordering::SeqCst), "nobody waits for the pool or for consensus");

    let (mut told, mut height) = (bus.pool(), bus.committed());
    let heard = async {
        height.wait_for(|height| *height == 1).await.unwrap();
        bus.publish(vec![accepted(&tx)]);
        told.next().await.unwrap();
    };
    relay(&bus, heard).await;
    assert_eq!(40, count.0.load(Ordering::SeqCst));
    let event = Poll::Ready(Ok(PoolEvent::Accepted { tx, standing: PoolStanding::Pending }));
    assert!(waiting.iter_mut().all(|it| it.as_mut().poll(&mut context) == event));
    assert!(watching.iter_mut().all(|it| it.as_mut().poll(&mut context).is_ready()));
}

#[tokio::test]
async fn what_the_relay_is_too_slow_for_is_lost_and_told() {
    let (bus, tx) = (bus(), tx());
    let (mut subscriber, mut waiting) = (bus.pool(), bus.dropped());
    let many = 20_000;
    bus.publish(vec![accepted(&tx); many]);
    let heard = async {
        let (mut heard, mut lost) = (0, 0);
        while heard + lost < many {
            match subscriber.next().await {
                Ok(_) => heard += 1,
                Err(FeedError::Lagged(more)) => lost += usize::try_from(more).unwrap(),
                Err(FeedError::Closed) => unreachable!("the bus is there"),
            }
        }
        assert_eq!(many, heard + lost);
        let lost = waiting.next().await;
        assert!(matches!(lost, Err(FeedError::Lagged(_))), "there may have been drops: {lost:?}");
    };
    relay(&bus, heard).await;
}
