//! One subscription, from acceptance to its end.

use std::sync::Arc;

use jsonrpsee::core::SubscriptionError;
use jsonrpsee::server::SubscriptionCloseResponse;
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::{PendingSubscriptionSink, SubscriptionSink};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;

use super::pool_subscriptions::PoolSubscriptions;
use crate::admission::{Client, Room};
use crate::error::RpcError;
use crate::service::Context;
use crate::service::events::{BYTES_MAX, Cursor, Filter, Meter, Slice, next_height, scan};
use crate::transport::flow_control::FlowControl;
use crate::wire::EventKind;

/// What a notice of the pool has beside the transaction, at most.
pub(super) const NOTICE_BYTES: usize = 1024;

/// Why a subscription ends.
pub(super) enum End {
    /// The client has gone, or does not want more.
    Gone,
    /// The node ends it; the client is told why.
    Closed(RpcError),
}

impl From<RpcError> for End {
    fn from(error: RpcError) -> Self {
        Self::Closed(error)
    }
}

/// Whose subscription it is.
pub(super) struct Subscriber {
    /// Where its events are counted.
    pub(super) flow_control: Arc<FlowControl>,
    pub(super) client: Client,
    /// The subscriptions of its connection to the pool.
    pub(super) pool: Arc<PoolSubscriptions>,
}

/// Accepts the subscription and serves it until its end; refuses one that begins with blocks or events
/// that the node does not have.
pub(super) async fn serve(
    context: &Context,
    pending: PendingSubscriptionSink,
    filter: Filter,
    subscriber: Subscriber,
) -> SubscriptionCloseResponse {
    if let Err(error) = filter.require(&context.ports) {
        pending.reject(ErrorObjectOwned::from(error)).await;
        return SubscriptionCloseResponse::None;
    }
    // Both are taken before the client hears of its subscription: what comes later, it sees.
    let mut heights = context.hub.heights();
    let pool = context.hub.pool_events();
    let tip = *heights.borrow_and_update();
    let Ok(sink) = pending.accept().await else { return SubscriptionCloseResponse::None };
    let Subscriber { flow_control, client, pool: of_connection } = subscriber;
    let sink = Arc::new(Sink { inner: sink, flow_control, client });

    let served = async {
        if filter.kind == EventKind::Pool {
            drop(heights);
            of_connection.begin(context, filter, Arc::clone(&sink), pool).ended().await
        } else {
            drop(pool);
            block_events(context, &sink, filter, heights, tip).await
        }
    };
    let end = tokio::select! {
        end = served => end,
        () = sink.closed() => End::Gone,
        () = context.shutdown.cancelled() => End::Closed(RpcError::ShuttingDown),
    };
    match end {
        End::Gone => SubscriptionCloseResponse::None,
        End::Closed(error) => match to_raw_value(&ErrorObjectOwned::from(error)) {
            Ok(json) => {
                sink.flow_control.notified();
                SubscriptionCloseResponse::NotifErr(SubscriptionError::from_json(json))
            }
            Err(_) => SubscriptionCloseResponse::None,
        },
    }
}

/// Walks from the first wanted block to the tip, and on as the tip moves.
async fn block_events(
    context: &Context,
    sink: &Sink,
    filter: Filter,
    mut heights: watch::Receiver<u64>,
    tip_at_start: u64,
) -> End {
    let first = filter.from_block.unwrap_or_else(|| tip_at_start.saturating_add(1)).max(1);
    let mut is_live = filter.from_block.is_none();
    let mut next = Cursor::at(first);
    let mut walk = Walk { context, sink, filter: Arc::new(filter), meter: Meter::default() };
    loop {
        let mut tip = *heights.borrow_and_update();
        while next.height <= tip {
            // A block that is begun is told to its end, so that who comes back with the next one hears
            // nothing twice.
            let behind = tip.saturating_sub(next.height);
            if is_live && next.item == 0 && behind > context.limits.subscription_lag_blocks_max {
                return End::Closed(too_slow(next.height, tip));
            }
            let pace = if is_live { Pace::Live } else { Pace::Replay };
            match walk.step(next, tip, pace).await {
                Ok(cursor) => next = cursor,
                Err(end) => return end,
            }
            tip = *heights.borrow_and_update();
        }
        is_live |= next.height > tip;
        if next_height(&mut heights).await.is_none() {
            return End::Closed(RpcError::ShuttingDown);
        }
    }
}

