//! Bodies: what is read of requests, and answers as JSON.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use crate::keys::KeyId;
use crate::openai::ApiFault;
use crate::request_service::RequestService;

/// So many times the longest body is passed over of one that is longer.
const PASSED_OVER_TIMES: usize = 8;

/// How long a client may take for a body, its turn included: enough for the longest one over a slow line.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);

/// Reads a body of JSON of at most `request_bytes_max`; it is not looked at.
///
/// # Errors
/// When it is of another type, longer, or does not arrive in time.
pub(super) async fn read(
    service: &RequestService,
    key: KeyId,
    (headers, body): (&HeaderMap, Body),
) -> Result<Bytes, ApiFault> {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(ApiFault::not_json(kind));
    }
    let reading = async {
        let _turn = service.body_turns.turn(key).await;
        collect(body, service.settings.request_bytes_max).await
    };
    within(BODY_TIMEOUT, reading).await
}

/// What is read of a client, if its turn comes and it arrives in time.
async fn within(
    most: Duration,
    reading: impl Future<Output = Result<Bytes, ApiFault>>,
) -> Result<Bytes, ApiFault> {
    timeout(most, reading).await.unwrap_or_else(|_late| Err(ApiFault::body_late(most)))
}

async fn collect(body: Body, bytes_max: usize) -> Result<Bytes, ApiFault> {
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

/// A body that somebody else reads, once its turn has come: it breaks off if it does not arrive in time.
///
/// # Errors
/// When its turn does not come in time.
pub(crate) async fn in_turn(
    service: &RequestService,
    key: KeyId,
    body: Body,
) -> Result<Body, ApiFault> {
    let deadline = Instant::now() + BODY_TIMEOUT;
    let turn = timeout_at(deadline, service.body_turns.turn(key)).await;
    let turn = turn.map_err(|_late| ApiFault::body_late(BODY_TIMEOUT))?;
    let reading = Some((body.into_data_stream(), turn));
    let parts = stream::unfold(reading, move |reading| async move {
        let (mut parts, turn) = reading?;
        match timeout_at(deadline, parts.next()).await {
            Ok(part) => Some((part?, Some((parts, turn)))),
            Err(late) => Some((Err(axum::Error::new(late)), None)),
        }
    });
    Ok(Body::from_stream(parts))
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

#[cfg(test)]
mod tests {
    //! Bodies that do not arrive.

    use axum::body::Body;
    use bytes::Bytes;
    use futures::{StreamExt as _, stream};

    use super::{collect, within};
    use crate::testing::SOON;

    /// A body of which only the beginning arrives.
    fn begun() -> Body {
        let beginning = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]);
        Body::from_stream(beginning.chain(stream::pending()))
    }

    #[tokio::test]
    async fn a_body_that_does_not_arrive_is_not_waited_for() {
        let shortly = SOON / 1_000;
        let late = within(shortly, collect(begun(), 10)).await.unwrap_err();
        assert_eq!((408, "request_timeout"), (late.status, late.code));
        let whole = within(SOON, collect(Body::from("{}"), 10)).await;
        assert_eq!(Ok(Bytes::from_static(b"{}")), whole);
    }
}
