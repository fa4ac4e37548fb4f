//! How a test makes sure of a moment in another process: places where it is held up, and marks of
//! what it has passed.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;

use crate::node::PATIENCE;

/// Longer than any test waits; whoever is held up leaves then.
const HELD_MAX: Duration = Duration::from_secs(300);

/// A place where those who come are held up until it is opened.
#[derive(Debug, Default)]
pub struct Breakpoint {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    is_open: bool,
}

impl Breakpoint {
    /// Waits here until the gate is opened.
    pub fn pass(&self) {
        let deadline = Instant::now() + HELD_MAX;
        let mut state = lock(&self.state);
        state.arrived += 1;
        self.changed.notify_all();
        while !state.is_open && Instant::now() < deadline {
            state = self.wait(state, deadline);
        }
    }

    /// Waits until somebody is held up here.
    pub fn reached(&self, what: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let mut state = lock(&self.state);
        while state.arrived == 0 {
            if Instant::now() > deadline {
                bail!("waited {PATIENCE:?} for {what}");
            }
            state = self.wait(state, deadline);
        }
        Ok(())
    }

    /// Lets everybody through, now and later.
    pub fn open(&self) {
        lock(&self.state).is_open = true;
        self.changed.notify_all();
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, deadline: Instant) -> MutexGuard<'a, State> {
        let left = deadline.saturating_duration_since(Instant::now());
        let woken = self.changed.wait_timeout(state, left);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// What has happened so far, by name: `said 1`, `sent AGENT_STEP 2`.
#[derive(Debug, Default)]
pub struct Marks(Mutex<BTreeSet<String>>);

impl Marks {
    /// Notes that something happens now for the `count`th time.
    pub fn set(&self, what: &str, count: usize) {
        lock(&self.0).insert(format!("{what} {count}"));
    }

    /// Whether it has happened; nothing is a mark that is always there.
    #[must_use]
    pub fn has(&self, mark: &str) -> bool {
        mark.is_empty() || lock(&self.0).contains(mark)
    }
}

/// The value, whatever became of those who held it before.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
