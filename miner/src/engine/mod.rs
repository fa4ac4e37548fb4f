//! The engine: watches for runs, decides, claims, works on them and settles.
//!
//! ```text
//! notices, poll ──▶ queue ──▶ consider ──decide──▶ reserve a slot (journal) ──▶ worker
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
mod declined;
pub(crate) mod error;
mod looks;
pub(crate) mod outbox;
mod parts;
mod queue;
pub mod receipt;
mod reload;
mod shared;
mod step;
mod sweep;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tx_outcome;
mod worker;

use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::chain::Watch;
use crate::market::{InForce as MarketInForce, Market, MarketParts};
pub use config::Config;
pub use error::EngineError;
use error::Halt;
pub use parts::Parts;
use queue::Queue;
pub use reload::{PolicyNews, Reread, follow_policy};
pub(crate) use shared::Inner;
use shared::Workers;
pub use sweep::Sweeper;

/// How long the runs of one list are decided about, before they are listed again.
const LISTED_TIME_MAX: Duration = Duration::from_secs(30);
/// So many notices are served before the next run is decided about.
const NOTICES_TOGETHER: u32 = 64;

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
        let mut queue = Queue::default();
        loop {
            inner.resume_open(workers)?;
            if !is_watching {
                is_watching = inner.begin_watch(watch).await;
            }
            inner.poll(&mut queue, workers).await?;
            let listed = Instant::now();
            let poll = sleep(Duration::from_millis(inner.parts.config.poll_ms));
            tokio::pin!(poll);
            let mut notices = 0_u32;
            loop {
                let has_time = !queue.is_empty() && listed.elapsed() < LISTED_TIME_MAX;
                tokio::select! {
                    biased;
                    Some(done) = workers.join_next() => {
                        inner.released(done)?;
                        break;
                    }
                    notice = watch.next(), if is_watching && notices < NOTICES_TOGETHER => {
                        match notice {
                            Ok(notice) => inner.notice(notice, &mut queue, workers).await?,
                            Err(error) => {
                                tracing::warn!(%error, "the subscription ended; listing runs instead");
                                is_watching = false;
                            }
                        }
                        // Without anything that waits, nothing else is held up.
                        notices = if queue.is_empty() { 0 } else { notices.saturating_add(1) };
                    }
                    () = &mut poll, if !has_time => break,
                    () = ready(()), if !queue.is_empty() => {
                        inner.consider_next(&mut queue, workers).await?;
                        notices = 0;
                    }
                }
            }
        }
    }
}
