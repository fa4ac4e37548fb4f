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
pub mod receipt;
mod reload;
pub(crate) mod settle;
mod step;
mod sweep;
#[cfg(test)]
pub(crate) mod tests;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use types::{Address, Hash, Keypair, RunStatus};

use crate::backend::Backend;
use crate::chain::{ChainError, Ledger, Notice, RunView, Runs, Watch};
use crate::journal::Journal;
use crate::journal::entry::{Entry, Outcome, Phase};
use crate::market::{InForce as MarketInForce, Market, MarketParts};
use crate::policy::Policy;
use crate::ports::{Clock, Counters, Courses, Tools};
use bonding::Bonding;
pub use config::Config;
pub use error::EngineError;
use error::Halt;
use outbox::Outbox;
pub use reload::{PolicyNews, Reread, follow_policy};
pub use sweep::Sweeper;

/// Rival claims that are remembered; the lowest run ids give way.
const RIVALS_MAX: usize = 4_096;
/// How long a claim in the pool counts as a rival: a few blocks; then it was included or dropped.
const RIVAL_MS: u64 = 10_000;

/// What an engine is made of.
#[derive(Clone)]
pub struct Parts {
    /// Settings.
    pub config: Config,
    /// The wallet that signs and earns.
    pub key: Keypair,
    /// What is claimed; a new value is used from the next decision on.
    pub policy: watch::Receiver<Arc<Policy>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The chain's runs.
    pub runs: Arc<dyn Runs>,
    /// Accounts and transactions.
    pub ledger: Arc<dyn Ledger>,
    /// Conversations.
    pub courses: Arc<dyn Courses>,
    /// Tools.
    pub tools: Arc<dyn Tools>,
    /// The model.
    pub backend: Arc<dyn Backend>,
    /// The journal of this wallet.
    pub journal: Arc<Journal>,
    /// Metrics.
    pub counters: Arc<dyn Counters>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { config, backend, .. } = self;
        formatter.debug_struct("Parts").field("config", config).field("backend", backend).finish()
    }
}

/// The engine of one wallet.
#[derive(Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// What the engine's tasks share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) parts: Parts,
    pub(crate) me: Address,
    pub(crate) outbox: Outbox,
    pub(crate) bonding: Bonding,
    pub(crate) stop: CancellationToken,
    /// Cancelled once what was signed before the start has its fate, so that more may be posted.
    pub(crate) recovered: CancellationToken,
    /// Runs with a worker: their slots.
    busy: Mutex<BTreeSet<Hash>>,
    /// Claims of others that came into the pool, and when.
    rivals: Mutex<BTreeMap<Hash, (Address, u64)>>,
}

type Workers = JoinSet<(Hash, Result<(), Halt>)>;

impl Engine {
    /// An engine that ends when `stop` is cancelled.
    #[must_use]
    pub fn new(parts: Parts, stop: CancellationToken) -> Self {
        let me = parts.key.address();
        let outbox = Outbox::new(&parts, stop.clone());
        let (bonding, busy, rivals) = (Bonding::default(), Mutex::default(), Mutex::default());
        let recovered = CancellationToken::new();
        let inner = Inner { parts, me, outbox, bonding, stop, recovered, busy, rivals };
        Self { inner: Arc::new(inner) }
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
                            tracing::warn!(%error, "the subscription ended; runs are listed");
                            is_watching = false;
                        }
                    },
                    () = &mut poll => break,
                }
            }
        }
    }
}

impl Inner {
    /// Slots that were reserved and nothing more: those runs are decided about again.
    async fn release_reserved(&self) -> Result<(), Halt> {
        for entry in self.parts.journal.open_entries()? {
            if entry.phase == Phase::Reserved {
                self.parts.journal.put(&entry.at(Phase::Over(Outcome::Gone))).await?;
            }
        }
        Ok(())
    }

    /// Open runs of this wallet that the journal does not know get an entry, so that they are ended.
    async fn adopt(&self) -> Result<(), Halt> {
        let mine = self.patiently(|| self.parts.runs.of_miner(&self.me)).await?;
        for run in mine {
            let is_open = matches!(run.status, RunStatus::Claimed | RunStatus::Running);
            if is_open && self.parts.journal.entry(&run.id)?.is_none_or(|entry| entry.is_over()) {
                tracing::warn!(run = %run.id, "the chain has a claim that the journal does not have");
                self.parts.journal.put(&Entry::reserve(run, self.parts.clock.now_ms())).await?;
            }
        }
        Ok(())
    }

