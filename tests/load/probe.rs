//! One client beside the load that does what a wallet does: sends a transfer, waits until it is
//! included, and sends the next.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use testkit::actor::Actor;
use testkit::http::Connection;
use testkit::parallel::joined;
use testkit::workload::key;
use types::tx::Transfer;
use types::{Amount, Body};

/// The client at work.
pub(crate) struct Probe {
    over: Arc<AtomicBool>,
    worker: JoinHandle<anyhow::Result<Vec<Duration>>>,
}

impl Probe {
    /// Starts it with the account of this number.
    pub(crate) fn start(rpc: SocketAddr, account: usize) -> anyhow::Result<Self> {
        let actor = Actor::new(key(account)?);
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let worker = std::thread::spawn(move || work(rpc, actor, &stop));
        Ok(Self { over, worker })
    }

    /// Ends it; answers the times from submission to inclusion, ascending.
    pub(crate) fn stop(self) -> anyhow::Result<Vec<Duration>> {
        self.over.store(true, Ordering::Relaxed);
        let mut times = joined(self.worker.join(), "the probe")?;
        times.sort_unstable();
        Ok(times)
    }
}

fn work(rpc: SocketAddr, mut actor: Actor, over: &AtomicBool) -> anyhow::Result<Vec<Duration>> {
    let mut connection = Connection::open(rpc)?;
    let mut times = Vec::new();
    let transfer: Body = Transfer::new(actor.address(), Amount::new(1), Amount::new(1)).into();
    while !over.load(Ordering::Relaxed) {
        let text = actor.sign(&transfer);
        let begun = Instant::now();
        let sent = connection.send(&text)?;
        let hash = sent["result"]["hash"].as_str().with_context(|| sent.to_string())?;
        let seen = connection.call("ombra_waitForTransaction", &json!([hash]))?;
        anyhow::ensure!(seen["status"] == "included", "the probe's transfer is {seen}");
        times.push(begun.elapsed());
    }
    Ok(times)
}
