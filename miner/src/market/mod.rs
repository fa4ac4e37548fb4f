//! The market: serves the calls for which this miner is drawn, and keeps what it offers.
//!
//! ```text
//! notices, poll ──▶ drawn? ──▶ journal: assigned ──▶ worker
//! worker:  loop { next(journal, chain) ──▶ one step ──▶ journal }
//! execute: agent, library ──▶ executors, on a thread ──▶ receipt ──▶ journal: answer and salt
//! offers:  configuration, tests ──▶ bond, offers
//! ```
//!
//! Invariants: an answer is written with its salt before its commitment is signed, and never changes
//! after that. Commitments, reveals, bonds and offers go through the outbox of the engine, in the row
//! of nonces of the runs. A worker knows nothing that is not in the journal or on the chain.
//!
//! Entry points: [`Market::run`], [`next::next`]. Rules: docs/market.md section 6, docs/miner.md.

mod agents;
mod config;
mod execute;
mod fitness;
pub mod next;
mod offers;
mod receipts;
mod reload;
mod serve;
mod shared;
mod slots;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use types::Hash;

pub use agents::{AgentCache, Unfound};
pub use config::{InForce, MarketConfig, OfferConfig};
pub use fitness::Fitness;
pub use receipts::{RECEIPTS, Receipts, Times};
pub use reload::MarketSettings;
pub use shared::MarketParts;
use shared::{Key, Shared};
use slots::Slots;

use crate::chain::{CallView, CallWatch};
use crate::engine::error::{Halt, Pauses};
use crate::engine::{EngineError, Inner};
use crate::journal::call::{CallEntry, CallPhase};
use crate::ports::Event;

/// Serves the calls of one wallet.
#[derive(Debug)]
pub struct Market {
    shared: Arc<Shared>,
}

/// Calls are looked at at least so often: a tenth of the time that members have to reveal.
const POLL_MAX: Duration = Duration::from_secs(2);

/// How many of the newest calls are looked at after a start: few, and many where the miner was away for
/// long.
const MISSED_LOOKS: [usize; 2] = [100, 2_000];

/// How often it is looked whether receipts take too much of the disk.
const RECEIPTS_PAUSE: Duration = Duration::from_secs(300);

type Workers = JoinSet<(Key, Result<(), Halt>)>;

impl Market {
    pub(crate) fn new(inner: Arc<Inner>, market: MarketParts) -> Self {
        let (slots, busy) = (Slots::default(), Mutex::default());
        Self { shared: Arc::new(Shared { inner, market, slots, busy }) }
    }

    /// Serves calls until the engine is stopped; begins once the engine knows what became of what was
    /// signed before. Calls that are under way when it stops go on at the next start.
    ///
    /// # Errors
    /// When the journal cannot be written. Whatever else fails is tried again.
    pub async fn run(self, mut watch: Box<dyn CallWatch>) -> Result<(), EngineError> {
        let shared = &self.shared;
        let stop = shared.inner.stop.clone();
        let mut workers = Workers::new();
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => Err(Halt::Stopped),
            outcome = async {
                shared.inner.recovered.cancelled().await;
                tokio::select! {
                    outcome = shared.look(&mut *watch, &mut workers) => outcome,
                    outcome = shared.keep_offers() => outcome,
                }
            } => outcome,
        };
        // Nobody works on without the journal.
        stop.cancel();
        while workers.join_next().await.is_some() {}
        match outcome {
            Ok(()) | Err(Halt::Stopped) => Ok(()),
            Err(Halt::Journal(source)) => Err(EngineError::Journal(source)),
        }
    }
}

