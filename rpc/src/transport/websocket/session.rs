//! The WebSocket of the public client. It comes back after a close with 1012 or 1013, and never
//! recovers from 1000 or 1001, so those are never sent.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::http::header::UPGRADE;
use axum::response::Response;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Interval, interval_at};

use super::messages::{Cursor, FRAME_BYTES, Slice, messages, told};
use super::subscription::{Action, Channel, Subscription, Topic, resolve};
use crate::admission::{Client, Room, wait_for_room};
use crate::error::{ErrorData, RpcError};
use crate::ports::{Feed, FeedError, PoolEvent};
use crate::service::Context;
use crate::service::events::{Keys, pool_notice};
use crate::transport::rest::{Rest, StreamSlot, error_response};

/// Where the WebSocket is opened.
pub(crate) const PATH: &str = "/api/ws";

/// The largest message that a client has to send is far shorter.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// What the library may hold that the client has not taken.
const WRITE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Opens the WebSocket.
pub(crate) async fn open(
    State(rest): State<Rest>,
    client: Client,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let started = Instant::now();
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let (status, data) = (StatusCode::UPGRADE_REQUIRED, ErrorData::of("WEBSOCKET_ONLY"));
            let mut response = error_response(status, rejection.to_string(), data);
            response
                .headers_mut()
                .insert(UPGRADE, axum::http::HeaderValue::from_static("websocket"));
            return response;
        }
    };
    let opened = rest.place(&client).map(|place| {
        let served = rest.clone();
        upgrade
            .max_message_size(MESSAGE_BYTES_MAX)
            .max_frame_size(MESSAGE_BYTES_MAX)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BYTES_MAX)
            .on_upgrade(move |socket| {
                let tasks = served.resources().tasks.clone();
                tasks.track_future(Session::new(served, client, socket, place).serve())
            })
    });
    rest.observed(PATH, started, opened)
}

/// Why a session ends.
enum End {
    /// The client has gone.
    Gone,
    /// The node ends it, and says why.
    Closed(u16, &'static str),
    /// The client has not taken what there was to tell.
    TooSlow,
}

impl From<axum::Error> for End {
    fn from(error: axum::Error) -> Self {
        tracing::debug!(%error, "a WebSocket ended");
        Self::Gone
    }
}

/// One client.
struct Session {
    rest: Rest,
    client: Client,
    socket: WebSocket,
    subscriptions: BTreeSet<Subscription>,
    heights: watch::Receiver<u64>,
    /// What to tell of next.
    next: Cursor,
    /// There while a subscription wants it.
    pool: Option<Feed<PoolEvent>>,
    ping: Interval,
    heard: Instant,
    silence_max: Duration,
    _place: StreamSlot,
}

impl Session {
    fn new(rest: Rest, client: Client, socket: WebSocket, place: StreamSlot) -> Self {
        let mut heights = rest.context().hub.heights();
        let next = Cursor::at(heights.borrow_and_update().saturating_add(1));
        let every = rest.context().limits.ping_interval();
        Self {
            pool: None,
            ping: interval_at(tokio::time::Instant::now() + every, every),
            heard: Instant::now(),
            silence_max: every.saturating_mul(2),
            subscriptions: BTreeSet::new(),
            rest,
            client,
            socket,
            heights,
            next,
            _place: place,
        }
    }

    async fn serve(mut self) {
        let end = loop {
            if let Err(end) = self.step().await {
                break end;
            }
        };
        match end {
            End::Gone => {}
            End::Closed(code, reason) => self.close(code, reason, Duration::ZERO).await,
            End::TooSlow => {
                let patience = self.rest.context().limits.write_timeout();
                self.close(close_code::AGAIN, "too slow", patience).await;
            }
        }
    }

    /// Says that it is over, and waits for the client's answer, so that this is not lost with the
    /// connection. A client that is too slow first has to read what the system keeps for it: if it
    /// said anything to a connection that is gone by then, it would lose all of that.
    async fn close(&mut self, code: u16, reason: &'static str, patience: Duration) {
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        if self.socket.send(Message::Close(Some(frame))).await.is_err() {
            return;
        }
        let shutdown = self.rest.context().shutdown.clone();
        let politeness = self.rest.context().limits.shutdown_timeout() / 2;
        let answered = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        let given_up = async {
            drop(tokio::time::timeout(patience, shutdown.cancelled()).await);
            tokio::time::sleep(politeness).await;
        };
        tokio::select! {
            () = answered => {}
            () = given_up => {
                tracing::debug!("a client has not answered that its WebSocket is closed");
            }
        }
    }

