//! A look at the frames of a connection before yamux reads them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use futures::{AsyncRead, AsyncWrite};
use tokio::time::Sleep;

use crate::rate::{Bucket, Rate};

const HEADER_BYTES: usize = 12;
/// Types of frames.
const DATA: u8 = 0;
const WINDOW_UPDATE: u8 = 1;
/// The most that an update may add to a window. Yamux adds it to what the window has, and must not
/// come beyond a `u32`.
const CREDIT_MAX: u32 = 1 << 31;
/// Data in a frame with less costs more to hold than it is long.
const SMALL_BYTES: u32 = 256;
/// Small frames of a peer. The node reads no more of one that sends more until it may: yamux would hold some
/// 64 bytes for each byte that comes in a frame of its own.
const SMALL: Rate = Rate { burst: 16_384, per_second: 4_096 };

/// What a peer sends is no frame that yamux can take.
#[derive(Debug, thiserror::Error)]
#[error("a window grows by {credit} bytes")]
struct BadFrame {
    credit: u32,
}

/// Where in a frame the next byte is.
#[derive(Debug)]
enum At {
    Header { bytes: [u8; HEADER_BYTES], read: usize },
    Body { left: u32 },
}

impl At {
    const START: Self = Self::Header { bytes: [0; HEADER_BYTES], read: 0 };
}

/// Follows frames.
#[derive(Debug)]
struct Frames {
    at: At,
    /// Small frames since the last look at the clock.
    small: u32,
}

impl Frames {
    const fn new() -> Self {
        Self { at: At::START, small: 0 }
    }

    fn see(&mut self, mut bytes: &[u8]) -> Result<(), BadFrame> {
        while !bytes.is_empty() {
            match &mut self.at {
                At::Body { left } => {
                    let skipped = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    bytes = bytes.get(skipped..).unwrap_or_default();
                    *left = left.saturating_sub(u32::try_from(skipped).unwrap_or(u32::MAX));
                    if *left == 0 {
                        self.at = At::START;
                    }
                }
                At::Header { bytes: header, read } => {
                    let free = header.iter_mut().skip(*read);
                    let copied = free.zip(bytes).map(|(to, from)| *to = *from).count();
                    bytes = bytes.get(copied..).unwrap_or_default();
                    *read = read.saturating_add(copied);
                    if *read == HEADER_BYTES {
                        let header = *header;
                        self.on_header(header)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn on_header(&mut self, header: [u8; HEADER_BYTES]) -> Result<(), BadFrame> {
        let [_, kind, _, _, _, _, _, _, a, b, c, d] = header;
        let length = u32::from_be_bytes([a, b, c, d]);
        self.at = At::START;
        if kind == WINDOW_UPDATE && length > CREDIT_MAX {
            return Err(BadFrame { credit: length });
        }
        if kind == DATA && length > 0 {
            self.at = At::Body { left: length };
        }
        if kind == DATA && length < SMALL_BYTES {
            self.small = self.small.saturating_add(1);
        }
        Ok(())
    }
}

/// A connection whose frames are looked at as they are read.
#[derive(Debug)]
pub(crate) struct Watched<C> {
    io: C,
    frames: Frames,
    small: Bucket,
    /// Nothing is read before it is over.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<C> Watched<C> {
    pub(crate) fn new(io: C) -> Self {
        Self { io, frames: Frames::new(), small: Bucket::full(SMALL, Instant::now()), pause: None }
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Watched<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if let Some(pause) = &mut this.pause {
            ready!(pause.as_mut().poll(cx));
            this.pause = None;
        }
        let read = ready!(Pin::new(&mut this.io).poll_read(cx, buffer))?;
        let seen = this.frames.see(buffer.get(..read).unwrap_or_default());
        seen.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let small = std::mem::take(&mut this.frames.small);
        let pause = this.small.owe(small, Instant::now());
        if !pause.is_zero() {
            this.pause = Some(Box::pin(tokio::time::sleep(pause)));
        }
        Poll::Ready(Ok(read))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Watched<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: u32, body: usize) -> Vec<u8> {
        let mut bytes = vec![0, kind, 0, 1, 0, 0, 0, 1];
        bytes.extend(length.to_be_bytes());
        bytes.extend(vec![1; body]);
        bytes
    }

    #[test]
    fn frames_are_told_apart_however_they_are_cut() {
        let small = frame(DATA, 3, 3);
        let all = [frame(DATA, 1_000, 1_000), small.clone(), frame(2, u32::MAX, 0), small].concat();
        for pieces in [1, 5, 12, 999, 4_096] {
            let mut frames = Frames::new();
            assert!(all.chunks(pieces).all(|piece| frames.see(piece).is_ok()), "{pieces}");
            assert_eq!(2, frames.small, "{pieces}");
        }
    }

    #[test]
    fn a_window_that_grows_beyond_all_measure_is_an_error() {
        let mut frames = Frames::new();
        assert!(frames.see(&frame(WINDOW_UPDATE, CREDIT_MAX, 0)).is_ok());
        let error = frames.see(&frame(WINDOW_UPDATE, u32::MAX, 0)).unwrap_err();
        assert_eq!("a window grows by 4294967295 bytes", error.to_string());
    }
}
