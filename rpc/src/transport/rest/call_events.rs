//! `GET /api/calls/{id}/events`: what happens to one call, as server-sent events, until it is settled.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{Interval, interval_at};
use types::Hash;

use super::params::not_text;
use super::rendered::event;
use super::state::{Rest, StreamSlot};
use super::streams::{PING, last_event_id, respond};
use crate::admission::{Client, Kept, Room, wait_for_room};
use crate::error::RpcError;
use crate::service::events::{Cursor, Filter, Meter, Slice, scan};
use crate::service::{Context, calls};
use crate::wire::{EventFilter, EventKind, HashText};

/// A client that comes back to a settled call at most so many blocks after what it has seen is told at
/// once if nothing happened since. Whoever was away for longer learns it from the end of the stream.
const AWAY_BLOCKS_MAX: u64 = 64;

/// Where the events of a call are.
pub(super) const PATH: &str = "/api/calls/{id}/events";

pub(super) async fn events(
    State(rest): State<Rest>,
    client: Client,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let started = Instant::now();
    let opened = match id {
        Ok(Path(id)) => CallEvents::open(&rest, client, &id, &headers).await,
        Err(_) => Err(not_text(&uri)),
    };
    let response = opened.map(|listener| match listener {
        // By this a browser knows that it need not come again.
        None => StatusCode::NO_CONTENT.into_response(),
        Some(listener) => respond(listener, |mut listener: CallEvents| async move {
            Some((listener.next().await?, listener))
        }),
    });
    rest.observed(PATH, started, response)
}

/// A listener of the events of a call.
struct CallEvents {
    rest: Rest,
    client: Client,
    heights: watch::Receiver<u64>,
    filter: Arc<Filter>,
    /// The next event to look at.
    next: Cursor,
    /// Whether it has caught up with the tip once.
    is_live: bool,
    meter: Meter,
    /// What is to be sent.
    ready: VecDeque<Bytes>,
    /// Whether nothing comes after what is to be sent.
    is_over: bool,
    /// If the call is settled, a block after which nothing happens to it.
    last: Option<u64>,
    ping: Interval,
    _place: StreamSlot,
}

impl CallEvents {
    /// None if the call is settled and the client has seen everything.
    async fn open(
        rest: &Rest,
        client: Client,
        id: &str,
        headers: &HeaderMap,
    ) -> Result<Option<Self>, RpcError> {
        let call_id = Hash::parse(id)
            .map_err(|_error| RpcError::invalid("id", id, "64 lowercase hex characters"))?;
        let place = rest.place(&client)?;
        let mut heights = rest.context().hub.heights();
        let tip = *heights.borrow_and_update();
        let seen = last_event_id(headers)?.map(|seen| seen.min(tip));
        if let Some(seen) = seen {
            Filter::require_from(EventKind::Calls, seen.saturating_add(1), rest.ports())?;
        }
        let read = move |context: &Context| calls::state(&context.ports, call_id);
        let state = rest.context().read(&client, read).await?;
        // What is in the record may not be announced yet.
        let newest = rest.ports().chain.tip().height.max(tip);
        let filter = EventFilter { call_id: Some(HashText(call_id)), ..EventFilter::default() };
        let hello = json!({ "height": tip, "call": state });
        let hello_id = seen.unwrap_or(tip);
        let mut listener = Self {
            heights,
            filter: Arc::new(Filter::new(EventKind::Calls, filter)?),
            next: Cursor::at(hello_id.saturating_add(1)),
            is_live: seen.is_none(),
            meter: Meter::default(),
            ready: VecDeque::from([event(Some(hello_id), "hello", &hello).into()]),
            is_over: state.settled && seen.is_none(),
            last: state.settled.then_some(newest),
            ping: interval_at(tokio::time::Instant::now() + PING, PING),
            rest: rest.clone(),
            client,
            _place: place,
        };
        let knows_all = seen.is_some() && listener.finds_nothing(tip).await?;
        Ok(Some(listener).filter(|_| !knows_all))
    }

