//! How catching up goes, for people: a bar on a terminal, lines in the log elsewhere.

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often the bar is drawn.
const BAR_INTERVAL: Duration = Duration::from_millis(200);
/// How often a line is logged.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// How often is looked whether the height has risen.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// What is done so far.
#[derive(Debug)]
pub(super) struct Progress {
    begun: Instant,
    first: u64,
    height: AtomicU64,
    transactions: AtomicU64,
}

/// What is done so far and how fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    ms: u64,
    height: u64,
    transactions: u64,
}

/// How catching up ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// At the height of the peers.
    Reached,
    /// The node was asked to stop.
    Stopped,
    /// Below this height, which is believed of the chain.
    Short { peers: u64 },
}

/// The speed between two moments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pace {
    blocks_per_s: u64,
    txs_per_s: u64,
    /// None while nothing moves.
    seconds_left: Option<u64>,
}

impl Progress {
    /// The beginning, at this height.
    pub(super) fn new(height: u64) -> Self {
        Self {
            begun: Instant::now(),
            first: height,
            height: AtomicU64::new(height),
            transactions: AtomicU64::new(0),
        }
    }

    pub(super) fn committed(&self, height: u64, transactions: u64) {
        self.height.store(height, Ordering::Relaxed);
        self.transactions.fetch_add(transactions, Ordering::Relaxed);
    }

    fn seen(&self) -> Seen {
        Seen {
            ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            height: self.height.load(Ordering::Relaxed),
            transactions: self.transactions.load(Ordering::Relaxed),
        }
    }

    const fn start(&self) -> Seen {
        Seen { ms: 0, height: self.first, transactions: 0 }
    }

    /// Waits until the height has been the same for so long.
    pub(super) async fn stands_still(&self, time: Duration) {
        let (mut height, mut since) = (self.seen().height, Instant::now());
        while since.elapsed() < time {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let seen = self.seen().height;
            if std::mem::replace(&mut height, seen) != seen {
                since = Instant::now();
            }
        }
    }

    /// Shows it for as long as it is polled; `target` answers the height that is wanted.
    pub(super) async fn show(&self, target: impl Fn() -> u64) -> Infallible {
        if std::io::stderr().is_terminal() {
            self.draw(target).await
        } else {
            self.log(target).await
        }
    }

    async fn draw(&self, target: impl Fn() -> u64) -> Infallible {
        let template = "catching up {bar:40} {pos}/{len} blocks {msg}";
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::new(target())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let bar = Cleared(bar);
        loop {
            let (seen, target) = (self.seen(), target());
            let Pace { blocks_per_s, txs_per_s, seconds_left } = pace(self.start(), seen, target);
            bar.0.set_length(target.max(seen.height));
            bar.0.set_position(seen.height);
            bar.0.set_message(format!("{blocks_per_s}/s {txs_per_s} tx/s {}", time(seconds_left)));
            tokio::time::sleep(BAR_INTERVAL).await;
        }
    }

    async fn log(&self, target: impl Fn() -> u64) -> Infallible {
        let mut before = self.start();
        loop {
            tokio::time::sleep(LOG_INTERVAL).await;
            let (seen, target) = (self.seen(), target());
            let Pace { blocks_per_s, txs_per_s, seconds_left } = pace(before, seen, target);
            let (height, left) = (seen.height, time(seconds_left));
            tracing::info!(height, target, blocks_per_s, txs_per_s, left, "catching up");
            before = seen;
        }
    }

    /// The last word.
    pub(super) fn tell_end(&self, end: End) {
        let seen = self.seen();
        let Pace { blocks_per_s, txs_per_s, .. } = pace(self.start(), seen, seen.height);
        let (height, blocks) = (seen.height, seen.height.saturating_sub(self.first));
        let Seen { ms, transactions, .. } = seen;
        match end {
            End::Reached => {
                tracing::info!(
                    height,
                    blocks,
                    transactions,
                    ms,
                    blocks_per_s,
                    txs_per_s,
                    "caught up"
                );
            }
            End::Stopped => tracing::info!(height, blocks, ms, "catching up was stopped"),
            End::Short { peers } => {
                let message =
                    "no peer delivers the missing blocks; consensus starts behind the chain";
                tracing::warn!(height, blocks, ms, peers, "{message}");
            }
        }
    }
}

/// A bar that goes when it is dropped.
struct Cleared(ProgressBar);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn pace(before: Seen, now: Seen, target: u64) -> Pace {
    let ms = now.ms.saturating_sub(before.ms).max(1);
    let per_s = |count: u64| count.saturating_mul(1_000) / ms;
    let blocks = now.height.saturating_sub(before.height);
    let left_ms = target.saturating_sub(now.height).saturating_mul(ms).checked_div(blocks);
    Pace {
        blocks_per_s: per_s(blocks),
        txs_per_s: per_s(now.transactions.saturating_sub(before.transactions)),
        seconds_left: left_ms.map(|ms| ms.div_ceil(1_000)),
    }
}

/// A duration for people.
fn time(seconds: Option<u64>) -> String {
    match seconds {
        None => "unknown".to_owned(),
        Some(seconds) if seconds < 60 => format!("{seconds} s"),
        Some(seconds) if seconds < 3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        Some(seconds) => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_of_the_last_stretch_and_the_rest_is_estimated_by_it() {
        let before = Seen { ms: 1_000, height: 50, transactions: 500 };
        let now = Seen { ms: 3_000, height: 150, transactions: 4_500 };
        let expected = Pace { blocks_per_s: 50, txs_per_s: 2_000, seconds_left: Some(17) };
        assert_eq!(expected, pace(before, now, 1_000));
        let still = Pace { blocks_per_s: 0, txs_per_s: 0, seconds_left: None };
        assert_eq!(still, pace(now, now, 1_000));
    }

    #[test]
    fn durations_are_told_in_words() {
        let times = [None, Some(0), Some(59), Some(61), Some(7_261)].map(time);
        assert_eq!(times, ["unknown", "0 s", "59 s", "1 min 1 s", "2 h 1 min"]);
    }
}
