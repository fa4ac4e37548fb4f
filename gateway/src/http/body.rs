//! Bodies: what is read of requests, and answers as JSON.

use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::Value;

use crate::openai::Fault;

/// Reads a body of JSON of at most `bytes_max`; it is not looked at.
///
/// # Errors
/// When it is of another type, or longer.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<Bytes, Fault> {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Fault::not_json(kind));
    }
    to_bytes(body, bytes_max).await.map_err(|_too_long_or_gone| Fault::too_long(bytes_max))
}

/// JSON with a status.
pub(super) fn json(status: StatusCode, value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response().with(status)
}

/// A fault.
pub(super) fn fault(fault: &Fault) -> Response {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &fault.json());
    let headers = response.headers_mut();
    if let Some(should_retry) = fault.should_retry {
        let word = if should_retry { "true" } else { "false" };
        headers.insert("x-should-retry", HeaderValue::from_static(word));
    }
    if let Some(retry_ms) = fault.retry_ms {
        headers.insert(RETRY_AFTER, HeaderValue::from(retry_ms.div_ceil(1_000)));
    }
    response
}

/// A response with another status.
trait With {
    fn with(self, status: StatusCode) -> Self;
}

impl With for Response {
    fn with(mut self, status: StatusCode) -> Self {
        *self.status_mut() = status;
        self
    }
}
