//! A connection whose client has to take what is written to it: one that takes nothing for a while is given
//! up, with its place and the answer that waits for it.

use std::io::{Error as IoError, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A connection.
#[derive(Debug)]
pub(super) struct TimedStream {
    stream: TcpStream,
    /// How long the client may take nothing.
    write_timeout: Duration,
    /// While the client takes nothing: until it is given up.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    pub(super) const fn new(stream: TcpStream, write_timeout: Duration) -> Self {
        Self { stream, write_timeout, stuck: None }
    }

    /// What became of a write, or that the client takes nothing any more.
    fn written(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<Result<usize, IoError>>,
    ) -> Poll<Result<usize, IoError>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let write_timeout = self.write_timeout;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(write_timeout)));
        stuck.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), IoError>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, IoError>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, IoError>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), IoError>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), IoError>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
