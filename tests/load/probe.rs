//! One client beside the load that does what a wallet does: sends a transfer, waits until it is
//! included, and sends the next.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use testkit::http::{self, Connection};
use testkit::workload::{envelope, keys};
use types::build;
use types::tx::Transfer;
use types::{Amount, Keypair};

/// The client at work.
pub(crate) struct Probe {
    over: Arc<AtomicBool>,
    worker: JoinHandle<anyhow::Result<Vec<Duration>>>,
}

impl Probe {
    /// Starts it with the account of this number.
    pub(crate) fn start(rpc: SocketAddr, account: usize) -> anyhow::Result<Self> {
        let key = keys(account + 1)?.pop().context("no account for the probe")?;
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let worker = std::thread::spawn(move || work(rpc, &key, &stop));
        Ok(Self { over, worker })
    }

    /// Ends it; answers the times from submission to inclusion, ascending.
    pub(crate) fn stop(self) -> anyhow::Result<Vec<Duration>> {
        self.over.store(true, Ordering::Relaxed);
        let times = self.worker.join().map_err(|_panic| anyhow::anyhow!("the probe panicked"))?;
        let mut times = times?;
        times.sort_unstable();
        Ok(times)
    }
}

fn work(rpc: SocketAddr, key: &Keypair, over: &AtomicBool) -> anyhow::Result<Vec<Duration>> {
    let mut connection = Connection::open(rpc)?;
    let mut times = Vec::new();
    let transfer = Transfer::new(key.address(), Amount::new(1), Amount::new(1));
    for nonce in 0.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let text = build::build_tx(key, &transfer.clone().into(), &envelope(nonce));
        let begun = Instant::now();
        let sent: Value = serde_json::from_str(&connection.post(&http::send_body(&[text]))?)?;
        let hash = sent["result"]["hash"].as_str().with_context(|| sent.to_string())?;
        let seen = connection.call("ombra_waitForTransaction", &json!([hash]))?;
        anyhow::ensure!(seen["status"] == "included", "the probe's transfer is {seen}");
        times.push(begun.elapsed());
    }
    Ok(times)
}
