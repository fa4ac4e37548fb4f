//! How much one WebSocket has under way, and when to stop listening to it.
//!
//! Every message of a client becomes a task and an answer that waits to be sent. A client that
//! sends faster than it takes would make the node hold more and more of both. So whole messages
//! are counted on the wire in both directions, and the node reads no further while too many are
//! unanswered, or while there is no memory for the next one. What the answers of one connection occupy
//! is bounded as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::admission::{
    AnswerMemory, Held, Ledger, Messages, RequestBlocks, Room, Share, wait_for_room,
};
use crate::config::Limits;
use crate::error::RpcError;

/// So many messages of the largest size may be unanswered. Each is held while it is answered, and
/// the answer to one that is no call repeats its `id`, however long.
const LARGEST_MESSAGES: u64 = 16;

/// Counts of one connection. Idle until the connection becomes a WebSocket.
#[derive(Debug)]
pub(crate) struct FlowControl {
    is_websocket: AtomicBool,
    requests: AtomicU64,
    /// Messages that came, and notifications that were made.
    owed: AtomicU64,
    /// Messages that were sent, and messages that need no answer.
    settled: AtomicU64,
    owed_max: u64,
    /// The largest message since nothing was unanswered.
    largest: AtomicU64,
    /// What messages of the largest size may be unanswered, together.
    received_bytes_max: u64,
    reader: AtomicWaker,
    calls: Arc<Semaphore>,
    /// Room that the answers of this connection may take of what all share.
    own: AnswerMemory,
    ledger: Mutex<Ledger>,
    /// How long room for a notification is waited for.
    patience: Duration,
    /// The place among the client's WebSockets, for as long as the connection lasts.
    place: Mutex<Option<Held>>,
    /// What the client's messages occupy.
    messages: Mutex<Messages>,
}

impl FlowControl {
    pub(crate) fn new(limits: &Limits) -> Self {
        let calls = usize::try_from(limits.websocket_calls_max).unwrap_or(Semaphore::MAX_PERMITS);
        let owed_max = limits.websocket_calls_max.saturating_add(limits.websocket_queue_max);
        Self {
            is_websocket: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            owed: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            owed_max: u64::from(owed_max),
            largest: AtomicU64::new(0),
            received_bytes_max: u64::from(limits.websocket_message_bytes_max)
                .saturating_mul(LARGEST_MESSAGES),
            reader: AtomicWaker::new(),
            calls: Arc::new(Semaphore::new(calls)),
            own: AnswerMemory::new(limits.response_bytes_max),
            ledger: Mutex::default(),
            patience: limits.write_timeout(),
            place: Mutex::default(),
            messages: Mutex::default(),
        }
    }

    /// A request of HTTP began.
    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the connection's bytes may be a WebSocket's: that takes its first request.
    pub(crate) fn counts(&self) -> bool {
        self.requests.load(Ordering::Acquire) <= 1
    }

    /// From now on the connection carries WebSocket messages; false if it had an earlier request,
    /// because counting needs the bytes from the start.
    pub(crate) fn open_websocket(&self) -> bool {
        let is_first = self.counts();
        self.is_websocket.store(is_first, Ordering::Release);
        is_first
    }

    /// A place among the calls that are executed at the same time.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        Arc::clone(&self.calls).try_acquire_owned().map_err(|_error| {
            let message = "too many calls of this connection at the same time";
            RpcError::busy("TOO_MANY_CALLS", message, 100)
        })
    }

    /// A message of the client was read.
    pub(crate) fn received(&self, bytes: u64) {
        if self.unanswered() == 0 {
            self.largest.store(bytes, Ordering::Release);
        } else {
            self.largest.fetch_max(bytes, Ordering::AcqRel);
        }
        self.messages.lock().add(bytes);
        self.owed.fetch_add(1, Ordering::AcqRel);
    }

    /// A message of the client is coming in and may come to so many bytes; 0 if none is.
    pub(crate) fn coming(&self, bytes: u64) {
        self.messages.lock().coming(bytes);
    }

    /// Keeps the place until the connection ends, and has messages occupy these blocks.
    pub(crate) fn occupy(&self, place: Held, blocks: RequestBlocks) {
        *self.place.lock() = Some(place);
        self.messages.lock().open(blocks);
    }

    /// Takes memory for the messages that are unanswered or coming in; false if there is none now, and
    /// the connection must not be read before there is.
    pub(crate) fn has_room(&self) -> bool {
        self.messages.lock().hold().is_ok()
    }

    /// Room for an answer of so many bytes, in what this connection may have and in the client's
    /// share.
    pub(crate) fn hold(&self, bytes: usize, share: &Arc<Share>) -> Result<Room, RpcError> {
        let mut room = self.own.hold(bytes)?;
        room.add(share.hold(bytes)?);
        Ok(room)
    }

    /// Room for a notification, as soon as there is some; none if the client does not take what
    /// there is for so long that it is given up.
    pub(crate) async fn wait_for(&self, bytes: usize, share: &Arc<Share>) -> Option<Room> {
        wait_for_room(self.patience, || self.hold(bytes, share)).await
    }

    /// The room of a message is kept until it was sent.
    pub(crate) fn keep(&self, message_bytes: usize, room: Room) {
        self.ledger.lock().keep(message_bytes, room);
    }

    /// A message of the node was sent.
    pub(crate) fn sent(&self, bytes: u64) {
        drop(self.ledger.lock().sent(bytes));
        self.settle(1);
    }

    /// A message that answers nothing was made.
    pub(crate) fn notified(&self) {
        self.messages.lock().add(0);
        self.owed.fetch_add(1, Ordering::AcqRel);
    }

    /// Messages were sent, or need no answer.
    pub(crate) fn settle(&self, messages: u64) {
        if messages > 0 {
            self.messages.lock().settle(messages);
            self.settled.fetch_add(messages, Ordering::AcqRel);
            self.reader.wake();
        }
    }

    /// Ready while the connection may be read.
    pub(crate) fn poll_open(&self, cx: &Context<'_>) -> Poll<()> {
        if self.is_open() {
            return Poll::Ready(());
        }
        self.reader.register(cx.waker());
        // An answer may have been sent while the reader was registered.
        if self.is_open() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn is_open(&self) -> bool {
        if !self.is_websocket() {
            return true;
        }
        let largest = self.largest.load(Ordering::Acquire).max(1);
        let by_bytes = (self.received_bytes_max / largest).max(1);
        self.unanswered() < self.owed_max.min(by_bytes)
    }

    fn unanswered(&self) -> u64 {
        let settled = self.settled.load(Ordering::Acquire);
        self.owed.load(Ordering::Acquire).saturating_sub(settled)
    }

    /// Whether the connection carries WebSocket messages.
    pub(crate) fn is_websocket(&self) -> bool {
        self.is_websocket.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_closes_with_too_many_unanswered_messages_and_opens_again() {
        let limits = Limits { websocket_calls_max: 2, websocket_queue_max: 1, ..Limits::default() };
        let flow_control = FlowControl::new(&limits);
        (0..9).for_each(|_| flow_control.received(1));
        assert!(flow_control.is_open(), "not yet a WebSocket");
        assert!(flow_control.open_websocket());
        assert!(!flow_control.is_open());
        flow_control.settle(7);
        assert!(flow_control.is_open());
        flow_control.notified();
        assert!(!flow_control.is_open());
    }
}