    /// Whether nothing happened to a settled call since what the client has seen, as far as that is soon
    /// found out.
    async fn finds_nothing(&mut self, tip: u64) -> Result<bool, RpcError> {
        let Some(last) = self.last else { return Ok(false) };
        if tip.saturating_sub(self.next.height) >= AWAY_BLOCKS_MAX {
            return Ok(false);
        }
        let greeted = self.ready.len();
        while self.next.height <= tip && self.ready.len() == greeted {
            self.look(tip).await?;
        }
        Ok(self.ready.len() == greeted && self.next.height > last)
    }

    async fn next(&mut self) -> Option<Bytes> {
        let shutdown = self.rest.context().shutdown.clone();
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            let tip = *self.heights.borrow_and_update();
            if self.next.height <= tip {
                self.look(tip).await.ok()?;
                continue;
            }
            if self.last.is_some_and(|last| self.next.height > last) {
                // The client has seen the end before; with the id of this it need not come again.
                self.is_over = true;
                return Some(self.pinged());
            }
            self.is_live = true;
            tokio::select! {
                () = shutdown.cancelled() => return None,
                changed = self.heights.changed() => changed.ok()?,
                _ = self.ping.tick() => return Some(self.pinged()),
            }
        }
    }

    fn pinged(&self) -> Bytes {
        let (seen, ts) = (self.seen(), self.rest.ports().clock.now_ms());
        event(seen, "ping", &json!({ "ts": ts })).into()
    }

    /// The last block of which everything was told; none in the midst of one.
    fn seen(&self) -> Option<u64> {
        (self.next.item == 0).then(|| self.next.height.saturating_sub(1))
    }

    /// Makes ready what the next blocks have.
    async fn look(&mut self, tip: u64) -> Result<(), RpcError> {
        let mut found = self.read(tip, 0).await?;
        if let Some(bytes) = found.needs {
            let room = self.room(bytes).await?;
            self.next = found.next;
            found = self.read(tip, bytes).await?;
            self.next = found.next;
            let mut rest = std::mem::take(&mut found.found).into_iter();
            if let Some(first) = rest.next() {
                self.push_large(&first, room);
            }
            found.found = rest.collect();
        }
        self.next = found.next;
        let count = found.found.len();
        for (index, json) in (1..).zip(&found.found) {
            // A client that comes back after an event in the midst of a block hears the block again.
            let seen = self.seen().filter(|_| index == count);
            self.is_over |= is_last(json);
            self.ready.push_back(event(seen, "call", json).into());
        }
        Ok(())
    }

    fn push_large(&mut self, json: &RawValue, room: Room) {
        self.is_over |= is_last(json);
        let bytes = event(None, "call", &json).into();
        self.ready.push_back(Bytes::from_owner(Kept { bytes, _room: room }));
    }

    /// What the next blocks have, when it is the client's turn.
    async fn read(&mut self, tip: u64, room: usize) -> Result<Slice, RpcError> {
        let (hub, filter) = (Arc::clone(&self.rest.context().hub), Arc::clone(&self.filter));
        let from = self.next;
        let read = move || scan(&hub, &filter, from, tip, room);
        let (readers, share) = (&self.rest.context().readers, self.client.share());
        if self.is_live {
            return readers.read(share, read).await;
        }
        let found = readers.replay(share, read).await?;
        for _ in 0..self.meter.calls(found.read) {
            self.client.pay().await;
        }
        Ok(found)
    }

    /// Room for a large event, as soon as there is some.
    async fn room(&self, bytes: usize) -> Result<Room, RpcError> {
        let patience = self.rest.context().limits.write_timeout();
        let room = wait_for_room(patience, || self.client.share().hold(bytes));
        let room = self.rest.context().shutdown.run_until_cancelled(room).await.flatten();
        room.ok_or(RpcError::ShuttingDown)
    }
}

/// Whether nothing happens to a call after this event.
fn is_last(json: &RawValue) -> bool {
    /// The part of a [`crate::wire::CallEvent`] that is looked at.
    #[derive(Deserialize)]
    struct Kind<'a> {
        event: &'a str,
    }
    let kind = serde_json::from_str::<Kind<'_>>(json.get());
    kind.is_ok_and(|kind| matches!(kind.event, "settled" | "unassigned"))
}
