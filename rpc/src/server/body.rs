//! Reading the body of a request within its bounds: size, time, and the memory that all bodies
//! share.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::header::CONTENT_LENGTH;
use hyper::{HeaderMap, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;
use crate::error::RpcError;

/// The unit in which memory for bodies is counted.
const BLOCK_BYTES: usize = 16 * 1024;
/// How much room is made before the first byte of a body is there.
const ROOM_AT_FIRST_MAX: usize = 256 * 1024;

/// Why a body was not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyError {
    /// It is larger than allowed.
    TooLarge,
    /// It did not come in time.
    TooSlow,
    /// Other bodies fill the memory for bodies.
    NoMemory,
    /// The connection broke.
    Broken,
}

impl BodyError {
    /// What the client is told.
    pub(crate) fn told(self, bytes_max: usize) -> RpcError {
        match self {
            Self::TooLarge => RpcError::too_large(
                "TOO_LARGE",
                format!("the body has more than {bytes_max} bytes"),
            ),
            Self::TooSlow => RpcError::too_large("TOO_SLOW", "the body did not come in time"),
            Self::NoMemory => RpcError::busy("BUSY", "too many large requests", 500),
            Self::Broken => RpcError::too_large("BROKEN", "the body ended early"),
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// A body, and the memory that it occupies until this is dropped.
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    pub(crate) memory: Option<OwnedSemaphorePermit>,
}

/// The bounds of bodies.
#[derive(Clone)]
pub(crate) struct BodyReader {
    bytes_max: usize,
    timeout: Duration,
    blocks: Arc<Semaphore>,
}

impl BodyReader {
    pub(crate) fn new(limits: &Limits) -> Self {
        let bytes = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        let blocks = bytes(limits.request_memory_bytes_max).div_ceil(BLOCK_BYTES);
        Self {
            bytes_max: bytes(limits.request_bytes_max),
            timeout: limits.body_timeout(),
            blocks: Arc::new(Semaphore::new(blocks)),
        }
    }

    pub(crate) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<ReadBody, BodyError> {
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|bytes| bytes > self.bytes_max) {
            return Err(BodyError::TooLarge);
        }
        let read = self.read_frames(announced.unwrap_or(0), body);
        tokio::time::timeout(self.timeout, read).await.unwrap_or(Err(BodyError::TooSlow))
    }

    async fn read_frames(&self, announced: usize, mut body: Body) -> Result<ReadBody, BodyError> {
        let mut read = BytesMut::with_capacity(announced.min(ROOM_AT_FIRST_MAX));
        let mut memory: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_error| BodyError::Broken)?;
            let Ok(data) = frame.into_data() else { continue };
            if read.len().saturating_add(data.len()) > self.bytes_max {
                return Err(BodyError::TooLarge);
            }
            read.extend_from_slice(&data);
            self.occupy(read.len(), &mut memory)?;
        }
        Ok(ReadBody { bytes: read.freeze(), memory })
    }

    /// Takes blocks until they hold `bytes`. The first block of a body is free.
    fn occupy(
        &self,
        bytes: usize,
        memory: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<(), BodyError> {
        let held = memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = (bytes / BLOCK_BYTES).saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let missing = u32::try_from(missing).map_err(|_error| BodyError::TooLarge)?;
        let more = Arc::clone(&self.blocks).try_acquire_many_owned(missing);
        let more = more.map_err(|_error| BodyError::NoMemory)?;
        match memory {
            Some(held) => held.merge(more),
            None => *memory = Some(more),
        }
        Ok(())
    }
}
