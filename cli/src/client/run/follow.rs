//! Following a run: events say that something happened, the run's record says what.
//!
//! So a lost or repeated event costs nothing, and a run that was already under way is shown whole.

use std::time::Duration;

use serde_json::{Map, json};
use tokio::time::{Instant, sleep, sleep_until};
use types::Hash;
use wallet::client::records::Run;
use wallet::{Answer, Client, ClientError, Events, Kind};

use super::display::Display;
use crate::client::{CliError, Out, Outcome};

/// The record is read again after this time even when no event comes.
const REFRESH: Duration = Duration::from_secs(5);
/// A node that is away longer is given up; shorter, it may be restarting.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// Shows a run until it is settled, or until the deadline.
///
/// # Errors
/// When the node stays away, or the time is over; the run itself goes on then.
pub(crate) async fn follow(
    client: &Client,
    id: Hash,
    display: &mut Display,
    deadline: Option<Instant>,
    out: Out<'_>,
) -> Result<Answer<Run>, CliError> {
    let filter = Map::from_iter([("agentRunId".to_owned(), json!(id))]);
    let mut events: Events = client.subscribe(Kind::AgentRuns, filter, None).await?;
    let mut reached = Instant::now();
    loop {
        match display.refresh(client, out).await {
            Ok(run) if run.is_settled() => return Ok(run),
            Ok(_) => reached = Instant::now(),
            Err(CliError::Client(error))
                if error.retry_after().is_some() && reached.elapsed() < AWAY_MAX =>
            {
                display.away(&CliError::Client(error), out)?;
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            event = events.next() => tolerate(event)?,
            () = sleep(REFRESH) => {}
            () = until(deadline) => return Err(CliError::Failed("--timeout has passed".into())),
        }
    }
}

/// An event only says that something happened; a stream that is away is left to the refresh.
fn tolerate(event: Result<Answer, ClientError>) -> Outcome {
    match event {
        Ok(_) => Ok(()),
        Err(error) if error.retry_after().is_some() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Ends at the deadline; never, without one.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
