//! A back end whose answers are counted.

use std::sync::Arc;
use std::time::Instant;

use agent::backend::{Backend, BackendError, Health, Manifest};
use agent::messages::{Iteration, Output};
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::ports::{Counters, Event};

/// A back end whose answers are counted.
#[derive(Debug)]
pub struct Measured {
    inner: Arc<dyn Backend>,
    counters: Arc<dyn Counters>,
}

impl Measured {
    /// The answers of `inner` are told to `counters`.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, counters: Arc<dyn Counters>) -> Self {
        Self { inner, counters }
    }
}

#[async_trait]
impl Backend for Measured {
    fn manifest(&self) -> &Manifest {
        self.inner.manifest()
    }

    async fn health(&self) -> Health {
        self.inner.health().await
    }

    async fn fits(&self, iteration: &Iteration<'_>) -> Result<u64, BackendError> {
        self.inner.fits(iteration).await
    }

    async fn infer(
        &self,
        iteration: &Iteration<'_>,
        stop: &CancellationToken,
    ) -> Result<Output, BackendError> {
        let began = Instant::now();
        let output = self.inner.infer(iteration, stop).await?;
        self.counters.count(Event::Answered {
            prompt_tokens: output.prompt_tokens.into(),
            output_tokens: output.output_tokens.into(),
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        Ok(output)
    }
}
