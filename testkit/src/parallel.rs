//! Many cases that mostly wait, some at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{anyhow, ensure};

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
