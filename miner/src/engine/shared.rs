//! What the engine's tasks share: the runs that have a worker, and claims of others.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use types::{Address, Hash, RunStatus};

use super::Parts;
use super::bonding::Bonding;
use super::declined::Declined;
use super::error::{Halt, Pauses, patiently};
use super::looks::Looks;
use super::outbox::Outbox;
use super::queue::Queue;
use crate::chain::{ChainError, Notice, RunView, Watch};
use crate::journal::entry::{Entry, Outcome, Phase};
use crate::ports::Ending;

/// Runs whose rival claims are remembered: more than twice what one look at the waiting runs lists. While
/// there are so many, claims of other runs are no rivals.
const RIVALS_MAX: usize = 4_096;
/// How long the first claim in the pool, and all that follow it, count as rivals: a few blocks; then a
/// claim was included, or they are there only to keep others from the run.
const RIVAL_MS: u64 = 10_000;

/// Why a run is given up that this miner has by a claim which it took for lost.
const LATE_CLAIM: &str = "this miner's claim of the run was rejected, and came into a block later";

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
    pub(super) busy: Mutex<BTreeSet<Hash>>,
    /// The first claim of another miner that came into the pool since a run is open, and when.
    pub(super) rivals: Mutex<BTreeMap<Hash, (Address, u64)>>,
    /// Runs that were skipped for what their prompts ask for.
    pub(super) declined: Mutex<Declined>,
    /// The node and the back end as they were a moment ago.
    pub(super) looks: Looks,
}

pub(super) type Workers = JoinSet<(Hash, Result<(), Halt>)>;

impl Inner {
    pub(super) fn new(parts: Parts, stop: CancellationToken) -> Self {
        let me = parts.key.address();
        let outbox = Outbox::new(&parts, stop.clone());
        let (bonding, busy, rivals) = (Bonding::default(), Mutex::default(), Mutex::default());
        let (declined, looks) = (Mutex::default(), Looks::new(parts.config.poll_ms));
        let recovered = CancellationToken::new();
        Self { parts, me, outbox, bonding, stop, recovered, busy, rivals, declined, looks }
    }

    /// Slots that were reserved and nothing more: those runs are decided about again.
    pub(super) async fn release_reserved(&self) -> Result<(), Halt> {
        for entry in self.parts.journal.open_entries()? {
            if entry.phase == Phase::Reserved {
                self.parts.journal.put(&entry.at(Phase::Over(Outcome::Gone))).await?;
            }
        }
        Ok(())
    }

    /// Open runs of this wallet that the journal does not know get an entry, so that they are ended.
    pub(super) async fn adopt(&self) -> Result<(), Halt> {
        for run in self.patiently(|| self.parts.runs.open_of_miner(&self.me)).await? {
            if self.parts.journal.entry(&run.id)?.is_none_or(|entry| entry.is_over()) {
                tracing::warn!(run = %run.id, "the chain has a claim that the journal does not have");
                self.parts.journal.put(&Entry::reserve(run, self.parts.clock.now_ms())).await?;
            }
        }
        Ok(())
    }

    /// Gives up runs that this miner has by claims which it took for lost. A claim that came too late for
    /// a run is valid again when the run opens again, until another transaction takes its nonce, and
    /// everybody who has its bytes can send it. A run that nobody works on would cost the bond.
    async fn give_up_late(self: &Arc<Self>, workers: &mut Workers) -> Result<(), Halt> {
        match self.parts.runs.open_of_miner(&self.me).await {
            Ok(runs) => {
                for run in runs {
                    self.give_up(run, workers).await?;
                }
            }
            Err(error) => tracing::warn!(%error, "runs of this miner cannot be listed"),
        }
        Ok(())
    }

    async fn give_up(self: &Arc<Self>, run: RunView, workers: &mut Workers) -> Result<(), Halt> {
        let id = run.id;
        let is_open = matches!(run.status, RunStatus::Claimed | RunStatus::Running);
        if !is_open || run.miner != Some(self.me) || !self.is_lost(&id)? {
            return Ok(());
        }
        tracing::warn!(run = %id, "a claim that was rejected is in a block; giving the run up");
        let ending = Ending::without_answer(RunStatus::Failed, LATE_CLAIM);
        let entry = Entry::reserve(run, self.parts.clock.now_ms()).at(Phase::Ending(ending));
        self.parts.journal.put(&entry).await?;
        self.spawn(id, workers);
        Ok(())
    }

    /// Whether the journal has a run whose claim was lost, and nobody works on it.
    fn is_lost(&self, id: &Hash) -> Result<bool, Halt> {
        if self.busy.lock().contains(id) {
            return Ok(false);
        }
        let entry = self.parts.journal.entry(id)?;
        Ok(entry.is_some_and(|entry| entry.is_over() && !entry.stands_against_claim()))
    }

    /// Gives a worker to every run that is not over and has none.
    pub(super) fn resume_open(self: &Arc<Self>, workers: &mut Workers) -> Result<(), Halt> {
        for entry in self.parts.journal.open_entries()? {
            self.spawn(entry.run.id, workers);
        }
        Ok(())
    }

