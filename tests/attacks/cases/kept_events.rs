//! Somebody subscribes to the pool and takes nothing, while an account has the pool drop large transactions
//! for next to nothing: chunks of a blob that does not exist wait for a nonce, and are dropped as soon as it
//! comes. In an earlier version, the node kept the last 4,096 events for the subscriber, however large.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::actor::{people, transfer};
use testkit::harness::{Town, User};
use testkit::http::send_body;
use testkit::net::Member;
use testkit::suite::say;
use testkit::websocket::WebSocket;

use super::blobs::{Attacker, chunk};

/// Where the subscriber connects from.
const SUBSCRIBER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 11));
/// Chunks that wait for one nonce: as many as an account may have.
const CHUNKS: u64 = 60;
/// How often they are sent before anybody listens, and then.
const ROUNDS_BEFORE: u64 = 4;
const ROUNDS: u64 = 12;
/// What the node may grow by meanwhile, in MiB: a large transaction takes one.
const GROWTH_MAX: u64 = 192;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(1, 0)?;
    let node = town.node(0)?;
    let [user, account] = people()?.map(|it| it.key);
    let user = User::start(node.rpc, user);
    let mut attacker = Attacker::new(account, node.rpc)?;
    (0..ROUNDS_BEFORE).try_for_each(|_| drop_chunks(&mut attacker))?;
    let (before, dropped) = (memory_mib(node)?, dropped(node)?);

    let subscriber = listen(node.rpc)?;
    (0..ROUNDS).try_for_each(|_| drop_chunks(&mut attacker))?;
    let (after, dropped) = (memory_mib(node)?, self::dropped(node)? - dropped);
    drop(subscriber);
    let seen = user.stop()?;
    let growth = after.saturating_sub(before);
    say(&format!(
        "   {dropped} large transactions were dropped for {ROUNDS} small ones: the node has {growth} MiB more than the {before} MiB before somebody subscribed"
    ));
    seen.tell("under attack");
    ensure!(dropped >= ROUNDS * CHUNKS, "only {dropped} were dropped: this proves nothing");
    ensure!(
        growth <= GROWTH_MAX,
        "the node keeps {growth} MiB for a subscriber that takes nothing"
    );
    seen.is_served()
}

/// Subscribes to all that happens in the pool; nothing of it is ever read.
fn listen(node: SocketAddr) -> anyhow::Result<WebSocket> {
    let mut socket = WebSocket::open_from(SUBSCRIBER, node)?;
    socket.subscribe("pool", &json!({}))?;
    Ok(socket)
}

/// Sends chunks of no blob that wait for a nonce, and then what has this nonce.
fn drop_chunks(attacker: &mut Attacker) -> anyhow::Result<()> {
    let address = attacker.actor.address();
    let first = attacker.actor.sign(&transfer(address, 1));
    for number in 0..CHUNKS {
        let waits = attacker.actor.at(attacker.actor.nonce + number);
        let text = waits.draft(&chunk("no-blob", number, CHUNKS + 1));
        let answer = attacker.post(&send_body(&[text]))?;
        ensure!(answer.contains(r#""result""#), "chunk {number} was not taken: {answer}");
    }
    ensure!(attacker.send(&[first])? == 1, "the transfer was not taken");
    Ok(())
}

fn memory_mib(node: &Member) -> anyhow::Result<u64> {
    Ok(node.memory_kb("VmRSS")? / 1024)
}

fn dropped(node: &Member) -> anyhow::Result<u64> {
    node.metric("ombra_txpool_dropped_total").context("what was dropped")
}
