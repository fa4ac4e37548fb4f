//! What servers over HTTP have in common: connecting, statuses, attempts.

use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::{BackendError, SetupError};
use crate::http_client::{CONNECT_TIMEOUT, client};
use crate::text::with_causes;

/// The pauses between attempts: each is twice the one before.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(20);
/// The longest pause that a server may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// What of an error's body goes into messages.
const BODY_BYTES_MAX: usize = 512;
/// How long the body of an error, or of something small, may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// A server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) config: Config,
    client: Client,
    key: Option<Key>,
}

/// An API key, which no message shows.
#[derive(Clone)]
struct Key(String);

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key(…)")
    }
}

impl Server {
    pub(super) fn new(config: Config) -> Result<Self, SetupError> {
        let faults = config.faults();
        if !faults.is_empty() {
            return Err(SetupError::Faults(faults));
        }
        let key = config.api_key_file.as_ref().map(|path| {
            let text = std::fs::read_to_string(path);
            let first = |text: String| Key(text.lines().next().unwrap_or_default().trim().into());
            let path = path.display().to_string();
            text.map(first).map_err(|source| SetupError::Key { path, source })
        });
        Ok(Self { client: client()?, key: key.transpose()?, config })
    }

    /// The address of a path below the base.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.config.url.trim_end_matches('/'))
    }

    /// Posts JSON; gives the response once its head with status 200 is there.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Response, BackendError> {
        let request = self.client.post(self.url(path)).json(body);
        self.send(request, self.first_silence()).await
    }

    /// Posts JSON to a path of the server itself, which is beside the interface's `/v1`, for
    /// something small.
    pub(super) async fn post_beside(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<Response, BackendError> {
        let base = self.config.url.trim_end_matches('/');
        let root = base.strip_suffix("/v1").unwrap_or(base);
        let request = self.client.post(format!("{root}{path}")).json(body);
        self.send(request, CONNECT_TIMEOUT).await
    }

    /// Asks for something small.
    pub(super) async fn probe(&self, path: &str) -> Result<Response, BackendError> {
        self.send(self.client.get(self.url(path)), CONNECT_TIMEOUT).await
    }

    /// The whole body of something small.
    pub(super) async fn body(
        &self,
        mut response: Response,
        bytes_max: usize,
    ) -> Result<Vec<u8>, BackendError> {
        let url = self.config.url.clone();
        let read = async {
            let mut body = Vec::new();
            while let Some(part) = response.chunk().await.map_err(|error| with_causes(&error))? {
                if body.len().saturating_add(part.len()) > bytes_max {
                    return Err(format!("it has more than {bytes_max} bytes"));
                }
                body.extend_from_slice(&part);
            }
            Ok(body)
        };
        let patience = BODY_TIMEOUT.min(self.first_silence());
        match timeout(patience, read).await {
            Ok(read) => read.map_err(|what| BackendError::Broken { url, what }),
            Err(_) => {
                let silent_ms = patience.as_millis().try_into().unwrap_or(u64::MAX);
                Err(BackendError::Stalled { url, silent_ms })
            }
        }
    }

    async fn send(
        &self,
        request: RequestBuilder,
        patience: Duration,
    ) -> Result<Response, BackendError> {
        let url = self.config.url.clone();
        let request = match &self.key {
            Some(Key(key)) => request.bearer_auth(key),
            None => request,
        };
        let silent_ms = patience.as_millis().try_into().unwrap_or(u64::MAX);
        let response = match timeout(patience, request.send()).await {
            Err(_) => return Err(BackendError::Stalled { url, silent_ms }),
            Ok(Err(error)) => {
                return Err(BackendError::Unreachable { url, cause: with_causes(&error) });
            }
            Ok(Ok(response)) => response,
        };
        let status = response.status().as_u16();
        if status == 200 {
            return Ok(response);
        }
        let retry_after = retry_after(&response);
        let body = begin_of_body(response).await;
        Err(match status {
            429 | 503 => BackendError::Busy { url, status, body, retry_after },
            500.. => BackendError::Failed { url, status, body },
            _ => BackendError::Refused { url, status, body },
        })
    }

    pub(super) const fn first_silence(&self) -> Duration {
        Duration::from_millis(self.config.first_token_timeout_ms)
    }

    pub(super) const fn later_silence(&self) -> Duration {
        Duration::from_millis(self.config.token_timeout_ms)
    }

    /// Attempts until one succeeds, fails for good, or there were enough; the caller may cancel.
    pub(super) async fn attempts<T, F>(
        &self,
        stop: &CancellationToken,
        attempt: impl FnMut() -> F + Send,
    ) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, BackendError>> + Send,
        T: Send,
    {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(PAUSE_MIN)
            .with_max_delay(PAUSE_MAX)
            .with_max_times(self.config.attempts_max.saturating_sub(1));
        let attempts = attempt
            .retry(pauses)
            .when(BackendError::is_passing)
            .adjust(|error: &BackendError, pause| pause.map(|pause| pause.max(error.retry_after())))
            .notify(|error, pause| {
                let pause_ms = pause.as_millis();
                tracing::debug!(%error, %pause_ms, "asking the back end again");
            });
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(BackendError::Cancelled),
            result = attempts => result,
        }
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let seconds = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// The begin of an error's body, on one line.
async fn begin_of_body(mut response: Response) -> String {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes);
            if body.len() >= BODY_BYTES_MAX {
                break;
            }
        }
    };
    // What came in time is enough for a message.
    drop(timeout(BODY_TIMEOUT, read).await);
    body.truncate(BODY_BYTES_MAX);
    String::from_utf8_lossy(&body).split_whitespace().collect::<Vec<_>>().join(" ")
}
