//! One file over HTTP, resumed where it was cut off.

use std::path::Path;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

use super::client::{SILENCE_MAX, client};
use super::error::FetchError;
use super::index::{shown, unreachable};
use super::progress::{Progress, Tell};
use crate::text::with_causes;

/// Pauses after attempts that brought nothing; one that brought something begins anew.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSES_MAX: usize = 5;

/// How one attempt ended that was not the last.
enum Attempt {
    /// All of it is here.
    Done,
    /// It broke off.
    Broken(String),
}

/// Gets `bytes` bytes from `url` into the file `to`, beginning after those that it has.
pub(super) async fn download(
    url: &Url,
    to: &Path,
    bytes: u64,
    tell: &mut Tell<'_>,
) -> Result<(), FetchError> {
    let shown = shown(url);
    let client = client().map_err(|error| unreachable(&shown, error))?;
    let file = OpenOptions::new().create(true).append(true).open(to).await;
    let mut file = file.map_err(|source| FetchError::write(to, source))?;
    let mut transfer = Transfer { url, shown, to, expected: bytes, has: 0 };
    transfer.has = length(&file, to).await?;
    if transfer.has > bytes {
        transfer.begin_anew(&file).await?;
    }
    tell(Progress::Found { url: transfer.shown.clone(), bytes: transfer.has });
    let mut pauses = pauses();
    while transfer.has < bytes {
        let before = transfer.has;
        let cause = match transfer.attempt(&client, &mut file, tell).await? {
            Attempt::Done => break,
            Attempt::Broken(cause) => cause,
        };
        if transfer.has > before {
            pauses = self::pauses();
        }
        let Some(pause) = pauses.next() else {
            return Err(FetchError::Broken {
                url: transfer.shown,
                bytes: transfer.has,
                expected: bytes,
                attempts: PAUSES_MAX,
                cause,
            });
        };
        tell(Progress::Again { why: cause, pause });
        sleep(pause).await;
    }
    file.sync_all().await.map_err(|source| FetchError::write(to, source))
}

fn pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(PAUSE_MIN)
        .with_max_times(PAUSES_MAX.saturating_sub(1))
        .build()
}

async fn length(file: &File, path: &Path) -> Result<u64, FetchError> {
    let facts = file.metadata().await;
    let facts = facts.map_err(|source| FetchError::Read { path: path.to_owned(), source })?;
    Ok(facts.len())
}

/// A transfer under way.
struct Transfer<'a> {
    url: &'a Url,
    /// The address for people.
    shown: String,
    to: &'a Path,
    expected: u64,
    /// Bytes that are in the file.
    has: u64,
}

impl Transfer<'_> {
    /// Asks for what is missing and takes it, until the server breaks off.
    async fn attempt(
        &mut self,
        client: &Client,
        file: &mut File,
        tell: &mut Tell<'_>,
    ) -> Result<Attempt, FetchError> {
        let mut request = client.get(self.url.clone());
        if self.has > 0 {
            request = request.header(RANGE, format!("bytes={}-", self.has));
        }
        let mut answer = match timeout(SILENCE_MAX, request.send()).await {
            Err(_) => return Ok(Attempt::Broken("the server is silent".to_owned())),
            Ok(Err(error)) => return Ok(Attempt::Broken(with_causes(&error.without_url()))),
            Ok(Ok(answer)) => answer,
        };
        if let Some(broken) = self.look_at(&answer, file).await? {
            return Ok(broken);
        }
        loop {
            let chunk = match answer.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) if self.has == self.expected => return Ok(Attempt::Done),
                Ok(None) => return Ok(Attempt::Broken("the server ended too early".to_owned())),
                Err(error) => return Ok(Attempt::Broken(with_causes(&error.without_url()))),
            };
            let has = self.has.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
            if has > self.expected {
                let (url, expected) = (self.shown.clone(), self.expected);
                self.begin_anew(file).await?;
                return Err(FetchError::Length { url, found: has, expected });
            }
            let written = file.write_all(&chunk).await;
            written.map_err(|source| FetchError::write(self.to, source))?;
            // A file of this kind keeps the last chunk to itself, and its fault, until then.
            file.flush().await.map_err(|source| FetchError::write(self.to, source))?;
            self.has = has;
            tell(Progress::Received { bytes: has, total: self.expected });
        }
    }

    /// Looks at the head of an answer: what follows is what is missing, or the file begins anew, or
    /// there is no sense in going on.
    async fn look_at(
        &mut self,
        answer: &Response,
        file: &File,
    ) -> Result<Option<Attempt>, FetchError> {
        let status = answer.status();
        match status {
            StatusCode::OK => {
                // It does not resume.
                self.begin_anew(file).await?;
                match answer.content_length() {
                    Some(found) if found != self.expected => Err(FetchError::Length {
                        url: self.shown.clone(),
                        found,
                        expected: self.expected,
                    }),
                    Some(_) | None => Ok(None),
                }
            }
            StatusCode::PARTIAL_CONTENT if goes_on_at(answer, self.has) => Ok(None),
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if self.has > 0 => {
                self.begin_anew(file).await?;
                Ok(Some(Attempt::Broken(
                    "the server does not resume where it was asked".to_owned(),
                )))
            }
            status if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
                Ok(Some(Attempt::Broken(format!(
                    "the server answers with status {}",
                    status.as_u16()
                ))))
            }
            _ => Err(FetchError::Status { url: self.shown.clone(), status: status.as_u16() }),
        }
    }

    async fn begin_anew(&mut self, file: &File) -> Result<(), FetchError> {
        file.set_len(0).await.map_err(|source| FetchError::write(self.to, source))?;
        self.has = 0;
        Ok(())
    }
}

/// Whether an answer has the bytes from this one on.
fn goes_on_at(answer: &Response, byte: u64) -> bool {
    let range = answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {byte}-")))
}
