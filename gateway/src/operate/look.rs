//! Looks at the store and the node, again and again, so that whoever asks how the gateway is has not to
//! wait for them.

use std::sync::Arc;
use std::time::Duration;

use miner::journal::JournalError;
use serde::Deserialize;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::seen::{Check, Seen};
use crate::request_service::RequestService;

/// How long the node may take to say what the wallet has.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is read of a transaction.
#[derive(Deserialize)]
struct Dated {
    timestamp: u64,
}

impl RequestService {
    /// How it was seen last.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.watch.seen.lock().clone()
    }

    /// Connections of clients.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.watch.connections.get()
    }

    /// Answers that are being streamed.
    #[must_use]
    pub fn streams(&self) -> u64 {
        self.watch.streams.get()
    }

    /// Calls that the node did not answer.
    #[must_use]
    pub fn node_failures(&self) -> u64 {
        self.node.client.failures()
    }

    /// The least that the wallet should have left, micro-OMBRA.
    #[must_use]
    pub const fn balance_micro_min(&self) -> u64 {
        self.settings.balance_micro_min
    }

    /// How long the oldest transaction of the outbox has waited, milliseconds; 0 if there is none.
    #[must_use]
    pub fn oldest_waits_ms(&self) -> u64 {
        let oldest_ms = self.watch.seen.lock().oldest_ms;
        oldest_ms.map_or(0, |then_ms| self.clock.now_ms().saturating_sub(then_ms))
    }

    /// Whether the gateway can work, and what stands in the way.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let (seen, is_open) = (self.seen(), self.is_open());
        let detail = |is_ok: bool, well: &str, ill: &str| if is_ok { well } else { ill }.to_owned();
        let (left_micro, least_micro) = (seen.left_micro(), self.settings.escrow_micro_min);
        let left = left_micro.map_or_else(|| "not known".to_owned(), |it| format!("{it} micro"));
        let open = detail(
            is_open,
            "the gateway accepts requests",
            "the gateway is still finishing work from before its start, or is stopping",
        );
        let node = detail(seen.is_node_there, "the node answers", "the node does not answer");
        let store =
            detail(seen.is_store_readable, "it can be read", "it cannot be read; the log says why");
        let balance = format!("left {left}; the least escrow is {least_micro} micro");
        let is_rich = left_micro.is_some_and(|left_micro| left_micro >= least_micro);
        let check = |name, is_ok, detail| Check { name, is_ok, detail };
        vec![
            check("open", is_open, open),
            check("node", seen.is_node_there, node),
            check("store", seen.is_store_readable, store),
            check("balance", is_rich, balance),
        ]
    }

    /// Looks every so often, until the service is stopped.
    pub async fn look_out(self: Arc<Self>, every: Duration) {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let looking = async {
            loop {
                ticks.tick().await;
                self.look().await;
            }
        };
        self.stop.run_until_cancelled(looking).await;
    }

    /// Looks at the store, and asks the node.
    async fn look(self: &Arc<Self>) {
        let service = Arc::clone(self);
        // The disk is read on a thread that may wait for it.
        let read = tokio::task::spawn_blocking(move || service.look_at_store());
        let is_readable = match read.await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot read the store");
                false
            }
            Err(_panic) => false,
        };
        let wallet = self.wallet();
        let asked = timeout(PATIENCE, self.node.balance_micro(&wallet)).await;
        let balance_micro = asked.ok().and_then(Result::ok);
        let mut seen = self.watch.seen.lock();
        seen.is_store_readable = is_readable;
        seen.is_node_there = balance_micro.is_some();
        seen.balance_micro = balance_micro.or(seen.balance_micro);
    }

    fn look_at_store(&self) -> Result<(), JournalError> {
        let open = self.store.open_requests()?;
        let outbox = self.store.outbox()?;
        let signed = |text: &str| serde_json::from_str(text).ok().map(|it: Dated| it.timestamp);
        let oldest_ms = outbox.iter().filter_map(|(slip, _)| signed(&slip.text)).min();
        let outbox = u64::try_from(outbox.len()).unwrap_or(u64::MAX);
        let mut seen = self.watch.seen.lock();
        *seen = std::mem::take(&mut *seen).of_store(&open, outbox, oldest_ms);
        Ok(())
    }
}
