//! One subscription, from acceptance to its end.

use std::sync::Arc;

use jsonrpsee::core::SubscriptionError;
use jsonrpsee::server::SubscriptionCloseResponse;
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::{PendingSubscriptionSink, SubscriptionSink};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::derive::{Item, Keys};
use super::filter::Filter;
use super::hub::next_height;
use crate::api::Api;
use crate::error::RpcError;
use crate::gate::Gate;
use crate::memory::AnswerMemory;
use crate::ports::PoolEvent;
use crate::wire::{DropView, EventKind, Lagged, PoolNotice, PoolNoticeKind, tx_object};

/// Why a subscription ends.
enum End {
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

/// Accepts the subscription and serves it until its end.
pub(crate) async fn serve(
    api: &Api,
    pending: PendingSubscriptionSink,
    filter: Filter,
    flow: Option<(Arc<Gate>, AnswerMemory)>,
) -> SubscriptionCloseResponse {
    // Both are taken before the client hears of its subscription: what comes later, it sees.
    let mut heights = api.hub.heights();
    let pool = api.hub.pool_events();
    let tip = *heights.borrow_and_update();
    let Ok(sink) = pending.accept().await else { return SubscriptionCloseResponse::None };
    let sink = Sink { inner: sink, flow };

    let served = async {
        if filter.kind == EventKind::Pool {
            pool_events(api, &sink, &filter, pool, &heights).await
        } else {
            drop(pool);
            block_events(api, &sink, &filter, heights, tip).await
        }
    };
    let end = tokio::select! {
        end = served => end,
        () = sink.inner.closed() => End::Gone,
        () = api.shutdown.cancelled() => End::Closed(RpcError::ShuttingDown),
    };
    match end {
        End::Gone => SubscriptionCloseResponse::None,
        End::Closed(error) => match to_raw_value(&ErrorObjectOwned::from(error)) {
            Ok(json) => {
                sink.count();
                SubscriptionCloseResponse::NotifErr(SubscriptionError::from_json(json))
            }
            Err(_) => SubscriptionCloseResponse::None,
        },
    }
}

/// Walks from the first wanted block to the tip, and on as the tip moves.
async fn block_events(
    api: &Api,
    sink: &Sink,
    filter: &Filter,
    mut heights: watch::Receiver<u64>,
    tip_at_start: u64,
) -> End {
    let mut next = filter.from_block.unwrap_or_else(|| tip_at_start.saturating_add(1)).max(1);
    let mut is_live = filter.from_block.is_none();
    loop {
        let mut tip = *heights.borrow_and_update();
        while next <= tip {
            if is_live && tip.saturating_sub(next) > api.limits.subscription_lag_blocks_max {
                return End::Closed(too_slow(next, tip));
            }
            if let Err(end) = send_block(api, sink, filter, next).await {
                return end;
            }
            next = next.saturating_add(1);
            tip = *heights.borrow_and_update();
        }
        is_live |= next > tip;
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

async fn send_block(api: &Api, sink: &Sink, filter: &Filter, height: u64) -> Result<(), End> {
    let items = block_items(api, filter.kind, height).await?;
    for Item { json, keys } in items.iter() {
        if filter.wants(keys) {
            send(sink, json.clone()).await?;
        }
    }
    Ok(())
}

/// Reading and deriving may touch the disk, so it is done off the runtime's own threads.
async fn block_items(api: &Api, kind: EventKind, height: u64) -> Result<Arc<[Item]>, RpcError> {
    let api = api.clone();
    let read = tokio::task::spawn_blocking(move || -> Result<Arc<[Item]>, RpcError> {
        let events = api.hub.block(height)?.ok_or_else(|| {
            tracing::error!(height, "a committed block cannot be read");
            RpcError::Internal
        })?;
        Ok(events.items(kind, &api.ports)?)
    });
    read.await.unwrap_or(Err(RpcError::ShuttingDown))
}

async fn pool_events(
    api: &Api,
    sink: &Sink,
    filter: &Filter,
    mut pool: broadcast::Receiver<PoolEvent>,
    heights: &watch::Receiver<u64>,
) -> End {
    loop {
        let received = pool.recv().await;
        let block_index = *heights.borrow();
        let sent = match received {
            Ok(event) if filter.wants(&Keys::of(event.tx())) => {
                send_value(sink, &pool_notice(&event, block_index)).await
            }
            Ok(_) => Ok(()),
            Err(RecvError::Lagged(lagged)) => {
                send_value(sink, &Lagged { lagged, block_index }).await
            }
            Err(RecvError::Closed) => return End::Closed(RpcError::ShuttingDown),
        };
        if let Err(end) = sent {
            return end;
        }
        if api.shutdown.is_cancelled() {
            return End::Closed(RpcError::ShuttingDown);
        }
    }
}

/// What subscribers are told of an event of the pool.
pub(crate) fn pool_notice(event: &PoolEvent, block_index: u64) -> PoolNotice {
    let tx = event.tx();
    let (event, dropped) = match event {
        PoolEvent::Accepted(_) => (PoolNoticeKind::Accepted, None),
        PoolEvent::Dropped(dropped) => (PoolNoticeKind::Dropped, Some(DropView::from(&**dropped))),
    };
    PoolNotice {
        event,
        block_index,
        hash: tx.hash(),
        kind: tx.body().type_name(),
        from: tx.from(),
        nonce: tx.nonce(),
        tx: (event == PoolNoticeKind::Accepted).then(|| tx_object(tx)),
        dropped,
    }
}

async fn send_value(sink: &Sink, value: &impl serde::Serialize) -> Result<(), End> {
    let json = to_raw_value(value).expect("events are plain data with text keys");
    send(sink, json).await
}

async fn send(sink: &Sink, json: Box<RawValue>) -> Result<(), End> {
    if let Some((gate, memory)) = &sink.flow {
        let bytes = json.get().len();
        gate.keep(bytes, gate.wait_for(bytes, memory).await);
    }
    sink.inner.send(json).await.map_err(|_error| End::Gone)?;
    sink.count();
    Ok(())
}

/// Where notifications go, and where they are counted.
struct Sink {
    inner: SubscriptionSink,
    flow: Option<(Arc<Gate>, AnswerMemory)>,
}

impl Sink {
    fn count(&self) {
        if let Some((gate, _)) = &self.flow {
            gate.notified();
        }
    }
}
