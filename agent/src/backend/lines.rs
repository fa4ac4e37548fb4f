//! Lines out of a stream of bytes: server-sent events and newline-delimited JSON.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::time::timeout;

use super::BackendError;
use crate::text::with_causes;

/// The longest line; a server sends a token or a few in each.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// The longest answer; more than the longest output in any script.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Lines of an answer, with a bound on silence.
pub(super) struct Lines<S> {
    url: String,
    stream: S,
    buffer: Vec<u8>,
    taken: usize,
    read_bytes: usize,
    /// The longest silence before the next bytes.
    silence_max: Duration,
    /// The same once the first bytes came.
    silence_max_later: Duration,
}

impl<S> Lines<S>
where
    S: Stream<Item = Result<Bytes, reqwest::Error>> + Unpin,
{
    /// Lines of `stream`, an answer of the server at `url`.
    pub(super) const fn new(url: String, stream: S, first: Duration, later: Duration) -> Self {
        Self {
            url,
            stream,
            buffer: Vec::new(),
            taken: 0,
            read_bytes: 0,
            silence_max: first,
            silence_max_later: later,
        }
    }

    /// The next line without its end; none at the end of the answer.
    pub(super) async fn next(&mut self) -> Result<Option<String>, BackendError> {
        loop {
            let rest = self.buffer.get(self.taken..).unwrap_or_default();
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.get(..length).unwrap_or_default().to_vec();
                self.taken = self.taken.saturating_add(length).saturating_add(1);
                return self.text(line).map(Some);
            }
            let rest_bytes = rest.len();
            self.buffer.drain(..self.taken);
            self.taken = 0;
            if rest_bytes > LINE_BYTES_MAX || self.read_bytes > ANSWER_BYTES_MAX {
                return Err(self.broken("it is too long".into()));
            }
            match timeout(self.silence_max, self.stream.next()).await {
                Err(_) => {
                    let silent_ms = self.silence_max.as_millis().try_into().unwrap_or(u64::MAX);
                    return Err(BackendError::Stalled { url: self.url.clone(), silent_ms });
                }
                Ok(Some(Ok(bytes))) => {
                    self.silence_max = self.silence_max_later;
                    self.read_bytes = self.read_bytes.saturating_add(bytes.len());
                    self.buffer.extend_from_slice(&bytes);
                }
                Ok(Some(Err(error))) => {
                    let cause = with_causes(&error);
                    return Err(self.broken(format!("it broke off: {cause}")));
                }
                Ok(None) if self.buffer.is_empty() => return Ok(None),
                Ok(None) => {
                    let line = std::mem::take(&mut self.buffer);
                    return self.text(line).map(Some);
                }
            }
        }
    }

    fn text(&self, mut line: Vec<u8>) -> Result<String, BackendError> {
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).map_err(|error| self.broken(format!("a line: {error}")))
    }

    pub(super) fn broken(&self, what: String) -> BackendError {
        BackendError::Broken { url: self.url.clone(), what }
    }
}
