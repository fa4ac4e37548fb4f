//! What a key may spend, and whether a request fits. Pure: it knows neither clock nor store.

mod admit;
mod limits;
#[cfg(test)]
mod tests;

pub use admit::{Demand, KeyUsage, Refused, admit};
pub use limits::{Budget, Day, Limits, Pattern, Period, Tally, Window};

/// Milliseconds of a day (UTC).
pub const MS_PER_DAY: u64 = 24 * 60 * 60 * 1_000;

/// The day that a moment is in, counted from 1970 (UTC).
#[must_use]
pub const fn day_of(now_ms: u64) -> u64 {
    now_ms / MS_PER_DAY
}
