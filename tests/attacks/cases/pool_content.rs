//! Many accounts have a transaction each in the pool that waits for a nonce, and somebody asks again and
//! again what the pool has. An earlier version went through all senders for each one that it told of,
//! under the lock that every submission and every block needs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::{Actor, transfer};
use testkit::harness::{FAST, Town, User};
use testkit::http::Connection;
use testkit::net::NetOptions;
use testkit::parallel;
use testkit::suite::say;
use testkit::workload::keys;
use types::Keypair;

use super::blobs::Attacker;

/// Accounts whose transactions wait.
const SENDERS: usize = 30_000;
/// Who asks, from how many connections: as many as may read at the same time for one client.
const ASKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 11);
const ASKERS: usize = 8;
/// Each asks about ten times a second.
const PAUSE: Duration = Duration::from_millis(100);
/// How long.
const TIME: Duration = Duration::from_secs(10);
/// The longest that half of the submissions may take.
const SUBMIT_P50_MAX: Duration = Duration::from_millis(25);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let options = NetOptions { accounts: SENDERS + 1, ..NetOptions::new(1, 0) };
    let town = Town::of(options, FAST)?.started()?;
    let node = town.node(0)?.rpc;
    let mut keys = keys(SENDERS + 1)?;
    let user = keys.pop().context("a key")?;
    fill(node, keys)?;
    let user = User::start(node, user);
    let (asked, end) = (AtomicU64::new(0), Instant::now() + TIME);
    parallel::at_once(&[(); ASKERS], |number, ()| ask(node, number, end, &asked))?;
    let seen = user.stop()?;
    say(&format!(
        "   {} answers about the pool of {SENDERS} senders",
        asked.load(Ordering::Relaxed)
    ));
    seen.tell("questions about a pool of many senders");
    let half = seen.submit(50);
    ensure!(half < SUBMIT_P50_MAX, "half of the submissions took {half:?} and longer");
    seen.is_served()
}

/// Sends a transaction of each account, for whose turn another one is missing.
fn fill(node: SocketAddr, keys: Vec<Keypair>) -> anyhow::Result<()> {
    let first = keys.first().cloned().context("a key")?;
    let texts: Vec<String> = keys
        .into_iter()
        .map(|key| {
            let body = transfer(key.address(), 1);
            Actor { key, nonce: 1 }.draft(&body)
        })
        .collect();
    let accepted = Attacker::new(first, node)?.send(&texts)?;
    ensure!(accepted == texts.len(), "only {accepted} transactions were taken");
    Ok(())
}

/// Asks for the content of the pool in each of its forms in turn, until the time is over.
fn ask(node: SocketAddr, number: usize, end: Instant, asked: &AtomicU64) -> anyhow::Result<()> {
    let mut connection = Connection::open_from(IpAddr::V4(ASKER), node)?;
    while Instant::now() < end {
        if number.is_multiple_of(2) {
            let page = connection.call("txpool_content", &json!([{ "limit": 500 }]))?;
            let queued = page.get("queued").and_then(Value::as_object).context("no queue")?;
            ensure!(queued.len() == 500, "a page of {} senders", queued.len());
        } else {
            connection.get("/api/mempool?limit=500")?;
        }
        asked.fetch_add(1, Ordering::Relaxed);
        // The questions are a rate.
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
