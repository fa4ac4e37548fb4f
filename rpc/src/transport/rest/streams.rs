//! Server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, interval_at};
use types::Hash;

use super::rendered::{BlockText, event};
use super::state::{Rest, StreamSlot};
use crate::admission::{Client, Kept, Room, wait_for_room};
use crate::error::RpcError;
use crate::ports::Tip;
use crate::service::events::{Filter, Meter};
use crate::service::pool;
use crate::wire::EventKind;

/// Blocks as they are committed.
pub(super) const CHAIN: &str = "/api/chain/events";
/// How full the pool is.
pub(super) const MEMPOOL: &str = "/api/mempool/events";

/// How often a stream says that it is alive.
pub(super) const PING: Duration = Duration::from_secs(2);
/// How often the pool is counted.
const SNAPSHOT: Duration = Duration::from_secs(3);

/// A longer event of the tip is sent in pieces of this size where there is no room for all of it. So a
/// listener that takes little holds little, and everybody else's events come as they did. An older one
/// waits for room.
const PIECE_BYTES: usize = 256 * 1024;
/// What a replayed event counts at least for the rate limit.
const REPLAYED_BYTES_MIN: u64 = 4 * 1024;

/// What a browser sends when it opens a stream again: the `id` of the last event that it saw.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Proxies must pass events on as they come.
const NO_BUFFERING: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// Sends what `next` makes until it makes no more.
pub(super) fn respond<S, F, N>(source: S, next: F) -> Response
where
    S: Send + 'static,
    F: Fn(S) -> N + Send + 'static,
    N: Future<Output = Option<(Bytes, S)>> + Send + 'static,
{
    let body = stream::unfold(source, next);
    let body = futures::StreamExt::map(body, Ok::<_, Infallible>);
    let head = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache"), NO_BUFFERING];
    (head, Body::from_stream(body)).into_response()
}

/// The stream of blocks.
pub(super) async fn chain(
    State(rest): State<Rest>,
    client: Client,
    headers: HeaderMap,
) -> Response {
    let started = std::time::Instant::now();
    let place = rest.place(&client);
    let opened = place.and_then(|place| Blocks::open(rest.clone(), client, place, &headers));
    let response = opened.map(|blocks| {
        respond(blocks, |mut blocks: Blocks| async move { Some((blocks.next().await?, blocks)) })
    });
    rest.observed(CHAIN, started, response)
}

/// A listener of blocks.
struct Blocks {
    rest: Rest,
    client: Client,
    heights: watch::Receiver<u64>,
    hello: Option<String>,
    next: u64,
    /// How many bytes of the next event were sent.
    sent: usize,
    /// Whether it has caught up with the tip once.
    is_live: bool,
    replayed: Meter,
    ping: Interval,
    _place: StreamSlot,
}

