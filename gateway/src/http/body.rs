//! Bodies: what is read of requests, and answers as JSON.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use serde_json::Value;

use crate::openai::ApiFault;

/// So many times the longest body is passed over of one that is longer.
const PASSED_OVER_TIMES: usize = 8;

/// Reads a body of JSON of at most `bytes_max`; it is not looked at.
///
/// # Errors
/// When it is of another type, or longer.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<Bytes, ApiFault> {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(ApiFault::not_json(kind));
    }
    let mut parts = body.into_data_stream();
    let (mut read, mut passed_over) = (BytesMut::new(), 0_usize);
    while let Some(part) = parts.next().await {
        let part =
            part.map_err(|error| ApiFault::malformed(format!("the body was cut off: {error}")))?;
        if passed_over == 0 && read.len().saturating_add(part.len()) <= bytes_max {
            read.extend_from_slice(&part);
            continue;
        }
        // Who is answered in the middle of a body may not hear the answer.
        passed_over = passed_over.saturating_add(part.len());
        if passed_over > bytes_max.saturating_mul(PASSED_OVER_TIMES) {
            break;
        }
    }
    if passed_over > 0 { Err(ApiFault::too_long(bytes_max)) } else { Ok(read.freeze()) }
}

/// JSON with a status.
pub(super) fn json(status: StatusCode, value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response().with(status)
}

/// A fault.
pub(crate) fn fault(fault: &ApiFault) -> Response {
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
