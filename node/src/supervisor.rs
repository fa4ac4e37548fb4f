//! Starts the node's tasks in stages and stops them in the reverse order.
//!
//! ```text
//! stage      tasks                                   stopped
//! storage    journal (pool journal to disk), disk,   last
//!            forks (unknown ones)
//! consensus  engine (catching up, then the BFT       fourth
//!            engine and its loop)
//! pool       ingest (checks submissions in batches)  third
//! gossip     gossip (swarm), gossip-intake,          second
//!            gossip-serve, gossip-blocks,
//!            gossip-pull, announce, peers,
//!            watch, earlier-votes, evidence
//! rpc        rpc, metrics, admin, systemd, relay     first
//! ```
//!
//! The tasks of consensus and of rpc run on threads of their own (`threads.rs`), all others on the
//! main ones.
//!
//! A task that ends, fails or panics while nobody asked it to stop takes the node down in order,
//! with its name in the reason. Every stage has a share of the configured time; what has not
//! stopped by then is named in the log and left behind.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::fault::NodeFault;

/// Why the node stopped.
#[derive(Debug, thiserror::Error)]
pub enum ShutdownReason {
    /// Somebody asked: a signal, or the end of the work.
    #[error("asked to stop: {0}")]
    Asked(&'static str),
    /// A task failed.
    #[error("task {name} failed: {fault}")]
    TaskFailed {
        /// The task.
        name: &'static str,
        /// Its error.
        fault: NodeFault,
    },
    /// A task ended although nobody asked it to.
    #[error("task {name} ended unexpectedly")]
    TaskEnded {
        /// The task.
        name: &'static str,
    },
    /// A task panicked.
    #[error("task {name} panicked: {message}")]
    TaskPanicked {
        /// The task.
        name: &'static str,
        /// The panic's message.
        message: String,
    },
}

impl ShutdownReason {
    /// Whether the process should report failure.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        !matches!(self, Self::Asked(_))
    }

    /// Whether starting again could make this validator contradict itself, or cannot help before
    /// somebody has looked at the chain.
    #[must_use]
    pub fn forbids_restart(&self) -> bool {
        match self {
            Self::TaskFailed { fault: NodeFault::Consensus(fault), .. }
                if fault.forbids_restart() =>
            {
                true
            }
            Self::TaskFailed { fault: NodeFault::ConsensusStart(error), .. } => {
                error.forbids_restart()
            }
            Self::TaskFailed { fault: NodeFault::OtherChain(_), .. } => true,
            Self::TaskFailed { fault, .. } => fault.unknown_fork().is_some(),
            Self::Asked(_) | Self::TaskEnded { .. } | Self::TaskPanicked { .. } => false,
        }
    }

    /// The sentence about a fork that this program does not know, if that is the reason.
    #[must_use]
    pub fn unknown_fork(&self) -> Option<String> {
        match self {
            Self::TaskFailed { fault, .. } => fault.unknown_fork(),
            Self::Asked(_) | Self::TaskEnded { .. } | Self::TaskPanicked { .. } => None,
        }
    }
}

#[derive(Debug)]
struct Stage {
    name: &'static str,
    stop: CancellationToken,
    running: BTreeMap<Id, &'static str>,
}

/// The node's tasks, in stages.
#[derive(Debug, Default)]
pub struct Supervisor {
    stages: Vec<Stage>,
    tasks: JoinSet<Result<(), NodeFault>>,
}

impl Supervisor {
    /// Opens the next stage; tasks spawned from now on belong to it. Answers its stop token.
    pub fn stage(&mut self, name: &'static str) -> CancellationToken {
        let stop = CancellationToken::new();
        self.stages.push(Stage { name, stop: stop.clone(), running: BTreeMap::new() });
        stop
    }