    /// Begins to watch after the newest block.
    pub(super) async fn begin_watch(&self, watch: &mut dyn Watch) -> bool {
        let begun = match self.parts.ledger.head().await {
            Ok(head) => watch.begin(head.height).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &begun {
            tracing::warn!(%error, "no subscription; listing runs instead");
        }
        begun.is_ok()
    }

    /// Lists all pending runs, which are to be decided about, and looks at what this miner has.
    pub(super) async fn poll(
        self: &Arc<Self>,
        queue: &mut Queue,
        workers: &mut Workers,
    ) -> Result<(), Halt> {
        self.give_up_late(workers).await?;
        if let Err(error) = self.own_stake().await? {
            tracing::warn!(%error, "the bond cannot be read");
        }
        match self.parts.runs.pending().await {
            Ok(runs) => {
                let pending = runs.iter().map(|run| run.id).collect();
                self.forget_rivals(&pending);
                let mut declined = self.declined.lock();
                declined.tidy(&pending);
                queue.clear();
                for run in runs {
                    let rank = declined.rank(&run.submitter);
                    queue.add(run, rank);
                }
            }
            Err(error) => tracing::warn!(%error, "pending runs cannot be listed"),
        }
        Ok(())
    }

    /// Decides about the run that is next.
    pub(super) async fn consider_next(
        self: &Arc<Self>,
        queue: &mut Queue,
        workers: &mut Workers,
    ) -> Result<(), Halt> {
        let next = queue.next(|submitter| self.declined.lock().rank(submitter));
        match next {
            Some(run) => self.consider(run, workers).await,
            None => Ok(()),
        }
    }

    pub(super) async fn notice(
        self: &Arc<Self>,
        notice: Notice,
        queue: &mut Queue,
        workers: &mut Workers,
    ) -> Result<(), Halt> {
        match notice {
            Notice::Claim { run, miner } if miner != self.me => {
                let mut rivals = self.rivals.lock();
                if rivals.len() < RIVALS_MAX {
                    rivals.entry(run).or_insert_with(|| (miner, self.parts.clock.now_ms()));
                }
            }
            Notice::Claimed { run, miner } if miner == self.me && self.is_lost(&run)? => {
                match self.parts.runs.run(&run).await {
                    Ok(Some(run)) => self.give_up(run, workers).await?,
                    Ok(None) => (),
                    Err(error) => tracing::warn!(%run, %error, "a run cannot be read"),
                }
            }
            Notice::Claim { .. } | Notice::Claimed { .. } => (),
            Notice::Open(id) => {
                // A run that opens again has no claims any more.
                self.rivals.lock().remove(&id);
                match self.parts.runs.run(&id).await {
                    Ok(Some(run)) => {
                        let rank = self.declined.lock().rank(&run.submitter);
                        queue.add(run, rank);
                    }
                    Ok(None) => (),
                    Err(error) => tracing::warn!(run = %id, %error, "a run cannot be read"),
                }
            }
        }
        Ok(())
    }

    /// Starts a worker, unless the run has one.
    pub(super) fn spawn(self: &Arc<Self>, id: Hash, workers: &mut Workers) {
        if !self.busy.lock().insert(id) {
            return;
        }
        let inner = Arc::clone(self);
        workers.spawn(async move {
            let work = AssertUnwindSafe(inner.work_on(id)).catch_unwind();
            let Ok(outcome) = work.await else {
                tracing::error!(run = %id, "a worker panicked; restarting it after a pause");
                let pause = Pauses::new(inner.parts.config.poll_ms).pause(&inner.stop).await;
                return (id, pause);
            };
            (id, outcome)
        });
    }

    /// Frees the slot of a worker that ended.
    pub(super) fn released(
        &self,
        done: Result<(Hash, Result<(), Halt>), tokio::task::JoinError>,
    ) -> Result<(), Halt> {
        let Ok((id, outcome)) = done else { return Ok(()) };
        self.busy.lock().remove(&id);
        // Its work may have changed the balance, or found the model's server down.
        self.looks.forget();
        outcome
    }

    /// Asks the node until it answers; a node that is away or strange never ends the work.
    pub(crate) async fn patiently<T, F>(&self, mut ask: impl FnMut() -> F) -> Result<T, Halt>
    where
        F: Future<Output = Result<T, ChainError>>,
    {
        patiently(self.parts.config.pause_ms, &self.stop, &mut ask).await
    }

    /// Forgets the claims of runs that wait for no miner any more.
    fn forget_rivals(&self, pending: &BTreeSet<Hash>) {
        let now_ms = self.parts.clock.now_ms();
        let is_new = |seen_ms: u64| now_ms.saturating_sub(seen_ms) < RIVAL_MS;
        self.rivals.lock().retain(|run, (_, seen_ms)| pending.contains(run) || is_new(*seen_ms));
    }

    /// Who else claims a run at the moment.
    pub(super) fn rival(&self, id: &Hash) -> Option<Address> {
        let (miner, seen_ms) = self.rivals.lock().get(id).copied()?;
        let age_ms = self.parts.clock.now_ms().saturating_sub(seen_ms);
        (age_ms < RIVAL_MS).then_some(miner)
    }

    /// A run as the chain has it.
    pub(super) async fn view(&self, id: &Hash) -> Result<Option<RunView>, Halt> {
        self.patiently(|| self.parts.runs.run(id)).await
    }
}