    /// Does the next thing that there is to do.
    async fn step(&mut self) -> Result<(), End> {
        tokio::select! {
            () = self.rest.context().shutdown.cancelled() => {
                Err(End::Closed(close_code::RESTART, "the node is stopping"))
            }
            message = self.socket.recv() => {
                let message = message.ok_or(End::Gone)??;
                self.heard = Instant::now();
                self.hear(message).await
            }
            changed = self.heights.changed() => {
                changed.map_err(|_error| End::Closed(close_code::RESTART, "the node is stopping"))?;
                self.tell_blocks().await
            }
            event = next_event(&mut self.pool) => self.tell_pool(event).await,
            _ = self.ping.tick() => {
                if self.heard.elapsed() > self.silence_max {
                    return Err(End::Closed(close_code::AGAIN, "no answer to pings"));
                }
                Ok(self.socket.send(Message::Ping(bytes::Bytes::new())).await?)
            }
        }
    }

    async fn hear(&mut self, message: Message) -> Result<(), End> {
        let text = match message {
            Message::Text(text) => Ok(text),
            Message::Close(_) => return Err(End::Gone),
            Message::Binary(_) => Err(RpcError::invalid("message", "binary", "a text")),
            // The library answers pings.
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
        };
        let text = match self.client.take().and(text) {
            Ok(text) => text,
            Err(error) => return self.send_error(&error).await,
        };
        match serde_json::from_str(&text) {
            Ok(Action::Ping) => self.send(&json!({ "type": "pong" })).await,
            Ok(Action::Subscribe(topic)) => self.subscribe(topic).await,
            Ok(Action::Unsubscribe(topic)) => self.unsubscribe(topic).await,
            Err(error) => {
                let expected = format!(
                    "{{\"action\": \"subscribe\", \"unsubscribe\" or \"ping\", \"channel\": …}}: {error}"
                );
                self.send_error(&RpcError::invalid("message", &*text, expected)).await
            }
        }
    }

    async fn subscribe(&mut self, topic: Topic) -> Result<(), End> {
        let channel = topic.channel;
        let most =
            usize::try_from(self.rest.context().limits.subscriptions_max).unwrap_or(usize::MAX);
        match resolve(self.rest.context(), &self.client, topic).await {
            Ok(subscription) => {
                let is_new = !self.subscriptions.contains(&subscription);
                if is_new && self.subscriptions.len() >= most {
                    let message = format!("{most} subscriptions are open already");
                    let error = RpcError::too_large("TOO_MANY_SUBSCRIPTIONS", message);
                    return self.send_error(&error).await;
                }
                self.subscriptions.insert(subscription);
                self.follow_pool();
                self.send(&json!({ "type": "subscribed", "channel": channel })).await
            }
            Err(error) => self.send_error(&error).await,
        }
    }

    async fn unsubscribe(&mut self, topic: Topic) -> Result<(), End> {
        let channel = topic.channel;
        match resolve(self.rest.context(), &self.client, topic).await {
            Ok(subscription) if self.subscriptions.remove(&subscription) => {
                self.follow_pool();
                self.send(&json!({ "type": "unsubscribed", "channel": channel })).await
            }
            Ok(_) => self.send_error(&RpcError::not_found("subscription", "to the channel")).await,
            Err(error) => self.send_error(&error).await,
        }
    }

    /// Listens to the pool from when it is wanted until it is not: nobody else pays for it.
    fn follow_pool(&mut self) {
        let is_wanted = self.subscriptions.iter().any(|it| it.channel == Channel::Mempool);
        self.pool = match self.pool.take() {
            Some(pool) if is_wanted => Some(pool),
            None if is_wanted => Some(self.rest.context().hub.pool_events()),
            _ => None,
        };
    }

