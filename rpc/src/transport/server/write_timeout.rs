//! How long a peer that takes little is waited for.
//!
//! Time in which the peer takes nothing is used up, and won back by what it takes and by time in
//! which nobody waits for it. So a peer that takes a few bytes now and then cannot hold an answer
//! for ever, and one that pauses now and then is not cut off. While the memory for answers is scarce,
//! who takes little is waited for less.

use std::time::Duration;

use tokio::time::Instant;

/// The most that a peer may refuse to take while memory is scarce.
const SCARCE_MOST: Duration = Duration::from_secs(5);
/// What a peer must take per second while memory is scarce: a line of two megabits does.
const SCARCE_BYTES_PER_SECOND_MIN: u32 = 256 * 1024;

/// How much is asked of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Terms {
    pub(super) most: Duration,
    pub(super) bytes_per_second_min: u32,
}

impl Terms {
    /// The same, or stricter, for as long as memory is scarce.
    pub(super) fn when_scarce(self) -> Self {
        Self {
            most: self.most.min(SCARCE_MOST),
            bytes_per_second_min: self.bytes_per_second_min.max(SCARCE_BYTES_PER_SECOND_MIN),
        }
    }
}

/// How long one peer may still take to read.
#[derive(Debug)]
pub(super) struct WriteTimeout {
    used: Duration,
    /// Since when the peer is waited for, or is not.
    since: Instant,
    is_waiting: bool,
}

impl WriteTimeout {
    pub(super) const fn new(now: Instant) -> Self {
        Self { used: Duration::ZERO, since: now, is_waiting: false }
    }

    /// The peer takes nothing, or still nothing; answers when the time is over on these terms.
    pub(super) fn stall(&mut self, terms: Terms, now: Instant) -> Instant {
        if !self.is_waiting {
            self.used = self.used.saturating_sub(now.duration_since(self.since));
            (self.since, self.is_waiting) = (now, true);
        }
        self.since + terms.most.saturating_sub(self.used)
    }

    /// The peer took something.
    pub(super) fn progress(&mut self, terms: Terms, bytes: usize, now: Instant) {
        if self.is_waiting {
            self.used = self.used.saturating_add(now.duration_since(self.since));
            (self.since, self.is_waiting) = (now, false);
        }
        self.used = self.used.saturating_sub(terms.worth(bytes));
    }
}

impl Terms {
    /// The time that so many bytes may take.
    fn worth(self, bytes: usize) -> Duration {
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

    const fn terms(bytes_per_second_min: u32) -> Terms {
        Terms { most: Duration::from_secs(30), bytes_per_second_min }
    }

    /// How many times a peer takes `bytes` after each second before it is cut off.
    fn seconds(bytes: usize, bytes_per_second_min: u32) -> usize {
        seconds_on(terms(bytes_per_second_min), bytes)
    }

    fn seconds_on(terms: Terms, bytes: usize) -> usize {
        let mut now = Instant::now();
        let mut write_timeout = WriteTimeout::new(now);
        for second in 0..10_000 {
            if write_timeout.stall(terms, now) < now + SECOND {
                return second;
            }
            now += SECOND;
            write_timeout.progress(terms, bytes, now);
        }
        10_000
    }

    #[test]
    fn while_memory_is_scarce_who_takes_little_is_cut_off_soon() {
        let scarce = terms(32 * 1024).when_scarce();
        assert_eq!(5, seconds_on(scarce, 0));
        assert_eq!(5, seconds_on(scarce, 40_000), "enough at other times");
        assert_eq!(10_000, seconds_on(scarce, 300_000));
        let strict = Terms { most: SECOND, bytes_per_second_min: 1 << 20 };
        assert_eq!(strict, strict.when_scarce());
    }

    #[test]
    fn a_wait_that_began_in_better_times_ends_on_the_terms_of_now() {
        let (now, terms) = (Instant::now(), terms(1_000));
        let mut write_timeout = WriteTimeout::new(now);
        assert_eq!(now + 30 * SECOND, write_timeout.stall(terms, now));
        assert_eq!(now + 5 * SECOND, write_timeout.stall(terms.when_scarce(), now + 9 * SECOND));
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
        let (now, terms) = (Instant::now(), terms(1_000));
        let mut write_timeout = WriteTimeout::new(now);
        assert_eq!(now + 30 * SECOND, write_timeout.stall(terms, now));
        assert_eq!(
            now + 30 * SECOND,
            write_timeout.stall(terms, now + 5 * SECOND),
            "the same wait"
        );
        write_timeout.progress(terms, 1, now + 20 * SECOND);
        let later = now + 60 * SECOND;
        assert_eq!(later + 30 * SECOND, write_timeout.stall(terms, later));
    }
}
