//! How long a peer that takes little is waited for.
//!
//! Time in which the peer takes nothing is used up, and won back by what it takes and by time in
//! which nobody waits for it. So a peer that takes a few bytes now and then cannot hold an answer
//! for ever, and one that pauses now and then is not cut off.

use std::time::Duration;

use tokio::time::Instant;

/// The patience with one peer.
#[derive(Debug)]
pub(super) struct Patience {
    most: Duration,
    bytes_per_second_min: u32,
    used: Duration,
    /// Since when the peer is waited for, or is not.
    since: Instant,
    is_waiting: bool,
}

impl Patience {
    pub(super) const fn new(most: Duration, bytes_per_second_min: u32, now: Instant) -> Self {
        Self { most, bytes_per_second_min, used: Duration::ZERO, since: now, is_waiting: false }
    }

    /// The peer takes nothing from now on; answers when patience ends.
    pub(super) fn stall(&mut self, now: Instant) -> Instant {
        if !self.is_waiting {
            self.used = self.used.saturating_sub(now.duration_since(self.since));
            (self.since, self.is_waiting) = (now, true);
        }
        self.since + self.most.saturating_sub(self.used)
    }

    /// The peer took something.
    pub(super) fn progress(&mut self, bytes: usize, now: Instant) {
        if self.is_waiting {
            self.used = self.used.saturating_add(now.duration_since(self.since));
            (self.since, self.is_waiting) = (now, false);
        }
        self.used = self.used.saturating_sub(self.worth(bytes));
    }

    /// The time that so many bytes may take.
    fn worth(&self, bytes: usize) -> Duration {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        match u64::from(self.bytes_per_second_min) {
            0 if bytes > 0 => Duration::MAX,
            0 => Duration::ZERO,
            least => Duration::from_micros(bytes.saturating_mul(1_000_000) / least),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// How many times a peer takes `bytes` after each second before it is cut off.
    fn seconds(bytes: usize, bytes_per_second_min: u32) -> usize {
        let mut now = Instant::now();
        let mut patience = Patience::new(30 * SECOND, bytes_per_second_min, now);
        for second in 0..10_000 {
            if patience.stall(now) < now + SECOND {
                return second;
            }
            now += SECOND;
            patience.progress(bytes, now);
        }
        10_000
    }

    #[test]
    fn a_peer_that_takes_little_is_not_waited_for_longer_than_one_that_takes_nothing() {
        assert_eq!(30, seconds(0, 1_000));
        assert_eq!(30, seconds(1, 1_000));
        assert_eq!(59, seconds(500, 1_000));
        assert_eq!(10_000, seconds(1_000, 1_000), "fast enough");
        assert_eq!(10_000, seconds(1, 0), "no least rate");
        assert_eq!(30, seconds(0, 0));
    }

    #[test]
    fn time_without_a_wait_wins_patience_back() {
        let now = Instant::now();
        let mut patience = Patience::new(30 * SECOND, 1_000, now);
        assert_eq!(now + 30 * SECOND, patience.stall(now));
        assert_eq!(now + 30 * SECOND, patience.stall(now + 5 * SECOND), "the same wait");
        patience.progress(1, now + 20 * SECOND);
        let later = now + 60 * SECOND;
        assert_eq!(later + 30 * SECOND, patience.stall(later));
    }
}
