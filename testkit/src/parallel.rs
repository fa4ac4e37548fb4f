//! Many cases that mostly wait, some at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context as _, anyhow, ensure};

/// Cases at a time.
const LANES: usize = 4;

/// Works on every case, with its place in the list, in so many threads; answers what came of each, in
/// the order in which they ended.
///
/// # Errors
/// A case panicked.
pub fn run<T: Sync, R: Send>(
    lanes: usize,
    cases: &[T],
    work: impl Fn(usize, &T) -> R + Sync,
) -> anyhow::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let lane = || {
        let mut results = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::SeqCst);
            let Some(case) = cases.get(place) else { return results };
            results.push(work(place, case));
        }
    };
    let mut results = Vec::new();
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        for lane in lanes {
            results.extend(lane.join().map_err(|_panic| anyhow!("a case panicked"))?);
        }
        Ok(results)
    })
}

/// Tries every case, with its place in the list.
///
/// # Errors
/// All that failed, each with its name.
pub fn each<T: Sync>(
    cases: &[T],
    name: impl Fn(&T) -> &'static str + Sync,
    check: impl Fn(usize, &T) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let results = run(LANES, cases, |place, case| {
        check(place, case).err().map(|fault| format!("{}: {fault:#}", name(case)))
    })?;
    let faults: Vec<_> = results.into_iter().flatten().collect();
    ensure!(
        faults.is_empty(),
        "{} of {} failed:\n{}",
        faults.len(),
        cases.len(),
        faults.join("\n")
    );
    Ok(())
}

/// Works on all cases at once; answers what came of each, in their order. One that failed is an error.
pub fn at_once<T: Sync, R: Send>(
    cases: &[T],
    work: impl Fn(usize, &T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let work = &work;
    std::thread::scope(|scope| {
        let cases = cases.iter().enumerate();
        let working: Vec<_> =
            cases.map(|(place, case)| scope.spawn(move || work(place, case))).collect();
        let mut results = Vec::new();
        for one in working {
            results.push(joined(one.join(), "a case")?);
        }
        Ok(results)
    })
}

/// What somebody who worked in a thread says at the end.
pub fn joined<T>(ended: std::thread::Result<anyhow::Result<T>>, who: &str) -> anyhow::Result<T> {
    ended.map_err(|_panic| anyhow!("{who} panicked"))?
}

/// Runs `work` here and `meanwhile` in a thread; `meanwhile` is told when `work` is over, also when it
/// panicked. Answers what came of both.
pub fn beside<T, R: Send>(
    work: impl FnOnce() -> anyhow::Result<T>,
    meanwhile: impl FnOnce(&AtomicBool) -> anyhow::Result<R> + Send,
) -> anyhow::Result<(T, R)> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let meanwhile = scope.spawn(|| meanwhile(&over));
        let worked = {
            let _told = Told(&over);
            work()
        };
        let other = joined(meanwhile.join(), "whoever worked meanwhile");
        Ok((worked?, other?))
    })
}

/// Says that it is over when it is dropped.
struct Told<'a>(&'a AtomicBool);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A thread that works until it is told that it is over, or until this is dropped.
#[derive(Debug)]
pub struct Worker<T> {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<T>>>,
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl<T: Send + 'static> Worker<T> {
    pub fn start(work: impl FnOnce(&AtomicBool) -> anyhow::Result<T> + Send + 'static) -> Self {
        let over = Arc::<AtomicBool>::default();
        let told = Arc::clone(&over);
        Self { over, thread: Some(std::thread::spawn(move || work(&told))) }
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Tells it that it is over.
    pub fn tell(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// The same; answers what it has done.
    pub fn stop(mut self) -> anyhow::Result<T> {
        self.tell();
        let thread = self.thread.take().context("a worker ends once")?;
        joined(thread.join(), "a worker")
    }

    /// The same of several, who are told at the same time.
    pub fn stop_all(workers: Vec<Self>) -> anyhow::Result<Vec<T>> {
        workers.iter().for_each(Self::tell);
        let ended: Vec<_> = workers.into_iter().map(Self::stop).collect();
        ended.into_iter().collect()
    }
}
