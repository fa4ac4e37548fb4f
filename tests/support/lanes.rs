//! Many cases that mostly wait, some at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{anyhow, bail};

/// Cases at a time.
const LANES: usize = 4;

/// Tries every case, with its place in the list.
///
/// # Errors
/// All that failed, each with its name.
pub fn each<T: Sync>(
    cases: &[T],
    name: impl Fn(&T) -> &'static str + Sync,
    check: impl Fn(usize, &T) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let lane = || {
        let mut faults = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::SeqCst);
            let Some(case) = cases.get(place) else { return faults };
            if let Err(fault) = check(place, case) {
                faults.push(format!("{}: {fault:#}", name(case)));
            }
        }
    };
    let mut faults = Vec::new();
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        for lane in lanes {
            faults.extend(lane.join().map_err(|_panic| anyhow!("a case panicked"))?);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    if !faults.is_empty() {
        bail!("{} of {} failed:\n{}", faults.len(), cases.len(), faults.join("\n"));
    }
    Ok(())
}