fn too_slow(next: u64, tip: u64) -> RpcError {
    let behind = tip.saturating_sub(next);
    let message =
        format!("too slow: {behind} blocks behind; subscribe again with fromBlock={next}");
    RpcError::busy("TOO_SLOW", message, 0)
}

/// Whether a subscriber looks at what happens or at what has happened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Live,
    Replay,
}

/// One subscriber's way through the blocks.
struct Walk<'a> {
    context: &'a Context,
    sink: &'a Sink,
    filter: Arc<Filter>,
    meter: Meter,
}

impl Walk<'_> {
    /// Sends what is wanted of the next blocks; answers where to go on.
    async fn step(&mut self, from: Cursor, tip: u64, pace: Pace) -> Result<Cursor, End> {
        if let Some(found) = self.at_hand(from) {
            self.send_all(found).await?;
            return Ok(Cursor::at(from.height.saturating_add(1)));
        }
        let mut slice = self.read(from, (tip, 0), pace).await?;
        // One event that is larger than a slice: first the room for it, then the event. So nobody
        // holds what he cannot send.
        if let Some(bytes) = slice.needs {
            let room = self.sink.room(bytes).await?;
            slice = self.read(slice.next, (tip, bytes), pace).await?;
            let mut found = slice.found.into_iter();
            if let Some(json) = found.next() {
                self.sink.send(json, room).await?;
            }
            slice.found = found.collect();
        }
        self.send_all(slice.found).await?;
        Ok(slice.next)
    }

    /// What is wanted of a block that is read already, if that is little: nobody waits for a turn
    /// then.
    fn at_hand(&self, from: Cursor) -> Option<Vec<Box<RawValue>>> {
        let items = self.context.hub.items_at_hand(from.height, self.filter.kind)?;
        let rest = items.get(from.item..).unwrap_or_default();
        let wanted = || rest.iter().filter(|item| self.filter.wants(&item.keys));
        let bytes: usize = wanted().map(|item| item.json.get().len()).sum();
        (bytes <= BYTES_MAX).then(|| wanted().map(|item| item.json.clone()).collect())
    }

    /// A slice, when it is the client's turn. Reading and deriving may touch the disk, so it is done
    /// off the runtime's own threads.
    async fn read(
        &mut self,
        from: Cursor,
        (tip, room): (u64, usize),
        pace: Pace,
    ) -> Result<Slice, RpcError> {
        let (hub, filter) = (Arc::clone(&self.context.hub), Arc::clone(&self.filter));
        let read = move || scan(&hub, &filter, from, tip, room);
        let (readers, client) = (&self.context.readers, &self.sink.client);
        match pace {
            Pace::Live => readers.read(client.share(), read).await,
            Pace::Replay => {
                let slice = readers.replay(client.share(), read).await?;
                for _ in 0..self.meter.calls(slice.read) {
                    client.pay().await;
                }
                Ok(slice)
            }
        }
    }

    async fn send_all(&self, found: Vec<Box<RawValue>>) -> Result<(), End> {
        for json in found {
            let room = self.sink.room(json.get().len()).await?;
            self.sink.send(json, room).await?;
        }
        Ok(())
    }
}

/// The end of a client that does not take what there is.
pub(super) fn too_slow_to_read() -> End {
    let message = "too slow: unread events fill the memory for answers";
    End::Closed(RpcError::busy("TOO_SLOW", message, 0))
}

/// Where notifications go, and where they are counted.
pub(super) struct Sink {
    inner: SubscriptionSink,
    flow_control: Arc<FlowControl>,
    client: Client,
}

impl Sink {
    /// Room for a notification. Who does not take what there is for too long loses its subscription.
    pub(super) async fn room(&self, bytes: usize) -> Result<Room, End> {
        let room = self.flow_control.wait_for(bytes, self.client.share()).await;
        room.ok_or_else(too_slow_to_read)
    }

    /// Waits until the client has gone, or wants no more.
    pub(super) async fn closed(&self) {
        self.inner.closed().await;
    }

    pub(super) async fn send_value(
        &self,
        value: &impl serde::Serialize,
        room: Room,
    ) -> Result<(), End> {
        let json = to_raw_value(value).expect("events are plain data with text keys");
        self.send(json, room).await
    }

    async fn send(&self, json: Box<RawValue>, room: Room) -> Result<(), End> {
        self.flow_control.keep(json.get().len(), room);
        self.inner.send(json).await.map_err(|_error| End::Gone)?;
        self.flow_control.notified();
        Ok(())
    }
}
