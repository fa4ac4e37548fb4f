//! Leaves a failing back end alone: after some failures in a row it is not asked for a while.
//!
//! A question may be what fails, as where it is of a form that the model's template refuses. Whoever
//! pays for such questions must not rest the miner for others. So a failure counts only if a harmless
//! question, always the same, fails as well.
//!
//! Only an answer ends a row of failures, and only a run that was claimed asks. So each time after the
//! rest the back end counts as ready: the next run tries it, and what fails then makes the rest longer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Backend, BackendError, Health, Manifest};
use crate::clock::Clock;
use crate::messages::{Constraint, Iteration, Message, Output, Role};

/// Failures in a row after which a back end is left alone.
const FAILURES_MAX: u32 = 3;
/// For how long, and for how long nothing is claimed after any failure; doubled with each failure after
/// those.
const REST_MS_MIN: u64 = 5_000;
const REST_MS_MAX: u64 = 300_000;

/// The harmless question, and the most tokens of its answer.
const HARMLESS: &str = "Say OK.";
const HARMLESS_TOKENS_MAX: u32 = 8;
/// How long its answer may take: it may have to wait for answers to others.
const HARMLESS_PATIENCE: Duration = Duration::from_secs(60);

/// What is known about a back end's failures. Pure; the time is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    failures: u32,
    last: String,
    last_ms: u64,
    open_until_ms: u64,
    unfit: bool,
}

impl Record {
    /// Writes an outcome down.
    pub fn note(&mut self, outcome: &Result<(), BackendError>, now_ms: u64) {
        match outcome {
            Ok(()) => *self = Self { unfit: self.unfit, ..Self::default() },
            Err(error) if error.is_of_backend() => {
                self.failures = self.failures.saturating_add(1);
                self.unfit |= error.is_unfit();
                self.last = error.to_string();
                self.last_ms = now_ms;
                if let Some(beyond) = self.failures.checked_sub(FAILURES_MAX) {
                    let rest = REST_MS_MIN.saturating_mul(1 << beyond.min(16)).min(REST_MS_MAX);
                    self.open_until_ms = now_ms.saturating_add(rest);
                }
            }
            Err(_) => (),
        }
    }

    /// Whether it may be asked.
    ///
    /// # Errors
    /// When it is to be left alone, and until when.
    pub fn allow(&self, now_ms: u64) -> Result<(), BackendError> {
        let cause = self.last.clone();
        if self.unfit {
            return Err(BackendError::Model(cause));
        }
        match self.open_until_ms.checked_sub(now_ms) {
            Some(left_ms) if left_ms > 0 => Err(BackendError::Open { left_ms, cause }),
            Some(_) | None => Ok(()),
        }
    }

    /// What that means for claiming.
    #[must_use]
    pub fn health(&self, now_ms: u64) -> Health {
        match self.allow(now_ms) {
            Err(error) => Health::Down(error.to_string()),
            Ok(()) if self.is_resting(now_ms) => Health::Degraded(self.last.clone()),
            Ok(()) => Health::Ready,
        }
    }

    /// Whether the last failure is too fresh for another run to try.
    const fn is_resting(&self, now_ms: u64) -> bool {
        self.failures > 0 && now_ms < self.last_ms.saturating_add(REST_MS_MIN)
    }
}

/// A back end that is left alone while it fails.
#[derive(Debug)]
pub struct Guarded {
    inner: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    record: Mutex<Record>,
    /// Held while the harmless question is asked, so that it is asked once at a time.
    probing: tokio::sync::Mutex<()>,
}

impl Guarded {
    /// Watches a back end.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, clock: Arc<dyn Clock>) -> Self {
        Self { inner, clock, record: Mutex::default(), probing: tokio::sync::Mutex::default() }
    }

    /// Writes a failure down, unless the back end answers the harmless question: then the failure is
    /// the other question's own.
    async fn failed(&self, failure: BackendError, stop: &CancellationToken) {
        let _alone = self.probing.lock().await;
        if let Err(error) = self.record.lock().allow(self.clock.now_ms()) {
            tracing::debug!(%error, "the back end is already paused");
            return;
        }
        let outcome = match tokio::time::timeout(HARMLESS_PATIENCE, self.probe(stop)).await {
            Ok(Ok(_)) => {
                tracing::warn!(%failure, "the back end fails on one question and answers another");
                Ok(())
            }
            Ok(Err(BackendError::Cancelled)) => return,
            Ok(Err(error)) if error.is_of_backend() => Err(error),
            Ok(Err(error)) => Err(BackendError::Model(error.to_string())),
            Err(_late) => Err(BackendError::Model(format!(
                "no answer to a harmless question within {} s, after: {failure}",
                HARMLESS_PATIENCE.as_secs()
            ))),
        };
        self.record.lock().note(&outcome, self.clock.now_ms());
    }

    async fn probe(&self, stop: &CancellationToken) -> Result<Output, BackendError> {
        let messages = [Message {
            role: Role::User,
            text: HARMLESS.to_owned(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        }];
        let question = Iteration {
            messages: &messages,
            tools: &[],
            constraint: &Constraint::Free,
            thinks: false,
            so_far: "",
            stops: &[],
            output_tokens_max: HARMLESS_TOKENS_MAX,
        };
        self.inner.infer(&question, stop).await
    }
}

#[async_trait]
impl Backend for Guarded {
    fn manifest(&self) -> &Manifest {
        self.inner.manifest()
    }

    async fn health(&self) -> Health {
        let known = self.record.lock().health(self.clock.now_ms());
        match known {
            Health::Down(_) => known,
            Health::Ready | Health::Degraded(_) => match self.inner.health().await {
                Health::Ready => known,
                worse @ (Health::Degraded(_) | Health::Down(_)) => worse,
            },
        }
    }

    async fn fits(&self, iteration: &Iteration<'_>) -> Result<u64, BackendError> {
        self.inner.fits(iteration).await
    }

    async fn infer(
        &self,
        iteration: &Iteration<'_>,
        stop: &CancellationToken,
    ) -> Result<Output, BackendError> {
        self.record.lock().allow(self.clock.now_ms())?;
        let outcome = self.inner.infer(iteration, stop).await;
        match &outcome {
            Ok(_) => self.record.lock().note(&Ok(()), self.clock.now_ms()),
            Err(error) if error.is_of_backend() => self.failed(error.clone(), stop).await,
            Err(_) => (),
        }
        outcome
    }
}
