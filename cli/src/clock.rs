//! The time, for the miner's code.

use node::clock::now_ms;

/// The time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock;

impl agent::clock::Clock for Clock {
    fn now_ms(&self) -> u64 {
        now_ms()
    }
}
