//! Answers as streams: comments while a miner works, chunks once there is something to say.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use futures::stream;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use super::connection::Connection;
use crate::openai::ApiFault;
use crate::openai::chunks::Head;
use crate::operate::One;
use crate::request_service::{Answered, Ended, Progress};

/// The longest silence.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// How a stream begins.
pub(super) struct Opening {
    pub(super) model: String,
    pub(super) includes_usage: bool,
    /// How long the client waits for a byte, if it says so.
    pub(super) read_timeout: Option<Duration>,
}

struct State {
    head: Option<Head>,
    progress: watch::Receiver<Progress>,
    connection: Connection,
    model: String,
    includes_usage: bool,
    silence: Duration,
    steps: u64,
    rest: Option<VecDeque<Bytes>>,
    /// Whether what is told at the end is for good.
    is_final: bool,
    /// Counts it while it is open.
    _one: One,
}

/// A stream that is open.
pub(super) fn open(
    opening: Opening,
    progress: watch::Receiver<Progress>,
    connection: Connection,
) -> Response {
    let Opening { model, includes_usage, read_timeout } = opening;
    let silence = read_timeout.map_or(SILENCE_MAX, |time| SILENCE_MAX.min(time / 2));
    let one = connection.streams();
    let state = State {
        head: None,
        progress,
        connection,
        model,
        includes_usage,
        silence,
        steps: 0,
        rest: None,
        is_final: true,
        _one: one,
    };
    let events = stream::unfold(state, |mut state| async move {
        let bytes = state.next().await?;
        Some((Ok::<Bytes, Infallible>(bytes), state))
    });
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // What buffers streams would keep them until their end.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl State {
    async fn next(&mut self) -> Option<Bytes> {
        if self.head.is_none() {
            return Some(self.first());
        }
        loop {
            if let Some(rest) = &mut self.rest {
                let next = rest.pop_front();
                if next.is_none() && self.is_final {
                    self.connection.done();
                }
                return next;
            }
            if let Some(comment) = self.wait().await {
                return Some(comment);
            }
        }
    }

    /// The first chunk, which says that somebody answers.
    fn first(&mut self) -> Bytes {
        let run = self.progress.borrow().run;
        let id = run.map_or_else(|| "chatcmpl-ombra".to_owned(), |run| format!("chatcmpl-{run}"));
        let created = created(&self.progress.borrow());
        let (model, includes_usage) = (self.model.clone(), self.includes_usage);
        let head = Head { id, created, model, includes_usage };
        let first = data(&head.first());
        self.head = Some(head);
        first
    }

    /// Waits for news: a comment, or none where there is something better to say.
    async fn wait(&mut self) -> Option<Bytes> {
        let ended = self.progress.borrow().ended.clone();
        if let Some(ended) = ended {
            self.end(&ended);
            return None;
        }
        match timeout(self.silence, self.progress.changed()).await {
            Err(_silence) => Some(Bytes::from_static(b": a miner works on it\n\n")),
            Ok(Err(_gone)) => {
                self.end(&Err(ApiFault::stopping()));
                None
            }
            Ok(Ok(())) => {
                let steps = self.progress.borrow_and_update().steps;
                if steps <= self.steps {
                    return None;
                }
                self.steps = steps;
                Some(Bytes::from(format!(": step {steps}\n\n")))
            }
        }
    }

    fn end(&mut self, ended: &Ended) {
        let mut rest = VecDeque::new();
        match (ended, &self.head) {
            (Ok(Answered::Chat(completion)), Some(head)) => {
                rest.extend(head.rest(completion).iter().map(data));
                rest.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
            }
            // Calls have no streams.
            (Ok(_), _) => (),
            (Err(fault), _) => {
                self.is_final = *fault != ApiFault::stopping();
                self.connection.asking.failed(fault);
                rest.push_back(data(&fault.json()));
            }
        }
        self.rest = Some(rest);
    }
}

/// When a request came, as far as its end does not say it yet.
fn created(progress: &Progress) -> u64 {
    match progress.ended.as_deref() {
        Some(Ok(Answered::Chat(completion))) => completion.created,
        Some(_) | None => progress.created_s,
    }
}

fn data(chunk: &Value) -> Bytes {
    Bytes::from(format!("data: {chunk}\n\n"))
}
