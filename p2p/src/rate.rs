//! How much one peer may ask.

use std::time::Instant;

/// Questions that a peer may ask at once.
const BURST: u32 = 256;
/// Questions per second in the long run.
const PER_SECOND: u32 = 64;

/// A bucket that questions take tokens from.
#[derive(Debug)]
pub(crate) struct Allowance {
    tokens: u32,
    filled: Instant,
}

impl Allowance {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { tokens: BURST, filled: now }
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let gone = now.saturating_duration_since(self.filled).as_millis();
        let earned = gone.saturating_mul(u128::from(PER_SECOND)) / 1_000;
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.tokens = self.tokens.saturating_add(earned).min(BURST);
            self.filled = now;
        }
        let has = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        has
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_is_served_and_then_the_rate() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        let served =
            |allowance: &mut Allowance, at| (0..1_000).filter(|_| allowance.take(at)).count();
        assert_eq!(256, served(&mut allowance, start));
        assert_eq!(64, served(&mut allowance, start + Duration::from_secs(1)));
        assert_eq!(256, served(&mut allowance, start + Duration::from_secs(60)));
    }
}
