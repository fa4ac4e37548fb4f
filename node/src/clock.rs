//! The node's clock: the one place where time enters.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 by the machine's clock; 0 if it stands before 1970.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is where time enters")]
pub fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