    /// Gives a worker to every run that is not over and has none.
    fn resume_open(self: &Arc<Self>, workers: &mut Workers) -> Result<(), Halt> {
        for entry in self.parts.journal.open_entries()? {
            self.spawn(entry.run.id, workers);
        }
        Ok(())
    }

    /// Begins to watch after the newest block.
    async fn begin_watch(&self, watch: &mut dyn Watch) -> bool {
        let begun = match self.parts.ledger.head().await {
            Ok(head) => watch.begin(head.height).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &begun {
            tracing::warn!(%error, "no subscription; runs are listed");
        }
        begun.is_ok()
    }

    /// Looks at all pending runs, those that pay most first.
    async fn poll(self: &Arc<Self>, workers: &mut Workers) -> Result<(), Halt> {
        match self.parts.runs.pending().await {
            Ok(mut runs) => {
                runs.sort_by_key(|run| (std::cmp::Reverse(run.max_fee_micro), run.id));
                for run in runs {
                    self.consider(run, workers).await?;
                }
            }
            Err(error) => tracing::warn!(%error, "pending runs cannot be listed"),
        }
        Ok(())
    }

    async fn notice(self: &Arc<Self>, notice: Notice, workers: &mut Workers) -> Result<(), Halt> {
        match notice {
            Notice::Claim { run, miner } if miner != self.me => {
                let mut rivals = self.rivals.lock();
                if rivals.len() >= RIVALS_MAX {
                    rivals.pop_first();
                }
                rivals.insert(run, (miner, self.parts.clock.now_ms()));
            }
            Notice::Claim { .. } => (),
            Notice::Open(id) => {
                // A run that opens again has no claims any more.
                self.rivals.lock().remove(&id);
                match self.parts.runs.run(&id).await {
                    Ok(Some(run)) => self.consider(run, workers).await?,
                    Ok(None) => (),
                    Err(error) => tracing::warn!(run = %id, %error, "a run cannot be read"),
                }
            }
        }
        Ok(())
    }

    /// Starts a worker, unless the run has one.
    fn spawn(self: &Arc<Self>, id: Hash, workers: &mut Workers) {
        if !self.busy.lock().insert(id) {
            return;
        }
        let inner = Arc::clone(self);
        workers.spawn(async move {
            let work = AssertUnwindSafe(inner.work_on(id)).catch_unwind();
            let Ok(outcome) = work.await else {
                tracing::error!(run = %id, "a worker panicked; it is begun again after a pause");
                let pause = error::Pauses::new(inner.parts.config.poll_ms).pause(&inner.stop).await;
                return (id, pause);
            };
            (id, outcome)
        });
    }

    /// Frees the slot of a worker that ended.
    fn released(
        &self,
        done: Result<(Hash, Result<(), Halt>), tokio::task::JoinError>,
    ) -> Result<(), Halt> {
        let Ok((id, outcome)) = done else { return Ok(()) };
        self.busy.lock().remove(&id);
        outcome
    }

    /// Asks the node until it answers; a node that is away or strange never ends the work.
    pub(crate) async fn patiently<T, F>(&self, mut ask: impl FnMut() -> F) -> Result<T, Halt>
    where
        F: Future<Output = Result<T, ChainError>>,
    {
        error::patiently(self.parts.config.pause_ms, &self.stop, &mut ask).await
    }

    /// Who else claims a run at the moment.
    fn rival(&self, id: &Hash) -> Option<Address> {
        let (miner, seen_ms) = self.rivals.lock().get(id).copied()?;
        let age_ms = self.parts.clock.now_ms().saturating_sub(seen_ms);
        (age_ms < RIVAL_MS).then_some(miner)
    }

    /// A run as the chain has it.
    async fn view(&self, id: &Hash) -> Result<Option<RunView>, Halt> {
        self.patiently(|| self.parts.runs.run(id)).await
    }
}
