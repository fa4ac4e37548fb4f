//! Reading the body of a request within its bounds: size, time, and the memory that all requests
//! share.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::header::CONTENT_LENGTH;
use hyper::{HeaderMap, StatusCode};

use crate::admission::{Full, RequestBlocks, RequestMemory, Share};
use crate::config::Limits;
use crate::error::RpcError;

/// How much room is made before the first byte of a body is there.
const ROOM_AT_FIRST_MAX: usize = 256 * 1024;

/// Why a body was not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyError {
    /// It is larger than allowed.
    TooLarge,
    /// It did not come in time.
    TooSlow,
    /// Other requests fill the memory for requests.
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
    pub(crate) memory: RequestBlocks,
}

/// The bounds of bodies.
#[derive(Clone)]
pub(crate) struct BodyReader {
    bytes_max: usize,
    timeout: Duration,
    memory: RequestMemory,
}

impl BodyReader {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            bytes_max: usize::try_from(limits.request_bytes_max).unwrap_or(usize::MAX),
            timeout: limits.body_timeout(),
            memory: RequestMemory::new(limits),
        }
    }

    /// The memory for all requests.
    pub(crate) const fn memory(&self) -> &RequestMemory {
        &self.memory
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
        let mut memory = self.memory.of(share);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_error| BodyError::Broken)?;
            let Ok(data) = frame.into_data() else { continue };
            if read.len().saturating_add(data.len()) > self.bytes_max {
                return Err(BodyError::TooLarge);
            }
            read.extend_from_slice(&data);
            let bytes = u64::try_from(read.len()).unwrap_or(u64::MAX);
            memory.grow(bytes).map_err(|Full| BodyError::NoMemory)?;
        }
        Ok(ReadBody { bytes: read.freeze(), memory })
    }
}
