//! Executing an agent, and fixing what is answered.
//!
//! Whatever goes wrong on this side is answered with `unable`: it costs nothing unless somebody appeals
//! and no group is found, and then no more than silence does. So it is said as long as the chain takes
//! commitments, and never instead of an answer that is there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::executor::{Agent, Context, Executed, Executors, Library, Stop, Task};
use tokio::time::{sleep, timeout};
use types::Hash;
use types::agent::ExecutorId;

use super::agents::Unfound;
use super::serve::payload;
use super::slots::Slot;
use super::{MarketConfig, Shared, Times};
use crate::chain::CallView;
use crate::engine::error::Halt;
use crate::journal::call::{CallEntry, CallPhase, Said};

/// How much later than it was told to an executor may stop.
const GRACE: Duration = Duration::from_millis(500);
/// How often an execution is begun at most. One that kills the miner must not do so after each start, because
/// all other work is lost by that, too.
const ATTEMPTS_MAX: u32 = 2;

/// One execution, with all that it needs.
struct Job {
    executors: Arc<Executors>,
    agent: Arc<Agent>,
    library: Library,
    payload: Vec<u8>,
    view: CallView,
    stop: Stop,
    /// Free for the next one when this one is over, however late.
    _slot: Slot,
}

impl Job {
    fn run(self) -> Executed {
        let Self { executors, agent, library, payload, view, stop, _slot } = self;
        let context = Context { call_id: view.id, requester: view.requester };
        let limits = view.limits;
        executors.run(&Task {
            context,
            agent: &agent,
            payload: &payload,
            limits,
            library: &library,
            stop,
        })
    }
}

impl Shared {
    /// Executes a call and writes down what is answered.
    pub(super) async fn execute(&self, entry: &CallEntry, view: &CallView) -> Result<(), Halt> {
        let parts = &self.inner.parts;
        let began_ms = parts.clock.now_ms();
        let left = self.left(view).await?;
        let until = Instant::now().checked_add(left);
        let mut executor = entry.executor;
        let ready = match timeout(left, self.prepare(view, until, &mut executor)).await {
            Ok(ready) => ready?,
            Err(_late) => Err("the time that this miner has for it is over".to_owned()),
        };
        let executed = match ready {
            Ok(_) if entry.attempts >= ATTEMPTS_MAX => {
                let why = format!("the miner died {ATTEMPTS_MAX} times while it executed this");
                Executed::unable(why)
            }
            Ok(job) => {
                let attempts = entry.attempts.saturating_add(1);
                parts.journal.put_call(&CallEntry { attempts, ..entry.clone() }).await?;
                finish(job).await
            }
            Err(why) => Executed::unable(why),
        };
        if self.inner.stop.is_cancelled() {
            // It was given up for that; the next start executes it.
            parts.journal.put_call(entry).await?;
            return Err(Halt::Stopped);
        }
        let ended_ms = parts.clock.now_ms();
        let Executed { answer, result, reason, work } = executed;
        if let Some(work) = work {
            let times = Times { assigned_ms: entry.assigned_ms, began_ms, ended_ms };
            let (receipts, key) = (self.market.receipts.clone(), (entry.call, entry.round));
            let put = move || receipts.put((&key.0, key.1), &work, times);
            match tokio::task::spawn_blocking(put).await {
                Ok(Ok(())) => (),
                Ok(Err(error)) => {
                    tracing::warn!(call = %entry.call, %error, "cannot keep a receipt");
                }
                Err(error) => {
                    tracing::error!(call = %entry.call, %error, "writing a receipt failed");
                }
            }
        }
        let outcome = answer.outcome.as_str();
        tracing::info!(call = %entry.call, outcome, ?reason, "executed");
        let Some(salt) = salt() else {
            // Without a secret there is no commitment; the worker comes back to it.
            return self.pause().await;
        };
        let result = const_hex::encode_prefixed(&result);
        let said = Some(Said { answer, result, reason, salt, said_ms: ended_ms });
        let executed = CallEntry { said, executor, ..entry.at(CallPhase::Executed) };
        Ok(parts.journal.put_call(&executed).await?)
    }

    /// Waits a little before something is tried again.
    async fn pause(&self) -> Result<(), Halt> {
        tokio::select! {
            biased;
            () = self.inner.stop.cancelled() => Err(Halt::Stopped),
            () = sleep(Duration::from_millis(self.inner.parts.config.pause_ms)) => Ok(()),
        }
    }

