//! Yamux with bounds: how many streams a peer may have open on a connection, and what it may send on
//! streams that nobody reads.
//!
//! libp2p's own shell around the library sets neither bound, and its setters go back to yamux 0.12,
//! which queues an answer to each ping of a peer that does not read.

use std::collections::VecDeque;
use std::future::{Ready, ready};
use std::io::{self, IoSlice, IoSliceMut};
use std::iter;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::{AsyncRead, AsyncWrite};
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo};
use yamux::Mode;

use crate::frames::Watched;

/// Streams that a peer may have open at once. An honest one has up to 16 of each of the three kinds
/// of questions, and three or four of gossip, identify and ping.
pub(crate) const INBOUND_MAX: usize = 64;
/// Streams of both sides. This node opens as many as a peer at most, so that yamux never comes to
/// this bound, at which it gives a connection up.
const STREAMS_MAX: usize = 2 * INBOUND_MAX;
/// What a peer may send on a stream before any of it is read. Yamux does not begin with less.
const WINDOW_BYTES: usize = 256 * 1024;
/// By how much the windows of all streams of a connection may grow, so that blocks come fast on long
/// lines. What a peer can fill without being read is 128 windows and this: 40 MiB per connection.
const GROWTH_BYTES: usize = 8 * 1024 * 1024;

fn settings() -> yamux::Config {
    let mut config = yamux::Config::default();
    config
        .set_max_num_streams(STREAMS_MAX)
        .set_max_connection_receive_window(Some(STREAMS_MAX * WINDOW_BYTES + GROWTH_BYTES))
        // As libp2p has it.
        .set_read_after_close(false);
    config
}

/// Puts streams on a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upgrade;

impl UpgradeInfo for Upgrade {
    type Info = &'static str;
    type InfoIter = iter::Once<Self::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        iter::once("/yamux/1.0.0")
    }
}

impl<C> InboundConnectionUpgrade<C> for Upgrade
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    type Output = Muxer<C>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Output>>;

    fn upgrade_inbound(self, io: C, _: Self::Info) -> Self::Future {
        ready(Ok(Muxer::new(io, Mode::Server)))
    }
}

impl<C> OutboundConnectionUpgrade<C> for Upgrade
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    type Output = Muxer<C>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Output>>;

    fn upgrade_outbound(self, io: C, _: Self::Info) -> Self::Future {
        ready(Ok(Muxer::new(io, Mode::Client)))
    }
}

/// A connection with streams.
#[derive(Debug)]
pub(crate) struct Muxer<C> {
    connection: yamux::Connection<Watched<C>>,
    /// Streams of the peer that nobody has taken yet. They count as open, which bounds them.
    waiting: VecDeque<Stream>,
    /// Whoever waits for one of them.
    taker: Option<Waker>,
    /// Each open stream of the peer holds a clone.
    open: Arc<()>,
}

impl<C: AsyncRead + AsyncWrite + Unpin> Muxer<C> {
    fn new(io: C, mode: Mode) -> Self {
        let connection = yamux::Connection::new(Watched::new(io), settings(), mode);
        Self { connection, waiting: VecDeque::new(), taker: None, open: Arc::new(()) }
    }

    /// Reads and writes whatever can be, up to the next stream that the peer opens. None if that is
    /// one too many: dropping it resets it.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Stream>, Closed>> {
        self.connection.poll_next_inbound(cx).map(|next| {
            let stream = next.unwrap_or(Err(yamux::ConnectionError::Closed))?;
            let others = Arc::strong_count(&self.open).saturating_sub(1);
            let counted = Some(Arc::clone(&self.open));
            Ok((others < INBOUND_MAX).then_some(Stream { stream, _counted: counted }))
        })
    }
}

/// Why there are no more streams.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Closed(#[from] yamux::ConnectionError);

impl<C: AsyncRead + AsyncWrite + Unpin> StreamMuxer for Muxer<C> {
    type Substream = Stream;
    type Error = Closed;

    fn poll_inbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Stream, Closed>> {
        if let Some(stream) = self.waiting.pop_front() {
            return Poll::Ready(Ok(stream));
        }
        match self.advance(cx)? {
            Poll::Ready(Some(stream)) => return Poll::Ready(Ok(stream)),
            // Others have their turn before the next one.
            Poll::Ready(None) => cx.waker().wake_by_ref(),
            Poll::Pending => {}
        }
        self.taker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_outbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Stream, Closed>> {
        let opened = self.connection.poll_new_outbound(cx);
        opened.map_ok(|stream| Stream { stream, _counted: None }).map_err(Closed)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.connection.poll_close(cx).map_err(Closed)
    }

    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<StreamMuxerEvent, Closed>> {
        if let Poll::Ready(stream) = self.advance(cx)? {
            self.waiting.extend(stream);
            if let Some(taker) = self.taker.take() {
                taker.wake();
            }
            // Others have their turn before the next one.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// A stream on a connection.
#[derive(Debug)]
pub(crate) struct Stream {
    stream: yamux::Stream,
    /// For those that the peer opened.
    _counted: Option<Arc<()>>,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_read_vectored(cx, buffers)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}
