//! For tests: numbered points at which the process dies.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many points are still passed before the process dies; 0 means that it lives.
static LEFT: AtomicU64 = AtomicU64::new(0);
/// How many points were passed.
static PASSED: AtomicU64 = AtomicU64::new(0);

/// How many points this process has passed.
pub(crate) fn points_passed() -> u64 {
    PASSED.load(Ordering::SeqCst)
}

/// From now on the process dies at the `number`-th point; 0 never.
pub(crate) fn die_at(number: u64) {
    LEFT.store(number, Ordering::SeqCst);
}

/// A point at which the process may die: around every write of the journal and every sending.
pub(crate) fn crash_point() {
    PASSED.fetch_add(1, Ordering::SeqCst);
    let left = LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    if left == Ok(1) {
        std::process::abort();
    }
}