    /// Runs a task in the stage opened last.
    pub fn spawn<F>(&mut self, name: &'static str, task: F)
    where
        F: Future<Output = Result<(), NodeFault>> + Send + 'static,
    {
        if self.stages.is_empty() {
            let _token = self.stage("node");
        }
        let last = self.stages.len().saturating_sub(1);
        self.spawn_at(last, &Handle::current(), name, task);
    }

    /// Runs a task on threads of its own, in a stage that was opened before: one that waits for what
    /// later stages begin is stopped after them.
    pub fn spawn_in<F>(
        &mut self,
        stage: &'static str,
        threads: &Handle,
        name: &'static str,
        task: F,
    ) where
        F: Future<Output = Result<(), NodeFault>> + Send + 'static,
    {
        match self.stages.iter().position(|it| it.name == stage) {
            Some(at) => self.spawn_at(at, threads, name, task),
            None => self.spawn(name, task),
        }
    }

    fn spawn_at<F>(&mut self, stage: usize, threads: &Handle, name: &'static str, task: F)
    where
        F: Future<Output = Result<(), NodeFault>> + Send + 'static,
    {
        let handle = self.tasks.spawn_on(task, threads);
        if let Some(stage) = self.stages.get_mut(stage) {
            stage.running.insert(handle.id(), name);
        }
    }

    /// Waits until `asked` ends or a task fails, then stops everything within `time`.
    pub async fn run(
        mut self,
        asked: impl Future<Output = &'static str>,
        time: Duration,
    ) -> ShutdownReason {
        let reason = tokio::select! {
            biased;
            why = asked => ShutdownReason::Asked(why),
            reason = self.first_end() => reason,
        };
        self.end(reason, time).await
    }

    /// Stops everything within `time`.
    fn end(mut self, reason: ShutdownReason, time: Duration) -> BoxFuture<'static, ShutdownReason> {
        Box::pin(async move {
            if reason.is_failure() {
                error!(%reason, "stopping");
            } else {
                info!(%reason, "stopping");
            }
            self.stop(time).await;
            reason
        })
    }

    /// The first task that ends decides; with no tasks left this never answers.
    fn first_end(&mut self) -> BoxFuture<'_, ShutdownReason> {
        Box::pin(self.next_end())
    }

    async fn next_end(&mut self) -> ShutdownReason {
        match self.tasks.join_next_with_id().await {
            None => std::future::pending().await,
            Some(Ok((id, outcome))) => {
                let name = self.forget(id);
                match outcome {
                    Ok(()) => ShutdownReason::TaskEnded { name },
                    Err(fault) => ShutdownReason::TaskFailed { name, fault },
                }
            }
            Some(Err(error)) => {
                let name = self.forget(error.id());
                ShutdownReason::TaskPanicked { name, message: panic_message(error) }
            }
        }
    }

    fn forget(&mut self, id: Id) -> &'static str {
        let mut stages = self.stages.iter_mut();
        stages.find_map(|stage| stage.running.remove(&id)).unwrap_or("unknown")
    }

    async fn stop(&mut self, time: Duration) {
        let stages = u32::try_from(self.stages.len().max(1)).unwrap_or(u32::MAX);
        let share = time / stages;
        for index in (0..self.stages.len()).rev() {
            let Some(stage) = self.stages.get(index) else { continue };
            stage.stop.cancel();
            let name = stage.name;
            if tokio::time::timeout(share, self.drain(index)).await.is_err() {
                let left = self.stages.get(index).map(|stage| stage.running.values().copied());
                let left: Vec<_> = left.into_iter().flatten().collect();
                warn!(stage = name, tasks = ?left, "did not stop in time");
            }
        }
        self.tasks.abort_all();
    }

    /// Waits until no task of the stage runs.
    async fn drain(&mut self, index: usize) {
        while self.stages.get(index).is_some_and(|stage| !stage.running.is_empty()) {
            let Some(ended) = self.tasks.join_next_with_id().await else { return };
            match ended {
                Ok((id, outcome)) => {
                    let name = self.forget(id);
                    if let Err(fault) = outcome {
                        error!(task = name, %fault, "failed while stopping");
                    }
                }
                Err(error) => {
                    let name = self.forget(error.id());
                    error!(task = name, message = panic_message(error), "panicked while stopping");
                }
            }
        }
    }
}

/// What a thread answered; none if it was cancelled. If it panicked, so does the caller: the
/// supervisor reports that with its message, and the name of the task.
pub(crate) fn answer_of<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(answer) => Some(answer),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_cancelled)) => None,
    }
}

fn panic_message(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(payload) => payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned()),
        Err(error) => error.to_string(),
    }
}

/// Ends with the first SIGTERM or ctrl-C.
///
/// # Errors
/// [`std::io::Error`] if the process cannot listen to signals.
pub fn asked_by_signal() -> Result<impl Future<Output = &'static str>, std::io::Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "ctrl-C",
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_takes_its_task_down_with_its_message() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let reason = runtime.block_on(async {
            let mut supervisor = Supervisor::default();
            supervisor.spawn("settling", async {
                let thread = tokio::task::spawn_blocking(|| panic!("the pool is broken"));
                answer_of(thread.await).unwrap_or(Ok(()))
            });
            supervisor.run(std::future::pending(), Duration::from_secs(1)).await
        });
        let ShutdownReason::TaskPanicked { name, message } = reason else { panic!("{reason}") };
        assert_eq!(("settling", "the pool is broken"), (name, message.as_str()));
    }
}