    /// Tells of every block up to the tip.
    async fn tell_blocks(&mut self) -> Result<(), End> {
        let mut tip = *self.heights.borrow_and_update();
        while self.next.height <= tip {
            let behind = tip.saturating_sub(self.next.height);
            if behind > self.rest.context().limits.subscription_lag_blocks_max {
                return Err(End::TooSlow);
            }
            if self.subscriptions.is_empty() {
                self.next = Cursor::at(tip.saturating_add(1));
                return Ok(());
            }
            let slice = self.read(0).await?;
            let slice = match slice.needs {
                None => slice,
                Some(bytes) => {
                    // First the room, then the message.
                    let room = self.room(bytes).await?;
                    let mut slice = self.read(bytes).await?;
                    if !slice.messages.is_empty() {
                        let first = slice.messages.remove(0);
                        self.send_text(first, room).await?;
                    }
                    slice
                }
            };
            self.next = slice.next;
            for message in slice.messages {
                let room = self.room(message.len()).await?;
                self.send_text(message, room).await?;
            }
            tip = *self.heights.borrow_and_update();
        }
        Ok(())
    }

    /// The next messages; one larger than a slice if there is `room` for it.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "a socket cannot be shared by threads")]
    async fn read(&mut self, room: usize) -> Result<Slice, End> {
        let subscriptions: Vec<_> = self.subscriptions.iter().copied().collect();
        let from = self.next;
        let read = move |context: &Context| messages(context, from, &subscriptions, room);
        let slice = self.rest.context().read(&self.client, read).await;
        slice.map_err(|_error| End::Closed(close_code::AGAIN, "a block cannot be read"))
    }

    /// Room for a message, as soon as there is some.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "a socket cannot be shared by threads")]
    async fn room(&mut self, bytes: usize) -> Result<Room, End> {
        let patience = self.rest.context().limits.write_timeout();
        let room = wait_for_room(patience, || self.client.share().hold(bytes)).await;
        room.ok_or(End::TooSlow)
    }

    /// Sends a message. It keeps its room until the system has it.
    async fn send_text(&mut self, text: String, _room: Room) -> Result<(), End> {
        Ok(self.socket.send(Message::Text(text.into())).await?)
    }

    async fn tell_pool(&mut self, event: Result<PoolEvent, FeedError>) -> Result<(), End> {
        match event {
            Ok(event) => {
                let keys = Keys::of(event.tx());
                let bytes = event.tx().signed_bytes().saturating_add(FRAME_BYTES);
                // It is not held while there is no room for it.
                drop(event);
                self.tell_pool_event(&keys, bytes).await
            }
            Err(FeedError::Lagged(lagged)) => {
                let data = json!({ "lagged": lagged, "blockIndex": *self.heights.borrow() });
                self.send(&json!({ "type": "lagged", "data": data })).await
            }
            Err(FeedError::Closed) => Err(End::Closed(close_code::RESTART, "the node is stopping")),
        }
    }

    /// Tells of the next event of the pool, if a subscription wants it.
    async fn tell_pool_event(&mut self, keys: &Keys, bytes: usize) -> Result<(), End> {
        let mut subscriptions = self.subscriptions.iter();
        let is_wanted = subscriptions.any(|it| it.channel == Channel::Mempool && it.wants(keys));
        let room = if is_wanted { self.room(bytes).await? } else { Room::default() };
        // If it was lost while there was no room, how many were lost is told next.
        let Some(event) = self.pool.as_ref().and_then(Feed::current) else { return Ok(()) };
        if let Some(pool) = &mut self.pool {
            pool.pass();
        }
        if !is_wanted {
            return Ok(());
        }
        let text = told("mempool", &pool_notice(&event, *self.heights.borrow()));
        self.send_text(text, room).await
    }

    async fn send_error(&mut self, error: &RpcError) -> Result<(), End> {
        let data = error.data().unwrap_or_else(|| ErrorData::of("INTERNAL"));
        let text = json!({ "type": "error", "error": error.to_string(), "code": data.code });
        self.send(&text).await
    }

    async fn send(&mut self, message: &serde_json::Value) -> Result<(), End> {
        Ok(self.socket.send(Message::Text(message.to_string().into())).await?)
    }
}

/// The next event of the pool, if it is listened to. It stays the next one.
async fn next_event(pool: &mut Option<Feed<PoolEvent>>) -> Result<PoolEvent, FeedError> {
    match pool {
        Some(pool) => pool.peek().await,
        None => std::future::pending().await,
    }
}
