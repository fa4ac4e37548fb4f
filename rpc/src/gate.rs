//! How much one WebSocket has under way, and when to stop listening to it.
//!
//! Every message of a client becomes a task and an answer that waits to be sent. A client that
//! sends faster than it takes would make the node hold more and more of both. So whole messages
//! are counted on the wire in both directions, and the node reads no further while too many are
//! unanswered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;
use crate::error::RpcError;

/// Counts of one connection. Idle until the connection becomes a WebSocket.
#[derive(Debug)]
pub(crate) struct Gate {
    is_websocket: AtomicBool,
    requests: AtomicU64,
    /// Messages that came, and notifications that were made.
    owed: AtomicU64,
    /// Messages that were sent, and messages that need no answer.
    settled: AtomicU64,
    owed_max: u64,
    reader: AtomicWaker,
    calls: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new(limits: &Limits) -> Self {
        let calls = usize::try_from(limits.websocket_calls_max).unwrap_or(Semaphore::MAX_PERMITS);
        let owed_max = limits.websocket_calls_max.saturating_add(limits.websocket_queue_max);
        Self {
            is_websocket: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            owed: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            owed_max: u64::from(owed_max),
            reader: AtomicWaker::new(),
            calls: Arc::new(Semaphore::new(calls)),
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

    /// Messages of the client were read.
    pub(crate) fn received(&self, messages: u64) {
        self.owed.fetch_add(messages, Ordering::AcqRel);
    }

    /// A message that answers nothing was made.
    pub(crate) fn notified(&self) {
        self.owed.fetch_add(1, Ordering::AcqRel);
    }

    /// Messages were sent, or need no answer.
    pub(crate) fn settle(&self, messages: u64) {
        if messages > 0 {
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
        if !self.is_websocket.load(Ordering::Acquire) {
            return true;
        }
        let settled = self.settled.load(Ordering::Acquire);
        self.owed.load(Ordering::Acquire).saturating_sub(settled) < self.owed_max
    }
}

/// Counts whole data messages in one direction of a connection that becomes a WebSocket with its
/// first request: an HTTP head, then frames (RFC 6455 section 5.2).
#[derive(Debug)]
pub(crate) struct MessageCounter {
    state: State,
    /// Whether the frame under the cursor ends a data message.
    ends_message: bool,
}

#[derive(Debug)]
enum State {
    /// So many bytes of the empty line that ends the head were seen.
    Head(usize),
    /// The two bytes that begin a frame; the first, if it is there.
    Start(Option<u8>),
    /// Bytes of an extended length, and whether a mask follows.
    Length { bytes_left: u8, length: u64, is_masked: bool },
    /// Bytes of mask and payload to skip.
    Payload(u64),
}

const HEAD_END: &[u8; 4] = b"\r\n\r\n";
const MASK_BYTES: u64 = 4;

impl MessageCounter {
    pub(crate) const fn new() -> Self {
        Self { state: State::Head(0), ends_message: false }
    }

    /// Takes the next bytes; answers how many messages end in them.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> u64 {
        let mut messages = 0_u64;
        while let Some((&byte, rest)) = bytes.split_first() {
            if let State::Payload(left) = &mut self.state {
                let skipped = u64::try_from(bytes.len()).unwrap_or(u64::MAX).min(*left);
                *left -= skipped;
                bytes =
                    bytes.get(usize::try_from(skipped).unwrap_or(usize::MAX)..).unwrap_or_default();
            } else {
                self.header_byte(byte);
                bytes = rest;
            }
            if matches!(self.state, State::Payload(0)) {
                messages = messages.saturating_add(u64::from(self.ends_message));
                self.state = State::Start(None);
            }
        }
        messages
    }

    fn header_byte(&mut self, byte: u8) {
        self.state = match self.state {
            State::Head(seen) => {
                let seen = match HEAD_END.get(seen) {
                    Some(wanted) if *wanted == byte => seen.saturating_add(1),
                    _ => usize::from(byte == b'\r'),
                };
                if seen == HEAD_END.len() { State::Start(None) } else { State::Head(seen) }
            }
            State::Start(None) => State::Start(Some(byte)),
            State::Start(Some(first)) => {
                let (is_final, opcode) = (first & 0x80 != 0, first & 0x0f);
                self.ends_message = is_final && opcode < 8;
                let is_masked = byte & 0x80 != 0;
                match byte & 0x7f {
                    126 => State::Length { bytes_left: 2, length: 0, is_masked },
                    127 => State::Length { bytes_left: 8, length: 0, is_masked },
                    length => payload(u64::from(length), is_masked),
                }
            }
            State::Length { bytes_left, length, is_masked } => {
                let length = (length << 8) | u64::from(byte);
                match bytes_left {
                    0 | 1 => payload(length, is_masked),
                    more => State::Length { bytes_left: more - 1, length, is_masked },
                }
            }
            State::Payload(left) => State::Payload(left),
        };
    }
}

const fn payload(length: u64, is_masked: bool) -> State {
    State::Payload(length.saturating_add(if is_masked { MASK_BYTES } else { 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as a client sends it.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match u16::try_from(payload.len()) {
            Ok(length @ 0..126) => bytes.push(0x80 | length as u8),
            Ok(length) => {
                bytes.push(0x80 | 126);
                bytes.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                bytes.push(0x80 | 127);
                bytes.extend_from_slice(&(payload.len() as u64).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&[1, 2, 3, 4]);
        bytes.extend_from_slice(payload);
        bytes
    }

    fn stream() -> Vec<u8> {
        let mut bytes = b"GET / HTTP/1.1\r\nupgrade: websocket\r\n\r\n".to_vec();
        bytes.extend(frame(0x81, b"one"));
        bytes.extend(frame(0x89, b"ping, not counted"));
        bytes.extend(frame(0x01, &[b'x'; 200]));
        bytes.extend(frame(0x00, b"continued"));
        bytes.extend(frame(0x80, b"and ended: two"));
        bytes.extend(frame(0x82, b""));
        bytes.extend(frame(0x81, &vec![b'y'; 70_000]));
        bytes.extend(frame(0x88, b"close"));
        bytes
    }

    #[test]
    fn messages_are_counted_however_the_bytes_are_cut() {
        let stream = stream();
        for piece in [1, 2, 3, 7, 1_000, stream.len()] {
            let mut counter = MessageCounter::new();
            let counted: u64 = stream.chunks(piece).map(|bytes| counter.feed(bytes)).sum();
            assert_eq!(4, counted, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_gate_closes_with_too_many_unanswered_messages_and_opens_again() {
        let limits = Limits { websocket_calls_max: 2, websocket_queue_max: 1, ..Limits::default() };
        let gate = Gate::new(&limits);
        gate.received(9);
        assert!(gate.is_open(), "not yet a WebSocket");
        assert!(gate.open_websocket());
        assert!(!gate.is_open());
        gate.settle(7);
        assert!(gate.is_open());
        gate.notified();
        assert!(!gate.is_open());
    }
}
