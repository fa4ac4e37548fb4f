//! Whether the executors of this machine compute what those of others do.
//!
//! Each is tested before it is offered or used for the first time, and again when members of a
//! committee agreed about another answer. An executor that fails is neither offered nor used.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use types::agent::ExecutorId;

use agent::executor::{Executors, SelftestFault, faults_of};

/// A test counts for so long; strangers who bring about dissents cannot keep a machine busy with tests.
const TEST_PAUSE: Duration = Duration::from_secs(600);
/// An executor that gave no answer in its test is tested again after so long.
const UNABLE_PAUSE: Duration = Duration::from_secs(30);

/// What the tests of this machine's executors found.
#[derive(Clone, Debug)]
pub struct Fitness {
    executors: Arc<Executors>,
    results: Arc<Mutex<BTreeMap<ExecutorId, TestResult>>>,
    /// Held during a test, so that nobody begins the same one.
    turn: Arc<tokio::sync::Mutex<()>>,
    pause: Duration,
    unable_pause: Duration,
}

#[derive(Clone, Debug)]
struct TestResult {
    fault: Option<SelftestFault>,
    tested: Instant,
}

impl TestResult {
    fn why(&self) -> Option<String> {
        self.fault.as_ref().map(|fault| fault.why.clone())
    }
}

impl Fitness {
    /// Nothing is tested yet.
    #[must_use]
    pub fn new(executors: Arc<Executors>) -> Self {
        let (results, turn) = (Arc::default(), Arc::default());
        Self { executors, results, turn, pause: TEST_PAUSE, unable_pause: UNABLE_PAUSE }
    }

    /// The executors that failed their test, and how.
    #[must_use]
    pub fn unsound(&self) -> BTreeMap<ExecutorId, String> {
        let results = self.results.lock();
        let failed = results.iter().filter_map(|(id, it)| Some((*id, it.why()?)));
        failed.collect()
    }

    /// Forgets what is known of an executor: it is tested again before it is used.
    pub fn forget(&self, executor: &ExecutorId) {
        self.results.lock().remove(executor);
    }

    /// The same, where tests count for so long.
    #[cfg(test)]
    pub(super) fn with_pause(self, pause: Duration) -> Self {
        Self { pause, unable_pause: pause, ..self }
    }

    /// When an executor was tested last.
    #[cfg(test)]
    pub(super) fn last_test(&self, executor: &ExecutorId) -> Option<Instant> {
        self.results.lock().get(executor).map(|it| it.tested)
    }

    /// As if an executor had failed its test.
    #[cfg(test)]
    pub(super) fn fail(&self, executor: ExecutorId, fault: &str) {
        let fault = Some(SelftestFault { why: fault.to_owned(), is_unable: false });
        let result = TestResult { fault, tested: Instant::now() };
        self.results.lock().insert(executor, result);
    }

    /// How an executor failed its test, which is made if it was not yet; none if it passed.
    pub async fn fault(&self, executor: &ExecutorId) -> Option<String> {
        self.tested(executor, |_| true).await
    }

    /// The same after a dissent: the test is made again, unless the last one was minutes ago.
    pub async fn fault_after_dissent(&self, executor: &ExecutorId) -> Option<String> {
        self.tested(executor, |it| it.fault.is_some() || it.tested.elapsed() < self.pause).await
    }

    /// The result of the last test where that will do, or of one that is made now.
    async fn tested(
        &self,
        executor: &ExecutorId,
        will_do: impl Fn(&TestResult) -> bool,
    ) -> Option<String> {
        let is_due = |it: &TestResult| {
            let was_unable = it.fault.as_ref().is_some_and(|fault| fault.is_unable);
            was_unable && it.tested.elapsed() >= self.unable_pause
        };
        let counts = |it: &&TestResult| will_do(it) && !is_due(it);
        let known = || self.results.lock().get(executor).filter(counts).cloned();
        // Whoever knows the result waits for no test of another executor.
        if let Some(result) = known() {
            return result.why();
        }
        let _turn = self.turn.lock().await;
        if let Some(result) = known() {
            return result.why();
        }
        let (executors, id) = (Arc::clone(&self.executors), *executor);
        let faults = tokio::task::spawn_blocking(move || faults_of(&executors, &id)).await;
        let fault = match faults {
            Ok(faults) => faults.into_iter().next(),
            Err(error) => Some(SelftestFault {
                why: format!("the test broke off: {error}"),
                is_unable: false,
            }),
        };
        match &fault {
            Some(SelftestFault { why, is_unable: true }) => {
                tracing::warn!(%executor, why, "testing an executor again; taking no calls");
            }
            Some(SelftestFault { why, is_unable: false }) => {
                tracing::error!(%executor, why, "this machine computes other results; no calls");
            }
            None => (),
        }
        let result = TestResult { fault, tested: Instant::now() };
        let why = result.why();
        self.results.lock().insert(*executor, result);
        why
    }
}
