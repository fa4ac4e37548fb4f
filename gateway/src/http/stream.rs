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
use tokio::time::{Instant, timeout, timeout_at};

use super::connection::Connection;
use crate::key_turns::Turn;
use crate::keys::KeyId;
use crate::openai::ApiFault;
use crate::openai::chunks::Head;
use crate::operate::One;
use crate::request_service::{Answered, Ended, Progress};

/// The longest silence.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The shortest silence, however short the client waits: comments must not keep the gateway busy.
const SILENCE_MIN: Duration = Duration::from_millis(500);

/// How long a stream may be silent whose client waits so long for a byte, if it says so.
fn silence(read_timeout: Option<Duration>) -> Duration {
    read_timeout.map_or(SILENCE_MAX, |time| (time / 2).clamp(SILENCE_MIN, SILENCE_MAX))
}

/// What a stream may say while somebody works on its answer.
struct Pulse {
    progress: watch::Receiver<Progress>,
    /// The longest silence.
    silence: Duration,
    /// When something was said last.
    quiet_since: Instant,
    steps: u64,
}

impl Pulse {
    /// A comment on a new step, or after too long a silence; none if the work has ended, or nobody works on
    /// it any more. News that are told to nobody do not end the silence.
    async fn comment(&mut self) -> Option<Bytes> {
        while self.progress.borrow().ended.is_none() {
            match timeout_at(self.quiet_since + self.silence, self.progress.changed()).await {
                Err(_silence) => return Some(Bytes::from_static(b": a miner works on it\n\n")),
                Ok(Err(_gone)) => return None,
                Ok(Ok(())) => {
                    let steps = self.progress.borrow_and_update().steps;
                    if steps > self.steps {
                        self.steps = steps;
                        return Some(Bytes::from(format!(": step {steps}\n\n")));
                    }
                }
            }
        }
        None
    }
}

/// How a stream begins.
pub(super) struct Opening {
    /// Whose request it is.
    pub(super) key: KeyId,
    pub(super) model: String,
    pub(super) includes_usage: bool,
    /// How long the client waits for a byte, if it says so.
    pub(super) read_timeout: Option<Duration>,
}

struct State {
    key: KeyId,
    head: Option<Head>,
    pulse: Pulse,
    connection: Connection,
    model: String,
    includes_usage: bool,
    rest: Option<VecDeque<Bytes>>,
    /// The turn in which the answer is sent, once it has come.
    turn: Option<Turn>,
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
    let Opening { key, model, includes_usage, read_timeout } = opening;
    let silence = silence(read_timeout);
    let one = connection.streams();
    let state = State {
        key,
        head: None,
        pulse: Pulse { progress, silence, quiet_since: Instant::now(), steps: 0 },
        connection,
        model,
        includes_usage,
        rest: None,
        turn: None,
        is_final: true,
        _one: one,
    };
    let events = stream::unfold(state, |mut state| async move {
        let bytes = state.next().await?;
        state.pulse.quiet_since = Instant::now();
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
        let run = self.pulse.progress.borrow().run;
        let id = run.map_or_else(|| "chatcmpl-ombra".to_owned(), |run| format!("chatcmpl-{run}"));
        let created = created(&self.pulse.progress.borrow());
        let (model, includes_usage) = (self.model.clone(), self.includes_usage);
        let head = Head { id, created, model, includes_usage };
        let first = data(&head.first());
        self.head = Some(head);
        first
    }

    /// Waits for news: a comment, or none where there is something better to say.
    async fn wait(&mut self) -> Option<Bytes> {
        if let Some(comment) = self.pulse.comment().await {
            return Some(comment);
        }
        let ended = self.pulse.progress.borrow().ended.clone();
        if ended.as_deref().is_some_and(Result::is_ok) {
            match timeout(self.pulse.silence, self.connection.turn(self.key)).await {
                Ok(turn) => self.turn = turn,
                Err(_silence) => {
                    return Some(Bytes::from_static(b": other answers of the key come first\n\n"));
                }
            }
        }
        match ended {
            Some(ended) => self.end(&ended),
            None => self.end(&Err(ApiFault::stopping())),
        }
        None
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

#[cfg(test)]
mod tests {
    //! What is heard while a miner works.

    use tokio::time::interval;

    use super::*;

    #[test]
    fn a_silence_is_half_of_what_a_client_waits_within_bounds() {
        for (seconds, expected) in [(0.01, 0.5), (1.0, 0.5), (5.0, 2.5), (600.0, 10.0)] {
            let told = silence(Some(Duration::from_secs_f64(seconds)));
            assert_eq!(Duration::from_secs_f64(expected), told, "{seconds}");
        }
        assert_eq!(SILENCE_MAX, silence(None));
    }

    #[tokio::test]
    async fn a_silence_is_broken_though_the_run_is_looked_at_more_often() {
        let (tell, progress) = watch::channel(Progress::default());
        let silence = Duration::from_millis(50);
        let mut pulse = Pulse { progress, silence, quiet_since: Instant::now(), steps: 0 };
        let looks = async {
            let mut often = interval(silence / 10);
            loop {
                often.tick().await;
                tell.send_modify(|it| it.is_claimed = true);
            }
        };
        let heard = async { timeout(Duration::from_secs(20), pulse.comment()).await };
        let comment = tokio::select! {
            comment = heard => comment.expect("it is silent"),
            () = looks => unreachable!("it looks for ever"),
        };
        assert_eq!(comment.as_deref(), Some(b": a miner works on it\n\n".as_slice()));
        tell.send_modify(|it| it.steps = 2);
        assert_eq!(pulse.comment().await.as_deref(), Some(b": step 2\n\n".as_slice()));
    }
}
