//! The time, which whoever executes agents and works on runs gets from outside.

use std::fmt::Debug;

/// The time.
pub trait Clock: Debug + Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
}