    /// How long the execution may take: until there is just time for a commitment.
    async fn left(&self, view: &CallView) -> Result<Duration, Halt> {
        let parts = &self.inner.parts;
        let head = self.inner.patiently(|| parts.ledger.head()).await?;
        // Blocks may be ahead of this machine's clock.
        let now_ms = parts.clock.now_ms().max(head.block_ms);
        let margin_ms = self.settings().commit_margin_ms;
        let until_ms = view.deadline_ms.unwrap_or(now_ms).saturating_sub(margin_ms);
        Ok(Duration::from_millis(until_ms.saturating_sub(now_ms)))
    }

    /// The settings in force, or those that hold without any.
    pub(super) fn settings(&self) -> Arc<MarketConfig> {
        self.market.config.borrow().clone().unwrap_or_default()
    }

    /// All that the execution needs, or why this member is unable.
    async fn prepare(
        &self,
        view: &CallView,
        until: Option<Instant>,
        executor: &mut Option<ExecutorId>,
    ) -> Result<Result<Job, String>, Halt> {
        if let Some(why) = declined(&self.settings(), view) {
            return Ok(Err(why));
        }
        let payload = self.payload(view).await?;
        let (agent, library) = loop {
            match self.market.agents.gather(&view.agent, &view.version).await {
                Ok(found) => break found,
                Err(Unfound::Never(why)) => return Ok(Err(why)),
                Err(Unfound::Node(error)) => {
                    tracing::warn!(call = %view.id, %error, "asking for an agent again");
                    self.pause().await?;
                }
            }
        };
        let id = agent.metadata.executor.id();
        *executor = Some(id);
        let executors = Arc::clone(&self.market.executors);
        if let Some(why) = executors.missing(&agent, &library) {
            return Ok(Err(why));
        }
        for needed in Executors::needed(&agent, &library) {
            if view.is_compared && !executors.is_deterministic(&needed) {
                return Ok(Err(format!(
                    "answers of {needed} differ from miner to miner here, and the call compares them"
                )));
            }
            if self.market.fitness.fault(&needed).await.is_some() {
                return Ok(Err(format!("{needed} computes otherwise here than on other machines")));
            }
        }
        let slot = self.slots.take(id, || self.settings().capacity(&id)).await;
        // Only work counts: the time before was spent on waiting for other calls.
        let longest = Duration::from_millis(self.settings().work_ms_max);
        let until = until.into_iter().chain(Instant::now().checked_add(longest)).min();
        let stop = Stop::new(self.inner.stop.clone(), until);
        let view = view.clone();
        Ok(Ok(Job { executors, agent, library, payload, view, stop, _slot: slot }))
    }

    /// The payload, asked for again where the node did not tell it.
    async fn payload(&self, view: &CallView) -> Result<Vec<u8>, Halt> {
        if let Some(payload) = payload(view) {
            return Ok(payload.to_vec());
        }
        loop {
            tracing::warn!(call = %view.id, "the node does not report the payload; asking again");
            self.pause().await?;
            let again = self.inner.patiently(|| self.market.calls.call(&view.id)).await?;
            if let Some(payload) = again.as_ref().and_then(payload) {
                return Ok(payload.to_vec());
            }
        }
    }
}

/// Why the operator does not want a call to be executed.
fn declined(config: &MarketConfig, view: &CallView) -> Option<String> {
    if config.refuse.contains(&view.agent) {
        return Some("this miner does not execute the agent".to_owned());
    }
    let (budget_micro, least_micro) = (view.budget_micro, config.budget_micro_min);
    (budget_micro < least_micro).then(|| {
        format!("a member gets {budget_micro} micro at most; this miner wants {least_micro}")
    })
}

/// Executes on a thread of its own. An executor stops by itself when it is time, and says why; one that does
/// not is left alone.
async fn finish(job: Job) -> Executed {
    let (call, executor) = (job.view.id, job.agent.metadata.executor.id());
    let left = job.stop.until().map(|until| until.saturating_duration_since(Instant::now()));
    let patience = left.unwrap_or_default().saturating_add(GRACE);
    let ended = tokio::task::spawn_blocking(move || job.run());
    match timeout(patience, ended).await {
        Ok(Ok(executed)) => executed,
        Ok(Err(error)) => {
            tracing::error!(%call, %executor, %error, "an executor failed");
            Executed::unable("the executor broke off".to_owned())
        }
        Err(_late) => {
            tracing::error!(%call, %executor, "an executor does not stop");
            Executed::unable("the executor did not stop in time".to_owned())
        }
    }
}

/// What nobody can guess.
fn salt() -> Option<Hash> {
    let mut bytes = [0; 32];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Some(Hash::new(bytes)),
        Err(error) => {
            tracing::error!(%error, "the system gives no randomness");
            None
        }
    }
}