impl Blocks {
    fn open(
        rest: Rest,
        client: Client,
        place: StreamSlot,
        headers: &HeaderMap,
    ) -> Result<Self, RpcError> {
        let mut heights = rest.context().hub.heights();
        let tip = *heights.borrow_and_update();
        let seen = last_event_id(headers)?.map(|seen| seen.min(tip));
        let next = seen.unwrap_or(tip).saturating_add(1);
        if seen.is_some() {
            Filter::require_from(EventKind::Blocks, next, rest.ports())?;
        }
        let Tip { height, hash, .. } = rest.ports().chain.tip();
        Ok(Self {
            hello: Some(hello(height, hash)),
            next,
            sent: 0,
            is_live: seen.is_none(),
            replayed: Meter::default(),
            ping: interval_at(Instant::now() + PING, PING),
            rest,
            client,
            heights,
            _place: place,
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if let Some(hello) = self.hello.take() {
            return Some(hello.into());
        }
        let shutdown = self.rest.context().shutdown.clone();
        loop {
            let tip = *self.heights.borrow_and_update();
            if let Some(lagged) = self.skip(tip) {
                return Some(lagged.into());
            }
            if self.next <= tip {
                return self.event(tip).await;
            }
            self.is_live = true;
            tokio::select! {
                () = shutdown.cancelled() => return None,
                changed = self.heights.changed() => changed.ok()?,
                _ = self.ping.tick() => {
                    let ts = self.rest.ports().clock.now_ms();
                    return Some(event(None, "ping", &json!({ "ts": ts })).into());
                }
            }
        }
    }

    /// The next event, or the next piece of it.
    async fn event(&mut self, tip: u64) -> Option<Bytes> {
        let event = self.rest.rendered().event(&self.client, self.next, tip).await.ok()?;
        let bytes = event.text().len();
        let is_begun = self.sent > 0;
        if !is_begun && !self.is_live {
            let read = u64::try_from(bytes).unwrap_or(u64::MAX).max(REPLAYED_BYTES_MIN);
            for _ in 0..self.replayed.calls(read) {
                self.client.pay().await;
            }
        }
        if !is_begun && bytes <= PIECE_BYTES {
            self.next = self.next.saturating_add(1);
            return Some(event.into_text());
        }
        let left = bytes.saturating_sub(self.sent);
        if let Ok(room) = self.client.share().hold(left) {
            return Some(self.rest_of(event, room));
        }
        match event {
            BlockText::Shared(text) => Some(self.piece(&text)),
            BlockText::Own(text) => {
                // It is not held while there is no room for it, and not made again for each piece.
                drop(text);
                let room = self.room(left).await?;
                let event = self.rest.rendered().event(&self.client, self.next, tip).await.ok()?;
                Some(self.rest_of(event, room))
            }
        }
    }

    /// What was not sent of an event, which has room until it is taken.
    fn rest_of(&mut self, event: BlockText, room: Room) -> Bytes {
        let sent = std::mem::take(&mut self.sent);
        self.next = self.next.saturating_add(1);
        let mut text = event.into_text();
        let rest = text.split_off(sent.min(text.len()));
        Bytes::from_owner(Kept { bytes: rest, _room: room })
    }

    /// The next piece of an event that the node keeps anyhow.
    fn piece(&mut self, text: &Bytes) -> Bytes {
        let end = self.sent.saturating_add(PIECE_BYTES).min(text.len());
        let piece = Bytes::copy_from_slice(text.get(self.sent..end).unwrap_or_default());
        self.sent = end;
        if end == text.len() {
            (self.sent, self.next) = (0, self.next.saturating_add(1));
        }
        piece
    }

    /// Room for an event, as soon as there is some; none if there is none for long, or the node stops.
    async fn room(&self, bytes: usize) -> Option<Room> {
        let patience = self.rest.context().limits.write_timeout();
        let room = wait_for_room(patience, || self.client.share().hold(bytes));
        self.rest.context().shutdown.run_until_cancelled(room).await.flatten()
    }

    /// Who is too slow goes on at the tip, and is told how many blocks it lost.
    fn skip(&mut self, tip: u64) -> Option<String> {
        let most = self.rest.context().limits.subscription_lag_blocks_max;
        let behind = tip.saturating_sub(self.next);
        if !self.is_live || behind <= most || self.sent > 0 {
            return None;
        }
        self.next = tip;
        Some(event(None, "lagged", &json!({ "lagged": behind, "height": tip })))
    }
}

fn hello(height: u64, hash: Hash) -> String {
    event(None, "hello", &json!({ "height": height, "latestBlockHash": hash }))
}

pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, RpcError> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    text.parse().map(Some).map_err(|_error| {
        RpcError::invalid(LAST_EVENT_ID.as_str(), text, "the id of an event: a block index")
    })
}

/// The stream of the pool's size.
pub(super) async fn mempool(State(rest): State<Rest>, client: Client) -> Response {
    let started = std::time::Instant::now();
    let opened = rest.place(&client).map(|place| Snapshots {
        rest: rest.clone(),
        is_open: false,
        tick: interval_at(Instant::now() + SNAPSHOT, SNAPSHOT),
        _place: place,
    });
    let response = opened.map(|snapshots| {
        respond(snapshots, |mut snapshots: Snapshots| async move {
            Some((snapshots.next().await?, snapshots))
        })
    });
    rest.observed(MEMPOOL, started, response)
}

/// A listener of the pool's size.
struct Snapshots {
    rest: Rest,
    is_open: bool,
    tick: Interval,
    _place: StreamSlot,
}

impl Snapshots {
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.is_open, true) {
            return Some(
                event(None, "hello", &json!({ "total": pool::waiting(self.rest.ports()) })).into(),
            );
        }
        let shutdown = self.rest.context().shutdown.clone();
        tokio::select! {
            () = shutdown.cancelled() => None,
            _ = self.tick.tick() => {
                let (total, ts) = (pool::waiting(self.rest.ports()), self.rest.ports().clock.now_ms());
                Some(event(None, "snapshot", &json!({ "total": total, "ts": ts })).into())
            }
        }
    }
}