impl Shared {
    /// Looks for calls for which this miner is drawn, and gives each a worker.
    async fn look(
        self: &Arc<Self>,
        watch: &mut dyn CallWatch,
        workers: &mut Workers,
    ) -> Result<(), Halt> {
        let (mut is_watching, mut looks_back) = (false, true);
        let mut receipts_looked: Option<Instant> = None;
        loop {
            if receipts_looked.is_none_or(|looked| looked.elapsed() >= RECEIPTS_PAUSE) {
                self.make_room().await?;
                receipts_looked = Some(Instant::now());
            }
            for entry in self.inner.parts.journal.open_calls()? {
                self.spawn((entry.call, entry.round), workers);
            }
            if !self.is_open() && self.busy.lock().is_empty() {
                // There is nothing to do until somebody configures the market.
                is_watching = false;
                let mut config = self.market.config.clone();
                if config.wait_for(Option::is_some).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            if !is_watching {
                is_watching = self.begin_watch(watch).await;
            }
            // What the journal knows before it takes on the open calls tells which were missed. They are
            // written down after those that can still be answered.
            let missed =
                if std::mem::take(&mut looks_back) { self.missed().await? } else { Vec::new() };
            self.poll(workers).await?;
            for call in missed {
                self.take_on(&call, workers).await?;
            }
            let poll = sleep(self.poll_pause());
            tokio::pin!(poll);
            loop {
                tokio::select! {
                    biased;
                    Some(done) = workers.join_next() => {
                        self.released(done)?;
                        break;
                    }
                    notice = watch.next(), if is_watching => match notice {
                        Ok(call) => self.notice(&call, workers).await?,
                        Err(error) => {
                            tracing::warn!(%error, "the subscription to calls ended; listing them");
                            is_watching = false;
                        }
                    },
                    () = &mut poll => break,
                }
            }
        }
    }

    /// The time between two looks for calls. Without a subscription a reveal has to be sent in time, too.
    fn poll_pause(&self) -> Duration {
        Duration::from_millis(self.inner.parts.config.poll_ms).min(POLL_MAX)
    }

    /// Whether calls are taken on.
    fn is_open(&self) -> bool {
        self.market.config.borrow().is_some()
    }

    /// Begins to watch after the newest block.
    async fn begin_watch(&self, watch: &mut dyn CallWatch) -> bool {
        let begun = match self.inner.parts.ledger.head().await {
            Ok(head) => watch.begin(head.height).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &begun {
            tracing::debug!(%error, "no subscription to calls; listing them");
        }
        begun.is_ok()
    }

    /// Looks at all calls in which this miner has something to do.
    async fn poll(self: &Arc<Self>, workers: &mut Workers) -> Result<(), Halt> {
        if !self.is_open() {
            return Ok(());
        }
        match self.market.calls.assigned(&self.inner.me).await {
            Ok(calls) => {
                for call in calls {
                    self.take_on(&call, workers).await?;
                }
            }
            Err(error) => tracing::warn!(%error, "calls cannot be listed"),
        }
        Ok(())
    }

    /// Something happened to a call: its worker looks, or gets to exist.
    async fn notice(self: &Arc<Self>, call: &Hash, workers: &mut Workers) -> Result<(), Halt> {
        {
            let busy = self.busy.lock();
            let mut has_worker = false;
            for (_, worker) in busy.range((*call, 0)..=(*call, u8::MAX)) {
                worker.notify_one();
                has_worker = true;
            }
            if has_worker {
                return Ok(());
            }
        }
        if self.is_open() { self.take_on(call, workers).await } else { Ok(()) }
    }

    /// Writes a call down for which this miner is drawn, unless the journal has it, and gives it a worker.
    async fn take_on(self: &Arc<Self>, call: &Hash, workers: &mut Workers) -> Result<(), Halt> {
        if !self.inner.parts.journal.rounds_of(call)?.is_empty() {
            return Ok(());
        }
        let view = match self.market.calls.call(call).await {
            Ok(Some(view)) => view,
            Ok(None) => return Ok(()),
            Err(error) => {
                tracing::warn!(%call, %error, "a call cannot be read");
                return Ok(());
            }
        };
        let Some(round) = view.round_of(&self.inner.me) else { return Ok(()) };
        let entry = assigned(&view, round, self.inner.parts.clock.now_ms());
        tracing::info!(%call, round, agent = %view.agent, "drawn");
        self.inner.parts.journal.put_call(&entry).await?;
        self.inner.parts.counters.count(Event::Drawn);
        self.spawn((*call, round), workers);
        Ok(())
    }

    /// The calls that came and went while this miner was away, and others that the journal does not know:
    /// its books need what they cost. A journal that knows none of the newest calls is not that of this
    /// miner's work so far, and begins with what comes.
    async fn missed(&self) -> Result<Vec<Hash>, Halt> {
        for count in MISSED_LOOKS {
            let drawn = match self.market.calls.drawn(&self.inner.me, count).await {
                Ok(drawn) => drawn,
                Err(error) => {
                    tracing::debug!(%error, "cannot find out which calls were missed");
                    return Ok(Vec::new());
                }
            };
            let mut missed = Vec::new();
            for call in &drawn {
                if self.inner.parts.journal.rounds_of(call)?.is_empty() {
                    missed.push(*call);
                }
            }
            if missed.len() < drawn.len() {
                return Ok(missed);
            }
        }
        Ok(Vec::new())
    }

    /// Starts a worker, unless the call has one.
    fn spawn(self: &Arc<Self>, key: Key, workers: &mut Workers) {
        let moved = Arc::new(Notify::new());
        {
            let mut busy = self.busy.lock();
            if busy.contains_key(&key) {
                return;
            }
            busy.insert(key, Arc::clone(&moved));
        }
        let shared = Arc::clone(self);
        workers.spawn(async move {
            let (call, round) = key;
            let work = AssertUnwindSafe(shared.serve(&call, round, &moved)).catch_unwind();
            let Ok(outcome) = work.await else {
                tracing::error!(%call, "a worker panicked; restarting it after a pause");
                let pause_ms = shared.inner.parts.config.poll_ms;
                return (key, Pauses::new(pause_ms).pause(&shared.inner.stop).await);
            };
            (key, outcome)
        });
    }

    /// Forgets a worker that ended.
    fn released(
        &self,
        done: Result<(Key, Result<(), Halt>), tokio::task::JoinError>,
    ) -> Result<(), Halt> {
        let Ok((key, outcome)) = done else { return Ok(()) };
        self.busy.lock().remove(&key);
        outcome
    }
}

/// A call about which nothing is decided.
fn assigned(view: &CallView, round: u8, now_ms: u64) -> CallEntry {
    CallEntry {
        call: view.id,
        round,
        agent: view.agent,
        version: view.version.clone(),
        requester: view.requester,
        budget_micro: view.budget_micro,
        phase: CallPhase::Assigned,
        said: None,
        executor: None,
        standing: None,
        assigned_ms: now_ms,
        attempts: 0,
    }
}
