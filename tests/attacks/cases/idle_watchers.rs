//! As many WebSockets as a node takes, each with as many subscriptions as it may have: three in four to the
//! pool, for accounts that nobody has, the others to calls that nobody makes. They hear nothing, and their
//! owner reads nothing, while others send transactions. In an earlier version each transaction woke each
//! subscription to the pool, under the lock that every submission and every block needs, and each block woke
//! the others on the threads of consensus.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::harness::{Town, User};
use testkit::parallel::{at_once, beside};
use testkit::suite::say;
use testkit::websocket::WebSocket;
use testkit::workload::keys;
use types::{Address, Hash, Keypair};

use super::full_pool::flood;

/// Addresses of whoever watches, from `127.0.0.11` on.
const ADDRESSES: u8 = 4;
/// Each has a share of a quarter of 128 WebSockets.
const SOCKETS: usize = 32;
/// Subscriptions on each.
const SUBSCRIPTIONS: usize = 64;
/// Those who send as fast as transactions are taken.
const SENDERS: usize = 3;
/// How long they send without and with watchers.
const QUIET: Duration = Duration::from_secs(5);
const WATCHED: Duration = Duration::from_secs(10);
/// The longest that a submission may take beside them, at the 99th percentile.
const SUBMIT_P99_MAX: Duration = Duration::from_millis(300);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(1, 0)?;
    let node = town.node(0)?.rpc;
    let mut senders = keys(SENDERS + 1)?;
    let user = senders.pop();
    let before = rate(node, &senders, QUIET)?;
    let places = (0..ADDRESSES).flat_map(|it| std::iter::repeat_n(11 + it, SOCKETS));
    let watchers: Vec<WebSocket> =
        places.map(|last| watch(node, last)).collect::<anyhow::Result<_>>()?;
    let user = user.map(|key| User::start(node, key));
    let watched = rate(node, &senders, WATCHED)?;
    let seen = user.map(User::stop).transpose()?;
    say(&format!(
        "   {} subscriptions on {} WebSockets: {watched} transactions a second were taken, {before} before",
        watchers.len() * SUBSCRIPTIONS,
        watchers.len(),
    ));
    drop(watchers);
    let Some(seen) = seen else { anyhow::bail!("there was no user") };
    seen.tell("beside the watchers");
    let slowest = seen.submit(99);
    ensure!(slowest < SUBMIT_P99_MAX, "the user's submissions took up to {slowest:?} (p99)");
    seen.is_served()
}

/// Transactions that are taken in a second while all of these send for so long.
fn rate(node: SocketAddr, senders: &[Keypair], time: Duration) -> anyhow::Result<u128> {
    let wait = || {
        // The time of a measurement.
        std::thread::sleep(time);
        anyhow::Ok(())
    };
    let ((), sent) = beside(wait, |over| at_once(senders, |_, key| flood(key, node, over)))?;
    let sent = u128::try_from(sent.into_iter().sum::<usize>())?;
    Ok(sent * 1_000 / time.as_millis())
}

/// Opens a WebSocket from this address, and subscribes to what never comes.
fn watch(node: SocketAddr, last: u8) -> anyhow::Result<WebSocket> {
    let mut socket = WebSocket::open_from(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), node)?;
    let (nobody, no_call) = (Address::new([7; 20]), Hash::digest(b"no call"));
    let wanted: [(&str, Value); 4] = [
        ("pool", json!({ "address": nobody })),
        ("pool", json!({ "address": nobody, "type": "TRANSFER" })),
        ("pool", json!({ "address": nobody, "type": "CHAT_TURN" })),
        ("calls", json!({ "callId": no_call })),
    ];
    for (kind, filter) in wanted.iter().cycle().take(SUBSCRIPTIONS) {
        socket.subscribe(kind, filter)?;
    }
    Ok(socket)
}
