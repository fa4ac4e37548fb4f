//! Waiting for what a miner needs at its start and is not there yet.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use agent::clock::Clock;
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::operate::{Starting, WaitFact};

/// What a miner that starts waits for: written by who waits, read by who is asked.
#[derive(Debug)]
pub struct Waiting {
    clock: Arc<dyn Clock>,
    started_ms: u64,
    waits: Mutex<Vec<WaitFact>>,
}

/// One of the things that a miner needs at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    Node,
    Backend,
}

impl Needed {
    /// Its name in records, that of its check.
    const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Backend => "backend",
        }
    }

    /// What it is, in sentences.
    const fn text(self) -> &'static str {
        match self {
            Self::Node => "the node",
            Self::Backend => "the model's server",
        }
    }
}

impl WaitFact {
    /// What is waited for and why, in words.
    #[must_use]
    pub fn text(&self) -> String {
        let needed = [Needed::Node, Needed::Backend].into_iter().find(|it| it.name() == self.what);
        let what: &str = match needed {
            Some(needed) => needed.text(),
            None => &self.what,
        };
        let why = self.why.as_deref().unwrap_or("it was asked and has not answered yet");
        format!("{what}: {why}")
    }
}

impl Waiting {
    /// Nothing is waited for yet, by a process that starts now.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let started_ms = clock.now_ms();
        Self { clock, started_ms, waits: Mutex::default() }
    }

    /// When the process started, milliseconds since 1970.
    #[must_use]
    pub const fn started_ms(&self) -> u64 {
        self.started_ms
    }

    /// The process and what it waits for now.
    #[must_use]
    pub fn told(&self) -> Starting {
        let waits = self.waits.lock().clone();
        Starting { pid: std::process::id(), started_ms: self.started_ms, waits }
    }

    fn begins(&self, needed: Needed) {
        let (what, since_ms) = (needed.name().to_owned(), self.clock.now_ms());
        self.waits.lock().push(WaitFact { what, since_ms, why: None });
    }

    fn goes_on(&self, needed: Needed, error: &impl Display) {
        let mut waits = self.waits.lock();
        if let Some(wait) = waits.iter_mut().find(|wait| wait.what == needed.name()) {
            wait.why = Some(error.to_string());
        }
    }

    fn ends(&self, needed: Needed) {
        self.waits.lock().retain(|wait| wait.what != needed.name());
    }
}

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
/// then now and then; whoever reads `waiting` is told at any time. Dropping it ends it.
pub(crate) async fn until_there<T, E, F>(
    needed: Needed,
    waiting: &Waiting,
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
    let what = needed.text();
    waiting.begins(needed);
    loop {
        match ask().await {
            Ok(there) => {
                waiting.ends(needed);
                if telling.has_told() {
                    tracing::info!("{what} is available");
                }
                return Ok(there);
            }
            Err(error) if !is_passing(&error) => return Err(error),
            Err(error) => {
                waiting.goes_on(needed, &error);
                if telling.is_due(pace.silence) {
                    tracing::warn!("waiting for {what}: {error}");
                }
            }
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

    const NODE: Needed = Needed::Node;
    const MS: Duration = Duration::from_millis(1);
    const PACE: Pace = Pace { first: MS, longest: Duration::from_millis(8), silence: MS };

    #[derive(Debug)]
    struct Noon;

    impl Clock for Noon {
        fn now_ms(&self) -> u64 {
            12
        }
    }

    fn waiting() -> Waiting {
        Waiting::new(Arc::new(Noon))
    }

    #[tokio::test]
    async fn what_passes_is_waited_for_and_what_does_not_ends_the_wait() {
        let asked = Cell::new(0);
        let ask = || {
            asked.set(asked.get() + 1);
            let answer = if asked.get() < 6 { Err("away") } else { Ok("there") };
            async move { answer }
        };
        let begun = Instant::now();
        assert_eq!(Ok("there"), until_there(NODE, &waiting(), PACE, ask, |_| true).await);
        assert_eq!(6, asked.get());
        // 1, 2, 4, 8 and 8 milliseconds.
        assert!(begun.elapsed() >= 23 * MS, "{:?}", begun.elapsed());
        let wrong = || async { Err::<(), _>("wrong") };
        let ended = until_there(NODE, &waiting(), PACE, wrong, |error| *error != "wrong").await;
        assert_eq!(Err("wrong"), ended);
    }

    #[tokio::test]
    async fn what_is_waited_for_is_told_with_the_reason_until_it_is_there() {
        let (waiting, asked) = (waiting(), Cell::new(0));
        let texts = || waiting.told().waits.iter().map(WaitFact::text).collect::<Vec<_>>();
        let told = std::cell::RefCell::new(Vec::new());
        let ask = || {
            told.borrow_mut().push(texts());
            asked.set(asked.get() + 1);
            let answer = match asked.get() {
                1 => Err("no route"),
                2 => Err("refused"),
                _ => Ok(()),
            };
            async move { answer }
        };
        assert_eq!(Ok(()), until_there(NODE, &waiting, PACE, ask, |_| true).await);
        let expected = [
            "the node: it was asked and has not answered yet",
            "the node: no route",
            "the node: refused",
        ];
        assert_eq!(expected.map(|text| vec![text.to_owned()]).to_vec(), *told.borrow());
        assert_eq!(Vec::<String>::new(), texts());
    }

    #[tokio::test]
    async fn node_and_model_are_waited_for_each_for_itself() {
        let waiting = waiting();
        let away = || async { Err::<(), _>("away") };
        let node = until_there(NODE, &waiting, PACE, away, |_| true);
        let model =
            until_there(Needed::Backend, &waiting, PACE, || async { Ok::<_, &str>(()) }, |_| true);
        tokio::select! {
            biased;
            _ = node => panic!("it is away"),
            there = model => assert_eq!(Ok(()), there),
        }
        let Starting { pid, started_ms, waits } = waiting.told();
        assert_eq!((std::process::id(), 12), (pid, started_ms));
        let why = Some("away".to_owned());
        assert_eq!(vec![WaitFact { what: "node".to_owned(), since_ms: 12, why }], waits);
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
