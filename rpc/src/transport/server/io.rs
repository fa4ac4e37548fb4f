//! A connection's bytes, guarded: a peer that takes too little for too long is cut off, so is one
//! that sends too large a message or takes too long to send it, one that sends faster than it takes or
//! than there is memory for is not listened to meanwhile,
//! and the connection's place is free again when the bytes end, whoever holds them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};

use super::frames::MessageCounter;
use super::write_timeout::{Terms, WriteTimeout};
use crate::admission::{AnswerMemory, Held};
use crate::config::Limits;
use crate::transport::flow_control::FlowControl;
use crate::transport::metrics::Metrics;

/// How often is looked whether memory has become scarce, while a peer takes nothing.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often is looked whether there is memory for a message that was announced. Nobody holds a part of
/// it meanwhile.
const MEMORY_LOOK_INTERVAL: Duration = Duration::from_millis(25);

/// One of the places for connections.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    metrics: Metrics,
    _permit: OwnedSemaphorePermit,
    /// And one of its client's places.
    _of_client: Option<Held>,
}

impl ConnectionSlot {
    pub(super) fn new(
        permit: OwnedSemaphorePermit,
        of_client: Option<Held>,
        metrics: Metrics,
    ) -> Self {
        metrics.connection_opened();
        Self { metrics, _permit: permit, _of_client: of_client }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.metrics.connection_closed();
    }
}

/// A stream with a time-out on writing and a place that it occupies.
#[derive(Debug)]
pub(super) struct GuardedIo<T> {
    inner: T,
    terms: Terms,
    /// The memory for answers, which decides on the terms.
    memory: AnswerMemory,
    write_timeout: WriteTimeout,
    /// When to look again whether the write has timed out, while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Whether writing was given up. Then nothing is read either: whoever waits for the peer to say
    /// something would keep the connection open.
    is_cut: bool,
    reader: Option<Waker>,
    flow_control: Arc<FlowControl>,
    /// When to look again whether there is memory for what comes in.
    no_room: Option<Pin<Box<Sleep>>>,
    /// When the message that comes in has to be there.
    message_due: Option<Pin<Box<Sleep>>>,
    message_timeout: Duration,
    incoming: MessageCounter,
    outgoing: MessageCounter,
    _place: ConnectionSlot,
}

impl<T> GuardedIo<T> {
    pub(super) fn new(
        inner: T,
        limits: &Limits,
        memory: AnswerMemory,
        flow_control: Arc<FlowControl>,
        place: ConnectionSlot,
    ) -> Self {
        Self {
            inner,
            terms: Terms {
                most: limits.write_timeout(),
                bytes_per_second_min: limits.write_bytes_per_second_min,
            },
            memory,
            write_timeout: WriteTimeout::new(Instant::now()),
            stalled: None,
            is_cut: false,
            reader: None,
            flow_control,
            no_room: None,
            message_due: None,
            message_timeout: limits.body_timeout(),
            incoming: MessageCounter::new(limits.websocket_message_bytes_max.into()),
            outgoing: MessageCounter::new(u64::MAX),
            _place: place,
        }
    }

    /// Counts messages in bytes that were read, for as long as they may be a WebSocket's.
    fn count_incoming(&mut self, bytes: &[u8]) {
        if self.flow_control.counts() {
            let (flow_control, message_due) = (&self.flow_control, &mut self.message_due);
            self.incoming.feed(bytes, |bytes| {
                flow_control.received(bytes);
                *message_due = None;
            });
            flow_control.coming(self.incoming.coming());
        }
    }

    /// Ready when there is memory for the messages that were announced.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.flow_control.has_room() {
            let look = || Box::pin(tokio::time::sleep(MEMORY_LOOK_INTERVAL));
            ready!(self.no_room.get_or_insert_with(look).as_mut().poll(cx));
            self.no_room = None;
        }
        self.no_room = None;
        Poll::Ready(())
    }

    /// Ready when a message that has begun takes too long to come in.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.incoming.coming() == 0 || !self.flow_control.is_websocket() {
            return Poll::Pending;
        }
        let due = || Box::pin(tokio::time::sleep(self.message_timeout));
        self.message_due.get_or_insert_with(due).as_mut().poll(cx)
    }

    /// Whether the peer announced a message that is too large. It must not reach the WebSocket
    /// library, which drops another number of bytes than the message has and goes on.
    fn is_exceeded(&self) -> bool {
        self.incoming.is_exceeded() && self.flow_control.is_websocket()
    }

    fn count_outgoing(&mut self, bytes: &[u8]) {
        if self.flow_control.counts() {
            let flow_control = &self.flow_control;
            self.outgoing.feed(bytes, |bytes| flow_control.sent(bytes));
        }
    }

    /// Passes the outcome of a write of `written` bytes on, unless the peer has taken too little
    /// for too long.
    fn watch<R>(
        &mut self,
        cx: &mut Context<'_>,
        written: usize,
        outcome: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if outcome.is_ready() {
            self.write_timeout.progress(self.terms_now(), written, Instant::now());
            self.stalled = None;
            return outcome;
        }
        loop {
            if let Some(look) = &mut self.stalled
                && look.as_mut().poll(cx).is_pending()
            {
                return Poll::Pending;
            }
            let (terms, now) = (self.terms_now(), Instant::now());
            let deadline = self.write_timeout.stall(terms, now);
            if deadline <= now {
                break;
            }
            let look = deadline.min(now + LOOK_INTERVAL);
            self.stalled = Some(Box::pin(tokio::time::sleep_until(look)));
        }
        self.is_cut = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn terms_now(&self) -> Terms {
        if self.memory.is_scarce() { self.terms.when_scarce() } else { self.terms }
    }

    /// Remembers whom to wake when the connection is cut.
    fn remember_reader(&mut self, cx: &Context<'_>) {
        if !self.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            self.reader = Some(cx.waker().clone());
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for GuardedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_cut {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if self.is_exceeded() {
            return Poll::Ready(Err(too_large()));
        }
        self.remember_reader(cx);
        if self.flow_control.poll_open(cx).is_pending() || self.poll_room(cx).is_pending() {
            // The node does not read, so the peer is not late.
            self.message_due = None;
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.inner).poll_read(cx, buffer);
        self.count_incoming(buffer.filled().get(before..).unwrap_or_default());
        if self.is_exceeded() {
            return Poll::Ready(Err(too_large()));
        }
        if outcome.is_pending() && self.poll_late(cx).is_ready() {
            self.is_cut = true;
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        outcome
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for GuardedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = outcome {
            self.count_outgoing(bytes.get(..written).unwrap_or_default());
        }
        let written = bytes_of(&outcome);
        self.watch(cx, written, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(cx, 0, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch(cx, 0, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(cx, buffers);
        if let Poll::Ready(Ok(mut written)) = outcome {
            for buffer in buffers {
                let part = buffer.get(..written.min(buffer.len())).unwrap_or_default();
                self.count_outgoing(part);
                written -= part.len();
            }
        }
        let written = bytes_of(&outcome);
        self.watch(cx, written, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

fn bytes_of(written: &Poll<io::Result<usize>>) -> usize {
    if let Poll::Ready(Ok(bytes)) = written { *bytes } else { 0 }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message is larger than allowed")
}
