//! Waiting for a node: pauses that grow, and the two reasons why work ends before it is done.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::chain::ChainError;
use crate::journal::JournalError;

/// Why work ends before it is done.
#[derive(Debug)]
pub enum Halt {
    /// The program is being stopped.
    Stopped,
    /// The journal cannot be used.
    Journal(JournalError),
}

impl From<JournalError> for Halt {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// The longest pause is this many times the first.
const GROWTH_MAX: u32 = 30;

/// Pauses, each twice the one before.
#[derive(Debug)]
pub struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    /// The first pause takes so long.
    #[must_use]
    pub fn new(first_ms: u64) -> Self {
        let next = Duration::from_millis(first_ms);
        Self { next, longest: next.saturating_mul(GROWTH_MAX) }
    }

    /// Waits.
    ///
    /// # Errors
    /// When the program is being stopped.
    pub async fn pause(&mut self, stop: &CancellationToken) -> Result<(), Halt> {
        let now = self.next;
        self.next = self.next.saturating_mul(2).min(self.longest);
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(Halt::Stopped),
            () = sleep(now) => Ok(()),
        }
    }
}

/// Asks the node until it answers; a node that is away or strange never ends the work.
///
/// # Errors
/// When the program is being stopped.
pub async fn patiently<T, F>(
    pause_ms: u64,
    stop: &CancellationToken,
    ask: &mut impl FnMut() -> F,
) -> Result<T, Halt>
where
    F: Future<Output = Result<T, ChainError>>,
{
    let mut pauses = Pauses::new(pause_ms);
    loop {
        let answer = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(Halt::Stopped),
            answer = ask() => answer,
        };
        match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => tracing::warn!(%error, "asking the node again"),
        }
        pauses.pause(stop).await?;
    }
}
