//! Looks at what is outside, again and again: the node, the account, the back end; and raises alarms.

use std::sync::Arc;
use std::time::Duration;

use agent::backend::{Backend, Health};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::alarm::{Facts, alarms};
use super::record::{BackendFact, NodeAnswers};
use super::status_service::{Plan, StatusService};
use crate::chain::Ledger;
use crate::journal::entry::Parcel;

/// Looks every so often until `stop` is cancelled.
pub async fn look_out(
    status_service: Arc<StatusService>,
    ledger: Arc<dyn Ledger>,
    backend: Arc<dyn Backend>,
    every: Duration,
    stop: CancellationToken,
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let looked = async {
            ticks.tick().await;
            look(&status_service, &*ledger, &*backend).await;
        };
        if stop.run_until_cancelled(looked).await.is_none() {
            return;
        }
    }
}

async fn look(status_service: &StatusService, ledger: &dyn Ledger, backend: &dyn Backend) {
    let Plan { wallet, clock, tally, journal, alarms: config, policy, .. } = &status_service.plan;
    let answers = NodeAnswers::ask(ledger, wallet).await;
    let health = match backend.health().await {
        Health::Ready => BackendFact::Ready,
        Health::Degraded(why) => BackendFact::Degraded { why },
        Health::Down(why) => BackendFact::Down { why },
    };
    match journal.open_entries() {
        Ok(open) if open.is_empty() => (),
        Ok(_) => tally.note_work(),
        Err(error) => tracing::error!(%error, "the journal cannot be read"),
    }
    let paused = journal.paused().unwrap_or_else(|error| {
        tracing::error!(%error, "the journal cannot be read");
        Default::default()
    });
    let outbox = journal.outbox().unwrap_or_else(|error| {
        tracing::error!(%error, "the journal cannot be read");
        Vec::new()
    });
    let (now_ms, counts) = (clock.now_ms(), tally.counts());
    let policy = Arc::clone(&policy.borrow());
    let mut seen = status_service.seen.lock();
    seen.node = std::mem::take(&mut seen.node).after(answers);
    seen.backend = health;
    let facts = Facts {
        now_ms,
        config,
        policy: &policy,
        node: &seen.node,
        backend: &seen.backend,
        counts: &counts,
        paused: &paused,
        serves: status_service.serves(),
        oldest_signed_ms: outbox.iter().filter_map(Parcel::signed_ms).min(),
    };
    let found = alarms(&facts);
    seen.alarms.update(found, now_ms);
}
