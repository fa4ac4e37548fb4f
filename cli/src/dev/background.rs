//! A miner or a gateway that works beside a chain for one person, until it is asked to stop.

use std::fmt::Display;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::{CliError, Outcome};

/// How long it may take to stop. What it was doing goes on at the next start.
const STOP_TIME: Duration = Duration::from_secs(5);

/// A program that works in the background.
pub(super) struct Background<E> {
    /// What it is called: "miner".
    pub(super) name: &'static str,
    /// Why a chain stops when it has ended: "the miner ended".
    pub(super) ended: &'static str,
    /// Asks it to stop.
    pub(super) stop: CancellationToken,
    /// Its work.
    pub(super) work: JoinHandle<Result<(), E>>,
    /// Gives its failure an exit code.
    pub(super) failed: fn(E) -> CliError,
}

impl<E> Background<E> {
    /// Works until `asked` ends, and stops then. Answers why it ended, and how.
    pub(super) async fn run_until(
        &mut self,
        asked: impl Future<Output = &'static str>,
    ) -> (&'static str, Outcome) {
        let Self { name, ended: reason, stop, work, failed } = self;
        tokio::select! {
            biased;
            why = asked => {
                stop.cancel();
                let Ok(ended) = timeout(STOP_TIME, &mut *work).await else {
                    tracing::warn!("the {name} did not stop in time");
                    work.abort();
                    return (why, Ok(()));
                };
                (why, outcome(name, ended, *failed))
            }
            ended = &mut *work => {
                let ended = outcome(name, ended, *failed).and_then(|()| {
                    Err(CliError::Failed(format!("the {name} stopped unexpectedly")))
                });
                (*reason, ended)
            }
        }
    }
}

fn outcome<E, J: Display>(
    name: &str,
    ended: Result<Result<(), E>, J>,
    failed: fn(E) -> CliError,
) -> Outcome {
    match ended {
        Ok(outcome) => outcome.map_err(failed),
        Err(ended) => Err(CliError::Failed(format!("the {name}: {ended}"))),
    }
}
