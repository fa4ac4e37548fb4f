//! `POST /v1/chat/completions`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use futures::stream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use types::Hash;

use super::connection::Connection;
use super::stream::{Opening, open};
use super::{authentication, body};
use crate::key_turns::Turn;
use crate::keys::{IDEMPOTENCY_KEY_BYTES_MAX, KeyId, hash_of};
use crate::openai::{self, ApiFault, ChatRequest};
use crate::operate::{Asking, Interface};
use crate::record::RequestId;
use crate::request_service::{Progress, RequestService, Submission};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");
const READ_TIMEOUT: HeaderName = HeaderName::from_static("x-stainless-read-timeout");
/// How much earlier than the client gives up it is answered: a tenth of its time, at most this.
const MARGIN_MAX: Duration = Duration::from_secs(5);
const MARGIN_PART: u32 = 10;

/// Answers a request, whole or as a stream.
pub(super) async fn chat(
    State(service): State<Arc<RequestService>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let asking = Asking::over(Interface::Chat, &service.store.meter.counters);
    match Box::pin(answer(&service, &headers, body, &asking)).await {
        Ok(response) => response,
        Err(fault) => {
            asking.failed(&fault);
            body::fault(&fault)
        }
    }
}

async fn answer(
    service: &Arc<RequestService>,
    headers: &HeaderMap,
    body: Body,
    asking: &Asking,
) -> Result<Response, ApiFault> {
    let began = Instant::now();
    let key = authentication::key(service, headers)?;
    let body = body::read(service, key.id, (headers, body)).await?;
    let asked = openai::parse(&body)?;
    if let Some(name) = asked.ignored.first().filter(|_| key.limits.strict) {
        let message = format!("{name} has no effect here, and this key is strict");
        return Err(ApiFault::unsupported(*name, message));
    }
    let name = idempotency_key(headers)?.map(hash_of);
    let (body, is_retry) = (Hash::digest(&body), is_retry(headers));
    let deadline = began + patience(service, headers);
    let key_id = key.id;
    let submission = Submission { key, asked: &asked, body, name, is_retry, deadline };
    let (id, progress) = service.submit(submission).await?;
    let connection = Connection::new(Arc::clone(service), id, asking.clone());
    let mut waiting = Waiting { key: key_id, connection, progress, deadline };
    let response = if asked.is_stream {
        let every = read_timeout(headers);
        streamed(&mut waiting, &asked, every).await?
    } else {
        Shape::Whole(whole(&mut waiting).await?)
    };
    let progress = waiting.progress.borrow().clone();
    let connection = waiting.connection;
    let response = match response {
        Shape::Whole(answer) => json(answer, connection),
        Shape::Stream(opening) => open(opening, waiting.progress, connection),
    };
    Ok(with_headers(response, &progress, id, &asked.ignored))
}

/// A connection and what it waits for.
pub(super) struct Waiting {
    pub(super) key: KeyId,
    pub(super) connection: Connection,
    pub(super) progress: watch::Receiver<Progress>,
    pub(super) deadline: Instant,
}

enum Shape {
    Whole(Whole),
    Stream(Opening),
}

impl Waiting {
    /// Waits until it is so, and at most until the deadline.
    async fn until(&mut self, is_so: impl FnMut(&Progress) -> bool) -> Result<Progress, ApiFault> {
        match timeout_at(self.deadline, self.progress.wait_for(is_so)).await {
            Ok(Ok(progress)) => Ok(progress.clone()),
            Ok(Err(_gone)) => Err(ApiFault::stopping()),
            Err(_late) => Err(ApiFault::still_running()),
        }
    }

    /// A fault at the end is an answer, too, unless the run goes on.
    fn failed(&mut self, fault: &ApiFault) -> ApiFault {
        if *fault != ApiFault::stopping() {
            self.connection.done();
        }
        fault.clone()
    }
}

/// An answer in one piece, and the turn in which it is sent.
pub(super) struct Whole {
    bytes: Bytes,
    turn: Option<Turn>,
}

pub(super) async fn whole(waiting: &mut Waiting) -> Result<Whole, ApiFault> {
    let progress = waiting.until(|it| it.ended.is_some()).await?;
    let ended = progress.ended.ok_or_else(ApiFault::stopping)?;
    match &*ended {
        Ok(answered) => {
            let turn = timeout_at(waiting.deadline, waiting.connection.turn(waiting.key)).await;
            let turn = turn.map_err(|_late| ApiFault::still_running())?;
            Ok(Whole { bytes: answered.json().to_string().into(), turn })
        }
        Err(fault) => Err(waiting.failed(fault)),
    }
}

/// Headers wait for the claim: until then a fault has a status of its own.
async fn streamed(
    waiting: &mut Waiting,
    asked: &ChatRequest,
    read_timeout: Option<Duration>,
) -> Result<Shape, ApiFault> {
    let progress = waiting.until(|it| it.is_claimed || it.ended.is_some()).await?;
    if let Some(Err(fault)) = progress.ended.as_deref() {
        return Err(waiting.failed(fault));
    }
    let model = asked.model.clone();
    Ok(Shape::Stream(Opening {
        key: waiting.key,
        model,
        includes_usage: asked.includes_usage,
        read_timeout,
    }))
}

/// JSON; the client has it once it was read to its end.
pub(super) fn json(Whole { bytes, turn }: Whole, connection: Connection) -> Response {
    let state = (Some(bytes), connection, turn);
    let parts = stream::unfold(state, |(bytes, mut connection, turn)| async move {
        let Some(bytes) = bytes else {
            connection.done();
            return None;
        };
        Some((Ok::<Bytes, std::convert::Infallible>(bytes), (None, connection, turn)))
    });
    let mut response = Response::new(Body::from_stream(parts));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn with_headers(
    mut response: Response,
    progress: &Progress,
    id: RequestId,
    ignored: &[&'static str],
) -> Response {
    let headers = response.headers_mut();
    let mut add = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    add("x-request-id", format!("req-ombra-{}", id.0));
    if let Some(run) = progress.run {
        add("x-ombra-run-id", run.to_string());
    }
    if let Some(call) = progress.call {
        add("x-ombra-call-id", call.to_string());
    }
    if let Some(tx) = progress.request_tx {
        add("x-ombra-request-tx", tx.to_string());
    }
    if !ignored.is_empty() {
        add("x-ombra-ignored", ignored.join(", "));
    }
    response
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, ApiFault> {
    let Some(given) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = given.to_str().unwrap_or_default();
    if text.is_empty() || text.len() > IDEMPOTENCY_KEY_BYTES_MAX {
        let message =
            format!("Idempotency-Key: expected 1 to {IDEMPOTENCY_KEY_BYTES_MAX} characters");
        return Err(ApiFault::parameter("Idempotency-Key", message));
    }
    Ok(Some(text))
}

pub(super) fn is_retry(headers: &HeaderMap) -> bool {
    let count =
        authentication::text(headers, &RETRY_COUNT).and_then(|text| text.parse::<u32>().ok());
    count.is_some_and(|count| count > 0)
}

/// How long the client waits for a byte, if it says so.
fn read_timeout(headers: &HeaderMap) -> Option<Duration> {
    let seconds = authentication::text(headers, &READ_TIMEOUT)?.parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}

/// How long an answer may take.
pub(super) fn patience(service: &RequestService, headers: &HeaderMap) -> Duration {
    let own = Duration::from_millis(service.settings.answer_wait_ms);
    let Some(theirs) = read_timeout(headers) else { return own };
    let margin = (theirs / MARGIN_PART).min(MARGIN_MAX);
    own.min(theirs.saturating_sub(margin))
}
