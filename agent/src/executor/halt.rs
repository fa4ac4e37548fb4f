//! Why and when an execution is given up.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Limit;

/// Why an execution does not end in a [`Verdict`](super::Verdict).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Halt {
    /// This member cannot execute it, here and now.
    Unable(String),
    /// A limit of the call is reached, for every member alike.
    Exhausted(Limit),
}

impl From<Limit> for Halt {
    fn from(limit: Limit) -> Self {
        Self::Exhausted(limit)
    }
}

/// When a member gives up an execution, which is then [`Halt::Unable`].
#[derive(Clone, Debug)]
pub struct Stop {
    token: CancellationToken,
    until: Option<Instant>,
}

impl Stop {
    /// Until `token` is cancelled, and until then if there is a time.
    #[must_use]
    pub const fn new(token: CancellationToken, until: Option<Instant>) -> Self {
        Self { token, until }
    }

    /// What is cancelled when the miner stops.
    #[must_use]
    pub const fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// The time, if there is one.
    #[must_use]
    pub const fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether it is time.
    #[must_use]
    pub fn is_now(&self) -> bool {
        self.token.is_cancelled() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Goes on unless it is time to stop.
    ///
    /// # Errors
    /// [`Halt::Unable`].
    pub fn check(&self) -> Result<(), Halt> {
        if self.token.is_cancelled() {
            return Err(Halt::Unable("the miner stops".to_owned()));
        }
        if self.is_now() {
            return Err(Halt::Unable("the time that this miner has for it is over".to_owned()));
        }
        Ok(())
    }
}
