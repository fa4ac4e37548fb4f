//! What REST, event streams and the public clients' WebSocket are answered from, and their answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::http::request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::rendered::Rendered;
use crate::admission::{Client, Held, Kept};
use crate::error::RpcError;
use crate::ports::Ports;
use crate::service::Context;
use crate::transport::resources::Resources;

/// What endpoints are answered from. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Rest(Arc<Inner>);

struct Inner {
    context: Arc<Context>,
    resources: Resources,
    rendered: Rendered,
    streams: Arc<Semaphore>,
}

impl Rest {
    pub(crate) fn new(context: Arc<Context>, resources: Resources) -> Self {
        let streams = usize::try_from(context.limits.streams_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Inner {
            rendered: Rendered::new(Arc::clone(&context), resources.nobody.clone()),
            context,
            resources,
            streams: Arc::new(Semaphore::new(streams.min(Semaphore::MAX_PERMITS))),
        }))
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.0.context
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.0.context.ports
    }

    pub(crate) fn resources(&self) -> &Resources {
        &self.0.resources
    }

    /// Blocks as events of a stream.
    pub(super) fn rendered(&self) -> &Rendered {
        &self.0.rendered
    }

    /// A place among the open streams of the client and of all.
    pub(crate) fn place(&self, client: &Client) -> Result<StreamSlot, RpcError> {
        if self.context().shutdown.is_cancelled() {
            return Err(RpcError::ShuttingDown);
        }
        let of_client = client.share().stream()?;
        let of_all = Arc::clone(&self.0.streams).try_acquire_owned().map_err(|_error| {
            let message = format!("{} streams are open already", self.context().limits.streams_max);
            RpcError::busy("TOO_MANY_STREAMS", message, 5_000)
        })?;
        Ok(StreamSlot { _of_client: of_client, _of_all: of_all })
    }

    /// An answer that counts in the memory for answers until its last byte was written.
    pub(super) fn counted(
        &self,
        client: &Client,
        kind: HeaderValue,
        bytes: Vec<u8>,
    ) -> Result<Response, RpcError> {
        let most = usize::try_from(self.context().limits.response_bytes_max).unwrap_or(usize::MAX);
        if bytes.len() > most {
            let message = format!("an answer of {} bytes, at most {most}", bytes.len());
            return Err(RpcError::too_large("TOO_LARGE", message));
        }
        let room = client.share().hold(bytes.len())?;
        let kept = Kept { bytes: bytes.into(), _room: room };
        Ok(([(CONTENT_TYPE, kind)], Body::from(Bytes::from_owner(kept))).into_response())
    }

    /// The answer, counted in the metrics under the name of its endpoint.
    pub(crate) fn observed(
        &self,
        name: &'static str,
        started: Instant,
        answer: Result<Response, RpcError>,
    ) -> Response {
        let metrics = &self.0.resources.metrics;
        metrics.observe(name, started.elapsed());
        metrics.count(name, answer.as_ref().err().map_or(0, RpcError::number), 1);
        answer.unwrap_or_else(IntoResponse::into_response)
    }
}

/// A place among the open streams, until this is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    _of_client: Held,
    _of_all: OwnedSemaphorePermit,
}

impl FromRequestParts<Rest> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut request::Parts,
        rest: &Rest,
    ) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().unwrap_or(&rest.0.resources.nobody).clone())
    }
}
