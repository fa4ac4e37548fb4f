//! How fast a client may ask: so many requests a second, with a reserve for bursts (the generic cell
//! rate algorithm).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

/// What one client has left.
#[derive(Debug)]
pub(crate) struct Bucket {
    limiter: RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>,
    quota: Quota,
}

/// How a client stands after a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RateStanding {
    /// How many requests may come at once.
    pub(crate) burst: u32,
    /// How many of them are left.
    pub(crate) remaining: u32,
    /// When all are there again, if no more come.
    pub(crate) full_in_seconds: u64,
}

impl Bucket {
    /// A bucket of which nothing was taken.
    pub(crate) fn full(quota: Quota) -> Arc<Self> {
        let limiter = RateLimiter::direct(quota).with_middleware();
        Arc::new(Self { limiter, quota })
    }

    /// Counts a request; answers how many more may come at once.
    ///
    /// # Errors
    /// How long to wait, if it came too fast.
    pub(super) fn take(&self) -> Result<u32, Duration> {
        match self.limiter.check() {
            Ok(state) => Ok(state.remaining_burst_capacity()),
            Err(early) => {
                let wait = early.wait_time_from(DefaultClock::default().now());
                Err(wait.saturating_add(Duration::from_millis(1)))
            }
        }
    }

    /// How a client stands that has so many requests left.
    pub(super) fn standing(&self, remaining: u32) -> RateStanding {
        let burst = self.quota.burst_size().get();
        let used = burst.saturating_sub(remaining);
        let until_full = self.quota.replenish_interval().saturating_mul(used);
        let seconds = until_full.as_secs().saturating_add(u64::from(until_full.subsec_nanos() > 0));
        RateStanding { burst, remaining, full_in_seconds: seconds }
    }
}

/// None for any number of requests.
pub(crate) fn quota(per_second: u32, burst: u32) -> Option<Quota> {
    let per_second = NonZeroU32::new(per_second)?;
    let burst = NonZeroU32::new(burst).unwrap_or_else(|| per_second.saturating_mul(TEN));
    Some(Quota::per_second(per_second).allow_burst(burst))
}

const TEN: NonZeroU32 = NonZeroU32::new(10).expect("10 is not 0");
