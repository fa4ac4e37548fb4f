//! Subscriptions to the runs and the calls of the wallet, which wake whoever waits for one of them.
//!
//! An event only says that something happened; what happened is in the record of the run or the call. So
//! a lost event costs a moment and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use types::{Address, Hash};
use wallet::{Client, Kind};

/// Between two attempts to subscribe.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an event may come after the record that it is about.
const EVENT_PATIENCE: Duration = Duration::from_millis(500);

/// What ended a run or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedBy {
    /// The transaction; none for a call, which a block settles.
    pub(crate) tx: Option<Hash>,
    pub(crate) block: u64,
}

#[derive(Debug, Default)]
struct Waited {
    notify: Arc<Notify>,
    ended_by: Option<EndedBy>,
}

/// Who waits for which run or call.
#[derive(Debug, Default)]
pub(crate) struct ChainEvents(Mutex<BTreeMap<Hash, Waited>>);

impl ChainEvents {
    /// What is notified when something happens to a run. It is told of until it is left.
    pub(crate) fn wait_for(&self, run: Hash) -> Arc<Notify> {
        Arc::clone(&self.0.lock().entry(run).or_default().notify)
    }

    /// Has whoever waits for a run look at it now.
    pub(crate) fn wake(&self, run: &Hash) {
        if let Some(waited) = self.0.lock().get(run) {
            waited.notify.notify_one();
        }
    }

    /// What ended a run, waiting a little for it: the record of a run may be there before its event.
    pub(crate) async fn ended_by(&self, run: Hash) -> Option<EndedBy> {
        let notify = self.wait_for(run);
        let seen = async {
            loop {
                let known = self.0.lock().get(&run).and_then(|it| it.ended_by);
                if known.is_some() {
                    return known;
                }
                notify.notified().await;
            }
        };
        let seen = tokio::time::timeout(EVENT_PATIENCE, seen).await.ok().flatten();
        self.leave(&run);
        seen
    }

    /// Nobody waits for a run any more; what ended it, if that was seen.
    pub(crate) fn leave(&self, run: &Hash) -> Option<EndedBy> {
        self.0.lock().remove(run)?.ended_by
    }

    /// Watches until it is stopped.
    pub(crate) async fn watch(&self, client: &Client, wallet: Address, stop: &CancellationToken) {
        tokio::join!(
            self.watch_one(client, (Kind::AgentRuns, "submitter", wallet), stop),
            self.watch_one(client, (Kind::Calls, "requester", wallet), stop),
        );
    }

    async fn watch_one(
        &self,
        client: &Client,
        subject: (Kind, &str, Address),
        stop: &CancellationToken,
    ) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                why = self.follow(client, subject) => {
                    let what = subject.0.name();
                    tracing::warn!(why, what, "a subscription ended; polling instead");
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PAUSE) => (),
            }
        }
    }

    /// Follows one subscription; why it ended.
    async fn follow(&self, client: &Client, (kind, role, wallet): (Kind, &str, Address)) -> String {
        let filter = Map::from_iter([(role.to_owned(), json!(wallet))]);
        let mut events = match client.subscribe(kind, filter, None).await {
            Ok(events) => events,
            Err(error) => return error.to_string(),
        };
        self.wake_all();
        loop {
            match events.next().await {
                Ok(event) => self.tell(&event),
                Err(error) => return error.to_string(),
            }
        }
    }

    /// Something may have happened to anything before the subscription began.
    fn wake_all(&self) {
        for waited in self.0.lock().values() {
            waited.notify.notify_one();
        }
    }

    fn tell(&self, event: &Value) {
        let id = event["agentRunId"].as_str().or_else(|| event["callId"].as_str());
        let Some(id) = id.and_then(|text| text.parse().ok()) else { return };
        let mut all = self.0.lock();
        let Some(waited) = all.get_mut(&id) else { return };
        if ["finished", "settled", "unassigned"].iter().any(|end| event["event"] == *end) {
            let tx = event["hash"].as_str().and_then(|text| text.parse().ok());
            let block = event["blockIndex"].as_u64();
            waited.ended_by = block.map(|block| EndedBy { tx, block });
        }
        waited.notify.notify_one();
    }
}

#[cfg(test)]
mod tests {
    //! Who is woken, and what is remembered.

    use serde_json::json;
    use types::Hash;

    use super::{ChainEvents, EndedBy};

    #[tokio::test]
    async fn who_waits_for_a_run_is_told_of_it_and_of_its_end() {
        let chain_events = ChainEvents::default();
        let (run, other) = (Hash::digest(b"run"), Hash::digest(b"other"));
        let notify = chain_events.wait_for(run);
        let event = |run: Hash, event: &str| json!({ "event": event, "agentRunId": run, "hash": Hash::ZERO, "blockIndex": 7 });
        chain_events.tell(&event(other, "claimed"));
        chain_events.tell(&event(run, "claimed"));
        notify.notified().await;
        chain_events.tell(&event(run, "finished"));
        notify.notified().await;
        assert_eq!(Some(EndedBy { tx: Some(Hash::ZERO), block: 7 }), chain_events.leave(&run));
        assert_eq!(None, chain_events.leave(&run));
    }

    #[tokio::test]
    async fn a_call_is_settled_by_a_block() {
        let (chain_events, call) = (ChainEvents::default(), Hash::digest(b"call"));
        let notify = chain_events.wait_for(call);
        chain_events.tell(&json!({ "event": "elected", "callId": call, "blockIndex": 6 }));
        notify.notified().await;
        chain_events.tell(&json!({ "event": "settled", "callId": call, "blockIndex": 9 }));
        assert_eq!(Some(EndedBy { tx: None, block: 9 }), chain_events.ended_by(call).await);
    }
}
