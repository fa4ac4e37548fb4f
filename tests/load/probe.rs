//! One client beside the load that does what a wallet does: sends a transfer, waits until it is
//! included, and sends the next.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use testkit::actor::Actor;
use testkit::http::Connection;
use testkit::parallel::Worker;
use testkit::workload::key;
use types::tx::Transfer;
use types::{Amount, Body};

/// The client at work.
pub(crate) struct Probe(Worker<Vec<Duration>>);

impl Probe {
    /// Starts it with the account of this number.
    pub(crate) fn start(rpc: SocketAddr, account: usize) -> anyhow::Result<Self> {
        let actor = Actor::new(key(account)?);
        Ok(Self(Worker::start(move |over| work(rpc, actor, over))))
    }

    /// Ends it; answers the times from submission to inclusion, ascending.
    pub(crate) fn stop(self) -> anyhow::Result<Vec<Duration>> {
        let mut times = self.0.stop().context("the probe")?;
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
