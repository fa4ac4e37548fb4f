//! Waiting for what a miner needs at its start and is not there yet.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::sleep;

/// How often what is away is asked for, and told about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The first pause; each is twice the one before.
    pub(crate) first: Duration,
    /// The longest pause.
    pub(crate) longest: Duration,
    /// How long nothing is said after something was.
    pub(crate) silence: Duration,
}

impl Pace {
    /// For a node and a model's server, which may take minutes to start, or a day to be repaired.
    pub(crate) const START: Self = Self {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(30),
        silence: Duration::from_secs(600),
    };
}

/// Asks until there is an answer, or a failure that does not pass. Says at once what it waits for, and
/// then now and then. Dropping it ends it.
pub(crate) async fn until_there<T, E, F>(
    what: &str,
    pace: Pace,
    mut ask: impl FnMut() -> F,
    is_passing: impl Fn(&E) -> bool,
) -> Result<T, E>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    let mut pause = pace.first;
    let mut telling = Telling::default();
    loop {
        match ask().await {
            Ok(there) => {
                if telling.has_told() {
                    tracing::info!("{what} is there");
                }
                return Ok(there);
            }
            Err(error) if !is_passing(&error) => return Err(error),
            Err(error) if telling.is_due(pace.silence) => {
                tracing::warn!("waiting for {what}: {error}");
            }
            Err(_) => (),
        }
        sleep(pause).await;
        telling.passes(pause);
        pause = pause.saturating_mul(2).min(pace.longest);
    }
}

/// When something was said last.
#[derive(Debug, Default)]
struct Telling {
    /// How long ago; none if nothing was said yet.
    ago: Option<Duration>,
}

impl Telling {
    /// Whether something is to be said now; if so, it counts as said.
    fn is_due(&mut self, silence: Duration) -> bool {
        let is_due = self.ago.is_none_or(|ago| ago >= silence);
        if is_due {
            self.ago = Some(Duration::ZERO);
        }
        is_due
    }

    const fn has_told(&self) -> bool {
        self.ago.is_some()
    }

    fn passes(&mut self, time: Duration) {
        self.ago = self.ago.map(|ago| ago.saturating_add(time));
    }
}

#[cfg(test)]
mod tests {
    //! What is waited for, and for how long nothing is said.

    use std::cell::Cell;
    use std::time::Instant;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const PACE: Pace = Pace { first: MS, longest: Duration::from_millis(8), silence: MS };

    #[tokio::test]
    async fn what_passes_is_waited_for_and_what_does_not_ends_the_wait() {
        let asked = Cell::new(0);
        let ask = || {
            asked.set(asked.get() + 1);
            let answer = if asked.get() < 6 { Err("away") } else { Ok("there") };
            async move { answer }
        };
        let begun = Instant::now();
        assert_eq!(Ok("there"), until_there("it", PACE, ask, |_| true).await);
        assert_eq!(6, asked.get());
        // 1, 2, 4, 8 and 8 milliseconds.
        assert!(begun.elapsed() >= 23 * MS, "{:?}", begun.elapsed());
        let wrong = || async { Err::<(), _>("wrong") };
        let ended = until_there("it", PACE, wrong, |error| *error != "wrong").await;
        assert_eq!(Err("wrong"), ended);
    }

    #[test]
    fn a_long_wait_is_told_once_and_then_sparsely() {
        let silence = Duration::from_millis(15);
        let mut telling = Telling::default();
        assert!(!telling.has_told());
        let told: Vec<bool> = [1, 2, 4, 8, 8, 8, 8]
            .map(|pause| {
                let is_due = telling.is_due(silence);
                telling.passes(pause * MS);
                is_due
            })
            .into();
        assert_eq!(vec![true, false, false, false, true, false, true], told);
        assert!(telling.has_told());
    }
}
