//! The node's threads. Consensus has some of its own, which nothing else may take, and so have the
//! interfaces, which strangers keep busy.
//!
//! ```text
//! threads      who runs on them                                  who asks for work on them
//! consensus    engine, its network, its loop; executing,         validators; nobody else
//!              validating, building, committing blocks;
//!              the guard's writes; catching up
//! interfaces   JSON-RPC, REST, streams; their reads; telling     everybody
//!              subscribers what happens
//! main         everything else: pool, gossip, journal,           clients that send, peers
//!              snapshots, supervision
//! ```
//!
//! Each is a runtime with its own threads for tasks and its own threads that may block. What one of
//! them does can keep another waiting only through a lock or the disk.

use std::future::Future;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

use futures::TryFutureExt as _;
use rpc::ports::Endpoints;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

use crate::engine::{self, Engine};
use crate::fault::NodeFault;
use crate::node::StartError;
use crate::supervisor::{Supervisor, answer_of};

/// Threads for the tasks of consensus, at least: one of them may be busy with a large message while
/// a vote comes.
const CONSENSUS_TASKS_MIN: usize = 2;
/// And at most: its tasks are few and short.
const CONSENSUS_TASKS_MAX: usize = 4;
/// Calls of consensus that block at the same time: the loop has one, the signer one, catching up
/// three, and names of peers are looked up on such threads as well.
const CONSENSUS_BLOCKING_MAX: usize = 16;
/// Calls of the interfaces that block at the same time. They bound theirs themselves, and lower; what
/// comes on top looks after the node's own streams and health.
const INTERFACES_BLOCKING_MAX: usize = 64;
/// How much the interfaces' threads stand back when the processors are short (`nice(2)`): with 5,
/// another thread gets three times as much as one of theirs.
const INTERFACES_NICE: i32 = 5;
/// What still blocks when the node has stopped gets this much longer.
const LEFT_BEHIND: Duration = Duration::from_millis(500);

/// The threads that are not everybody's. Dropping them does not wait for what they do.
#[derive(Debug)]
pub(crate) struct Threads {
    consensus: Crew,
    interfaces: Crew,
}

/// A runtime that can be dropped anywhere.
#[derive(Debug)]
struct Crew {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Threads {
    /// Starts them.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn start() -> Result<Self, std::io::Error> {
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        let consensus = Builder::new_multi_thread()
            .thread_name("consensus")
            .worker_threads(cores.clamp(CONSENSUS_TASKS_MIN, CONSENSUS_TASKS_MAX))
            .max_blocking_threads(CONSENSUS_BLOCKING_MAX)
            .enable_all()
            .build()?;
        let interfaces = Builder::new_multi_thread()
            .thread_name("interfaces")
            .worker_threads(cores)
            .max_blocking_threads(INTERFACES_BLOCKING_MAX)
            .on_thread_start(stand_back)
            .enable_all()
            .build()?;
        Ok(Self { consensus: Crew::of(consensus), interfaces: Crew::of(interfaces) })
    }

    /// Where consensus runs, and nothing else.
    pub(crate) const fn consensus(&self) -> &Handle {
        &self.consensus.handle
    }

    /// Where everything runs that strangers ask for.
    pub(crate) const fn interfaces(&self) -> &Handle {
        &self.interfaces.handle
    }

    /// Starts consensus on its threads, at once.
    ///
    /// # Errors
    /// [`StartError`] of consensus.
    pub(crate) async fn start_engine(
        &self,
        engine: Engine,
        supervisor: &mut Supervisor,
        stop: CancellationToken,
    ) -> Result<(), StartError> {
        let started = on(self.consensus(), engine.start(stop)).await;
        let handle = started.ok_or(StartError::Stopping)??;
        supervisor.spawn_in("consensus", self.consensus(), "engine", engine::run(handle));
        Ok(())
    }

