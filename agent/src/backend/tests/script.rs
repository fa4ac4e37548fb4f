//! A real HTTP server that answers from a script.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Response, Uri};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// One answer.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// A status, a `Retry-After` in seconds if not empty, and a body.
    Status(u16, &'static str, &'static str),
    /// A whole body with status 200.
    Whole(String),
    /// A body that breaks off after this text.
    Cut(String),
    /// A body that goes silent after this text.
    Stall(String),
    /// No head, ever.
    Silence,
}

#[derive(Debug, Default)]
struct Inner {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<(String, Value)>>,
}

/// The server; it ends with the test's runtime.
#[derive(Clone, Debug)]
pub(super) struct Script {
    inner: Arc<Inner>,
    pub(super) url: String,
}

impl Script {
    /// Starts one with its answers, the first one first.
    pub(super) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let inner = Arc::new(Inner::default());
        inner.replies.lock().extend(replies);
        let app = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { inner, url }
    }

    pub(super) fn then(&self, reply: Reply) {
        self.inner.replies.lock().push_back(reply);
    }

    /// Paths and bodies of the requests so far.
    pub(super) fn requests(&self) -> Vec<(String, Value)> {
        self.inner.requests.lock().clone()
    }

    pub(super) fn last(&self) -> Value {
        self.requests().pop().unwrap().1
    }
}

async fn answer(State(inner): State<Arc<Inner>>, uri: Uri, body: Bytes) -> Response<Body> {
    let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
    inner.requests.lock().push((uri.path().to_owned(), json));
    let reply = inner.replies.lock().pop_front();
    let text = |text: String| stream::once(async { Ok::<_, Infallible>(Bytes::from(text)) });
    let respond = |status, body| Response::builder().status(status).body(body).unwrap();
    match reply {
        None => respond(418, Body::from("the script is at its end")),
        Some(Reply::Status(status, retry_after, body)) => {
            let mut response = respond(status, Body::from(body));
            if !retry_after.is_empty() {
                response.headers_mut().insert("retry-after", retry_after.parse().unwrap());
            }
            response
        }
        Some(Reply::Whole(body)) => respond(200, Body::from_stream(text(body))),
        Some(Reply::Cut(begin)) => {
            let begin = stream::iter([Ok(Bytes::from(begin))]);
            let end = stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("cut"))
            });
            respond(200, Body::from_stream(begin.chain(end)))
        }
        Some(Reply::Stall(begin)) => {
            respond(200, Body::from_stream(text(begin).chain(stream::pending())))
        }
        Some(Reply::Silence) => std::future::pending().await,
    }
}

/// Server-sent events of parts.
pub(super) fn events(parts: &[Value]) -> String {
    parts.iter().map(|part| format!("data: {part}\n\n")).collect()
}

/// A whole streamed answer with a text.
pub(super) fn says(text: &str, tokens: u32, prompt_tokens: u32) -> String {
    let begin = events(&[
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": text}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        usage(tokens, prompt_tokens),
    ]);
    begin + "data: [DONE]\n\n"
}

pub(super) fn usage(tokens: u32, prompt_tokens: u32) -> Value {
    json!({"choices": [], "usage": {"completion_tokens": tokens, "prompt_tokens": prompt_tokens}})
}
