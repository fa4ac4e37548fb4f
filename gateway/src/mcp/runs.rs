//! `get_run`, `get_call` and `cancel`: what the key asked for.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use types::Hash;

use super::answer::{self, Told};
use super::arguments::{Arguments, CALL_ID, RUN_ID, WAIT_SECONDS, WAIT_SECONDS_MAX};
use super::watch::{Seen, Watcher};
use crate::keys::Key;
use crate::openai::ApiFault;
use crate::record::{Phase, Record, RequestId, Unpaid};
use crate::request_service::{Progress, RequestService};
use crate::store::TakenBack;

/// How far a run is, or its answer.
pub(super) async fn get_run(
    (service, key): (&Arc<RequestService>, Key),
    given: Option<JsonObject>,
    watcher: &mut Watcher<'_>,
) -> Result<Told, ApiFault> {
    let arguments = Arguments::of(given, &[RUN_ID, WAIT_SECONDS])?;
    let record = made(service, &key, arguments.id(RUN_ID)?)?;
    look(service, &record, arguments.wait_seconds(0)?, watcher).await
}

/// How far a call is, or its answer.
pub(super) async fn get_call(
    (service, key): (&Arc<RequestService>, Key),
    given: Option<JsonObject>,
    watcher: &mut Watcher<'_>,
) -> Result<Told, ApiFault> {
    let arguments = Arguments::of(given, &[CALL_ID, WAIT_SECONDS])?;
    let call = arguments.id(CALL_ID)?;
    let record = service.made(key.id, call)?.filter(|it| !it.work.is_run());
    let record = record.ok_or_else(|| ApiFault::no_such_call(CALL_ID, &call))?;
    look(service, &record, arguments.wait_seconds(0)?, watcher).await
}

async fn look(
    service: &Arc<RequestService>,
    record: &Record,
    wait_seconds: u64,
    watcher: &mut Watcher<'_>,
) -> Result<Told, ApiFault> {
    // What has ended only has to be fetched.
    let seconds = if record.is_over() { WAIT_SECONDS_MAX } else { wait_seconds };
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut progress = service.follow_on(record.id);
    let named = |now: &Progress| Progress { run: record.run(), call: record.call(), ..now.clone() };
    match watcher.until(&mut progress, deadline, |_| false).await {
        Seen::Ended(ended) => Ok(Told::well(answer::ended(&named(&progress.borrow()), &ended))),
        Seen::Running(now) => Ok(Told::well(answer::running(&named(&now)))),
        Seen::Gone => Err(ApiFault::still_running()),
    }
}

/// Takes a run back that waits for a miner.
pub(super) async fn cancel(
    (service, key): (&Arc<RequestService>, Key),
    given: Option<JsonObject>,
    watcher: &mut Watcher<'_>,
) -> Result<Told, ApiFault> {
    let run = Arguments::of(given, &[RUN_ID])?.id(RUN_ID)?;
    let record = made(service, &key, run)?;
    if matches!(record.phase, Phase::Unpaid { why: Unpaid::Cancelled, .. }) {
        return Ok(Told::well(cancelled(run)));
    }
    let deadline = Instant::now() + Duration::from_secs(WAIT_SECONDS_MAX);
    let mut progress = service.follow_on(record.id);
    mark(service, record.id, &mut progress, watcher, deadline).await?;
    match watcher.until(&mut progress, deadline, |it| it.is_claimed).await {
        Seen::Ended(ended) => match &*ended {
            Err(fault) if *fault == ApiFault::cancelled() => Ok(Told::well(cancelled(run))),
            Ok(_) | Err(_) => Err(ApiFault::not_cancellable("it has ended in the meantime")),
        },
        Seen::Running(now) if now.is_claimed => Err(claimed()),
        Seen::Running(_) => Ok(Told::well(json!({ "status": "cancelling", "runId": run }))),
        Seen::Gone => Err(ApiFault::still_running()),
    }
}

fn made(service: &RequestService, key: &Key, run: Hash) -> Result<Record, ApiFault> {
    let record = service.made(key.id, run)?.filter(|it| it.work.is_run());
    record.ok_or_else(|| ApiFault::no_such_run(RUN_ID, &run))
}

/// Marks the run, as soon as it is on the chain.
async fn mark(
    service: &Arc<RequestService>,
    id: RequestId,
    progress: &mut watch::Receiver<Progress>,
    watcher: &mut Watcher<'_>,
    deadline: Instant,
) -> Result<(), ApiFault> {
    loop {
        match service.take_back(id).await? {
            TakenBack::Marked(_) => return Ok(()),
            TakenBack::Claimed => return Err(claimed()),
            TakenBack::Over => return Err(ApiFault::not_cancellable("it has ended")),
            TakenBack::TooEarly => (),
        }
        let seen = watcher.until(progress, deadline, |it| it.request_tx.is_some()).await;
        if !matches!(seen, Seen::Running(Progress { request_tx: Some(_), .. })) {
            return Err(ApiFault::not_cancellable("it is not on the chain yet"));
        }
    }
}

fn claimed() -> ApiFault {
    ApiFault::not_cancellable("a miner works on it")
}

fn cancelled(run: Hash) -> Value {
    json!({ "status": "cancelled", "runId": run })
}