    /// Opens the interfaces and serves them, on their threads.
    ///
    /// # Errors
    /// [`StartError`] of the interfaces.
    pub(crate) async fn serve(
        &self,
        opened: impl Future<Output = Result<rpc::Server, rpc::StartError>> + Send + 'static,
        supervisor: &mut Supervisor,
    ) -> Result<Endpoints, StartError> {
        let opened = on(self.interfaces(), opened).await;
        let server = opened.ok_or(StartError::Stopping)??;
        let endpoints = server.endpoints().clone();
        let served = server.finished().map_err(|it| NodeFault::io("serving the interfaces", it));
        supervisor.spawn_in("rpc", self.interfaces(), "rpc", served);
        Ok(endpoints)
    }

    /// Ends them; what blocks is waited for a little.
    pub(crate) async fn end(mut self) {
        let runtimes = [self.consensus.runtime.take(), self.interfaces.runtime.take()];
        let ended = tokio::task::spawn_blocking(move || {
            for runtime in runtimes.into_iter().flatten() {
                runtime.shutdown_timeout(LEFT_BEHIND);
            }
        });
        answer_of(ended.await);
    }
}

impl Crew {
    fn of(runtime: Runtime) -> Self {
        Self { handle: runtime.handle().clone(), runtime: Some(runtime) }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a task on these threads, and waits for it. If it panics, so does the caller. None if the
/// threads have ended.
pub(crate) async fn on<T: Send + 'static>(
    threads: &Handle,
    task: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    answer_of(threads.spawn(task).await)
}

/// Has this thread stand back behind others. On Linux a thread has a priority of its own; elsewhere
/// it would be the whole process.
fn stand_back() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(INTERFACES_NICE) {
        tracing::debug!(%error, "cannot lower the priority of a thread of the interfaces");
    }
}

#[cfg(test)]
mod tests {
    //! Whose threads are whose.

    use std::sync::mpsc;

    use super::*;

    /// How long something may take that has nothing to wait for.
    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn calls_that_fill_the_interfaces_and_the_main_threads_leave_consensus_its_own() {
        let main = Builder::new_multi_thread().max_blocking_threads(2).build().unwrap();
        let threads = Threads::start().unwrap();
        let (busy, begun) = mpsc::channel();
        let gates: Vec<_> = [(main.handle(), 2), (threads.interfaces(), INTERFACES_BLOCKING_MAX)]
            .into_iter()
            .flat_map(|(handle, count)| std::iter::repeat_n(handle.clone(), count))
            .map(|handle| {
                let (gate, opened) = mpsc::channel::<()>();
                let busy = busy.clone();
                handle.spawn_blocking(move || {
                    busy.send(()).unwrap();
                    let _closed = opened.recv();
                });
                gate
            })
            .collect();
        for _ in &gates {
            begun.recv_timeout(SOON).unwrap();
        }
        let (tell, told) = mpsc::channel();
        threads.consensus().spawn_blocking(move || {
            let name = std::thread::current().name().map(str::to_owned);
            tell.send(name).unwrap();
        });
        assert_eq!(Some("consensus"), told.recv_timeout(SOON).unwrap().as_deref());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_interfaces_stand_back_and_consensus_does_not() {
        let own = rustix::process::getpriority_process(None).unwrap();
        let threads = Threads::start().unwrap();
        let (tell, told) = mpsc::channel();
        for handle in [threads.consensus(), threads.interfaces()] {
            let tell = tell.clone();
            handle.spawn_blocking(move || {
                tell.send(rustix::process::getpriority_process(None).unwrap()).unwrap();
            });
            let expected = if handle.id() == threads.interfaces().id() {
                (own + INTERFACES_NICE).min(19)
            } else {
                own
            };
            assert_eq!(expected, told.recv_timeout(SOON).unwrap());
        }
    }

    #[tokio::test]
    async fn threads_end_within_a_task_and_can_be_dropped_in_one() {
        let threads = Threads::start().unwrap();
        assert_eq!(Some(7), on(threads.consensus(), async { 7 }).await);
        threads.end().await;
        drop(Threads::start().unwrap());
    }
}
