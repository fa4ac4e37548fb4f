//! `get_run` and `cancel`: runs that the key asked for.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use types::Hash;

use super::answer::{self, Told};
use super::arguments::{Arguments, RUN_ID, WAIT_SECONDS, WAIT_SECONDS_MAX};
use super::watch::{Seen, Watcher};
use crate::desk::{Desk, Progress};
use crate::keys::Key;
use crate::openai::Fault;
use crate::record::{Phase, Record, RequestId, Unpaid};
use crate::store::TakenBack;

/// How far a run is, or its answer.
pub(super) async fn get_run(
    (desk, key): (&Arc<Desk>, Key),
    given: Option<JsonObject>,
    watcher: &mut Watcher<'_>,
) -> Result<Told, Fault> {
    let arguments = Arguments::of(given, &[RUN_ID, WAIT_SECONDS])?;
    let run = arguments.run_id()?;
    let wait_seconds = arguments.wait_seconds(0)?;
    let record = made(desk, &key, run)?;
    // What has ended only has to be fetched.
    let seconds = if record.is_over() { WAIT_SECONDS_MAX } else { wait_seconds };
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut progress = desk.follow_on(record.id);
    match watcher.until(&mut progress, deadline, |_| false).await {
        Seen::Ended(ended) => Ok(Told::well(answer::ended(Some(run), &ended))),
        Seen::Running(now) => Ok(Told::well(answer::running(Some(run), &now))),
        Seen::Gone => Err(Fault::still_running()),
    }
}

/// Takes a run back that waits for a miner.
pub(super) async fn cancel(
    (desk, key): (&Arc<Desk>, Key),
    given: Option<JsonObject>,
    watcher: &mut Watcher<'_>,
) -> Result<Told, Fault> {
    let run = Arguments::of(given, &[RUN_ID])?.run_id()?;
    let record = made(desk, &key, run)?;
    if matches!(record.phase, Phase::Unpaid { why: Unpaid::Cancelled, .. }) {
        return Ok(Told::well(cancelled(run)));
    }
    let deadline = Instant::now() + Duration::from_secs(WAIT_SECONDS_MAX);
    let mut progress = desk.follow_on(record.id);
    mark(desk, record.id, &mut progress, watcher, deadline).await?;
    match watcher.until(&mut progress, deadline, |it| it.is_claimed).await {
        Seen::Ended(ended) => match &*ended {
            Err(fault) if *fault == Fault::cancelled() => Ok(Told::well(cancelled(run))),
            Ok(_) | Err(_) => Err(Fault::not_cancellable("it ended meanwhile")),
        },
        Seen::Running(now) if now.is_claimed => Err(claimed()),
        Seen::Running(_) => Ok(Told::well(json!({ "status": "cancelling", "runId": run }))),
        Seen::Gone => Err(Fault::still_running()),
    }
}

fn made(desk: &Desk, key: &Key, run: Hash) -> Result<Record, Fault> {
    desk.made(key.id, run)?.ok_or_else(|| Fault::no_such_run(RUN_ID, &run))
}

/// Marks the run, as soon as it is on the chain.
async fn mark(
    desk: &Arc<Desk>,
    id: RequestId,
    progress: &mut watch::Receiver<Progress>,
    watcher: &mut Watcher<'_>,
    deadline: Instant,
) -> Result<(), Fault> {
    loop {
        match desk.take_back(id).await? {
            TakenBack::Marked(_) => return Ok(()),
            TakenBack::Claimed => return Err(claimed()),
            TakenBack::Over => return Err(Fault::not_cancellable("it has ended")),
            TakenBack::TooEarly => (),
        }
        let seen = watcher.until(progress, deadline, |it| it.request_tx.is_some()).await;
        if !matches!(seen, Seen::Running(Progress { request_tx: Some(_), .. })) {
            return Err(Fault::not_cancellable("it is not on the chain yet"));
        }
    }
}

fn claimed() -> Fault {
    Fault::not_cancellable("a miner works on it")
}

fn cancelled(run: Hash) -> Value {
    json!({ "status": "cancelled", "runId": run })
}
