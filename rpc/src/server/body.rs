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
use crate::share::{BODY_BLOCK_BYTES as BLOCK_BYTES, Share};

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
    pub(crate) memory: BodyMemory,
}

/// Blocks of the client's share, and the same number of what all share.
#[derive(Default)]
pub(crate) struct BodyMemory(Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>);

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
        share: &Share,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<ReadBody, BodyError> {
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|bytes| bytes > self.bytes_max) {
            return Err(BodyError::TooLarge);
        }
        let read = self.read_frames(share, announced.unwrap_or(0), body);
        tokio::time::timeout(self.timeout, read).await.unwrap_or(Err(BodyError::TooSlow))
    }

    async fn read_frames(
        &self,
        share: &Share,
        announced: usize,
        mut body: Body,
    ) -> Result<ReadBody, BodyError> {
        let mut read = BytesMut::with_capacity(announced.min(ROOM_AT_FIRST_MAX));
        let mut memory = BodyMemory::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_error| BodyError::Broken)?;
            let Ok(data) = frame.into_data() else { continue };
            if read.len().saturating_add(data.len()) > self.bytes_max {
                return Err(BodyError::TooLarge);
            }
            read.extend_from_slice(&data);
            self.occupy(share, read.len(), &mut memory)?;
        }
        Ok(ReadBody { bytes: read.freeze(), memory })
    }

    /// Takes blocks until they hold `bytes`. The first block of a body is free.
    fn occupy(
        &self,
        share: &Share,
        bytes: usize,
        memory: &mut BodyMemory,
    ) -> Result<(), BodyError> {
        let held = memory.0.as_ref().map_or(0, |(own, _)| own.num_permits());
        let missing = (bytes / BLOCK_BYTES).saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let missing = u32::try_from(missing).map_err(|_error| BodyError::TooLarge)?;
        let take = |blocks: &Arc<Semaphore>| {
            let more = Arc::clone(blocks).try_acquire_many_owned(missing);
            more.map_err(|_error| BodyError::NoMemory)
        };
        let (own, of_all) = (take(&share.body_blocks)?, take(&self.blocks)?);
        match &mut memory.0 {
            Some((own_held, of_all_held)) => {
                own_held.merge(own);
                of_all_held.merge(of_all);
            }
            held @ None => *held = Some((own, of_all)),
        }
        Ok(())
    }
}
