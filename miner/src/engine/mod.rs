//! The engine: watches for runs, decides, claims, works on them and settles.
//!
//! ```text
//! notices, poll ──▶ consider ──decide──▶ reserve a slot (journal) ──▶ worker
//! worker:  loop { resume(journal, chain) ──▶ one action ──▶ journal }
//! outbox:  sign ──▶ journal ──▶ send ──▶ included or refused ──▶ journal, in one row of nonces
//! ```
//!
//! A worker knows nothing that is not in the journal or on the chain, so a restart is no special case.

mod blobs;
mod bonding;
pub mod budget;
mod config;
mod consider;
pub(crate) mod error;
pub(crate) mod outbox;
mod parts;
pub mod receipt;
mod reload;
mod shared;
mod step;
mod sweep;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tx_outcome;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::chain::Watch;
use crate::market::{InForce as MarketInForce, Market, MarketParts};
pub use config::Config;
pub use error::EngineError;
use error::Halt;
pub use parts::Parts;
pub use reload::{PolicyNews, Reread, follow_policy};
pub(crate) use shared::Inner;
use shared::Workers;
pub use sweep::Sweeper;

/// The engine of one wallet.
#[derive(Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

impl Engine {
    /// An engine that ends when `stop` is cancelled.
    #[must_use]
    pub fn new(parts: Parts, stop: CancellationToken) -> Self {
        Self { inner: Arc::new(Inner::new(parts, stop)) }
    }

    /// What moves money that the wallet does not need, through the same outbox.
    #[must_use]
    pub fn sweeper(&self, market: MarketInForce) -> Sweeper {
        Sweeper::of(Arc::clone(&self.inner), market)
    }

    /// What serves calls of the market beside the runs, through the same outbox.
    #[must_use]
    pub fn market(&self, parts: MarketParts) -> Market {
        Market::new(Arc::clone(&self.inner), parts)
    }

    /// Finishes what the journal says was begun, then claims and works until it is stopped. Work that
    /// is under way when it stops goes on at the next start.
    ///
    /// # Errors
    /// When the journal cannot be written. Whatever else fails is tried again.
    pub async fn run(self, mut watch: Box<dyn Watch>) -> Result<(), EngineError> {
        let mut workers = Workers::new();
        let stop = self.inner.stop.clone();
        // Where this waits, being dropped is like dying there: the journal has what was begun.
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => Err(Halt::Stopped),
            outcome = self.work(&mut *watch, &mut workers) => outcome,
        };
        stop.cancel();
        while workers.join_next().await.is_some() {}
        match outcome {
            Ok(()) | Err(Halt::Stopped) => Ok(()),
            Err(Halt::Journal(source)) => Err(EngineError::Journal(source)),
        }
    }

    async fn work(&self, watch: &mut dyn Watch, workers: &mut Workers) -> Result<(), Halt> {
        let inner = &self.inner;
        inner.outbox.recover().await?;
        inner.recovered.cancel();
        inner.release_reserved().await?;
        inner.adopt().await?;
        let mut is_watching = false;
        loop {
            inner.resume_open(workers)?;
            if !is_watching {
                is_watching = inner.begin_watch(watch).await;
            }
            inner.poll(workers).await?;
            let poll = sleep(Duration::from_millis(inner.parts.config.poll_ms));
            tokio::pin!(poll);
            loop {
                tokio::select! {
                    biased;
                    Some(done) = workers.join_next() => {
                        inner.released(done)?;
                        break;
                    }
                    notice = watch.next(), if is_watching => match notice {
                        Ok(notice) => inner.notice(notice, workers).await?,
                        Err(error) => {
                            tracing::warn!(%error, "the subscription ended; listing runs instead");
                            is_watching = false;
                        }
                    },
                    () = &mut poll => break,
                }
            }
        }
    }
}
