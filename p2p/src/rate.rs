//! How much one peer may ask for and send.

use std::time::{Duration, Instant};

const MICROS: u128 = 1_000_000;

/// What a peer may do at once, and per second in the long run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) burst: u32,
    /// Above 0.
    pub(crate) per_second: u32,
}

/// Questions that a peer may ask.
pub(crate) const QUESTIONS: Rate = Rate { burst: 256, per_second: 64 };

/// A bucket of tokens, which fills at a rate.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    tokens: u32,
    /// Up to when tokens have been earned. It lies ahead while the peer owes some.
    filled: Instant,
}

impl Bucket {
    pub(crate) const fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: rate.burst, filled: now }
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let has = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        has
    }

    /// Takes so many tokens, also those that are not there yet. Answers how long it takes until they are.
    pub(crate) fn owe(&mut self, count: u32, now: Instant) -> Duration {
        self.fill(now);
        let missing = count.saturating_sub(self.tokens);
        self.tokens = self.tokens.saturating_sub(count);
        let wait = self.time_of(missing);
        if missing > 0 {
            self.filled = self.filled.max(now) + wait;
        }
        wait
    }

    fn fill(&mut self, now: Instant) {
        let gone = now.saturating_duration_since(self.filled).as_micros();
        let earned = gone.saturating_mul(u128::from(self.rate.per_second)) / MICROS;
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(earned).min(self.rate.burst);
        // The time for a part of a token counts for the next one.
        self.filled += self.time_of(earned);
    }

    fn time_of(&self, tokens: u32) -> Duration {
        let micros = u128::from(tokens).saturating_mul(MICROS) / u128::from(self.rate.per_second);
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a thousand tries get a token.
    fn served(bucket: &mut Bucket, at: Instant) -> usize {
        (0..1_000).filter(|_| bucket.take(at)).count()
    }

    #[test]
    fn a_burst_is_served_and_then_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::full(QUESTIONS, start);
        assert_eq!(256, served(&mut bucket, start));
        assert_eq!(64, served(&mut bucket, start + Duration::from_secs(1)));
        assert_eq!(256, served(&mut bucket, start + Duration::from_secs(60)));
    }

    #[test]
    fn no_time_is_lost_however_often_somebody_looks() {
        let start = Instant::now();
        let mut bucket = Bucket::full(Rate { burst: 10, per_second: 300 }, start);
        assert_eq!(10, served(&mut bucket, start));
        let looks = (1..=1_000).map(|at| start + Duration::from_millis(at));
        assert!((299..=300).contains(&looks.filter(|at| bucket.take(*at)).count()));
    }

    #[test]
    fn what_a_peer_owes_is_not_earned_a_second_time_while_it_waits() {
        let start = Instant::now();
        let mut bucket = Bucket::full(Rate { burst: 100, per_second: 100 }, start);
        let mut now = start;
        for _ in 0..10 {
            now += bucket.owe(100, now);
        }
        assert_eq!(Duration::from_secs(9), now - start);
        assert!(!bucket.take(now));
    }
}
