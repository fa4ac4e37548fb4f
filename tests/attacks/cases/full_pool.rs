//! Strangers with little money keep a small pool full of transactions that offer nothing, more of them
//! than blocks take. Whoever offers a tip gets in and into a block all the same.
//!
//! What is said at the end is what the strangers paid for it, and what a tip had to be meanwhile.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::{Actor, people, transfer};
use testkit::harness::{INCLUSION_P99_MAX, Town};
use testkit::http::Connection;
use testkit::net::Member;
use testkit::node::wait_until;
use testkit::parallel::{at_once, beside};
use testkit::suite::say;
use types::tx::Transfer;
use types::{Amount, Body, Hash, Keypair};

use super::blobs::Attacker;
use super::sending::{Senders, wealth};

/// Blocks of about 250 transfers, ten a second, so that the strangers can send more than that.
const PARAMS: &[&str] = &[
    "minBlockIntervalMs=100",
    "heartbeatMs=1000",
    "maxBlockBytes=131072",
    "maxBlobBytes=1000",
    "maxTxBytes=20480",
    "maxChunkTxBytes=20480",
];
/// So many transactions does the pool take.
const POOL: usize = 4_000;
const STRANGERS: usize = 8;
/// What each stranger has, in micro: fees for some thousand transactions.
const MONEY: u64 = 1_000_000;
/// What the payer offers, in micro, which is 0.002 OMBRA.
const TIP: u64 = 2_000;
/// How long the payer is watched, and how often it pays.
const TIME: Duration = Duration::from_secs(15);
const PERIOD: Duration = Duration::from_millis(250);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::from_v7(1, 0, PARAMS)?;
    let settings = [("OMBRA__TXPOOL__COUNT_MAX", POOL.to_string())];
    town.node_mut(0)?.start_with(&settings)?;
    let node = town.node(0)?;
    let [rich, payer] = people()?;
    let strangers = fund(node, rich.key)?;
    let before = wealth(&mut Senders::open(node.rpc)?, &strangers)?;

    let (waits, sent) = beside(
        || pay(node, payer),
        |over| at_once(&strangers, |_, key| flood(key, node.rpc, over)),
    )?;
    let sent: usize = sent.into_iter().sum();
    let lost = before - wealth(&mut Senders::open(node.rpc)?, &strangers)?;
    let evicted = node.metric("ombra_txpool_evicted_total")?;
    let slowest = waits.iter().max().copied().context("nothing was paid")?;
    say(&format!(
        "   the strangers sent {sent} transfers and paid {lost} micro; {evicted} were evicted; the payer's {} were in a block after at most {slowest:.0?}, for a tip of {TIP} each, {} together",
        waits.len(),
        TIP * u64::try_from(waits.len())?,
    ));
    ensure!(evicted > 0, "the pool was never full: this proves nothing");
    ensure!(slowest < INCLUSION_P99_MAX, "whoever offers a tip waited {slowest:?} for a block");
    Ok(())
}

/// Gives strangers their money.
fn fund(node: &Member, rich: Keypair) -> anyhow::Result<Vec<Keypair>> {
    let seed = |number: usize| Hash::digest(format!("stranger {number}").as_bytes());
    let strangers: Vec<_> =
        (0..STRANGERS).map(|number| Keypair::from_seed(seed(number).as_bytes())).collect();
    let mut rich = Attacker::new(rich, node.rpc)?;
    let texts: Vec<String> = strangers
        .iter()
        .map(|stranger| rich.actor.sign(&transfer(stranger.address(), MONEY)))
        .collect();
    ensure!(rich.send(&texts)? == STRANGERS, "the strangers got no money");
    let mut senders = Senders::open(node.rpc)?;
    wait_until("the strangers to have money", || {
        Ok(wealth(&mut senders, &strangers)? == i128::from(MONEY) * i128::try_from(STRANGERS)?)
    })?;
    Ok(strangers)
}

/// Sends transfers to itself that offer nothing, as fast as they are taken.
pub(super) fn flood(key: &Keypair, node: SocketAddr, over: &AtomicBool) -> anyhow::Result<usize> {
    let mut stranger = Attacker::new(key.clone(), node)?;
    let address = stranger.actor.address();
    let (mut sent, mut connection) = (0, Connection::open(node)?);
    let own = json!([address.to_string()]);
    while !over.load(Ordering::Relaxed) {
        let texts: Vec<String> =
            (0..50).map(|_| stranger.actor.sign(&transfer(address, 1))).collect();
        let taken = stranger.send(&texts)?;
        sent += taken;
        if taken < texts.len() {
            let account = connection.call("ombra_getAccount", &own)?;
            let next = account.get("pendingNonce").and_then(Value::as_u64);
            stranger.actor.nonce = next.context("a nonce")?;
        }
    }
    Ok(sent)
}

/// Pays with a tip, once the pool has been full, and answers how long each payment took until it was in a
/// block.
fn pay(node: &Member, mut payer: Actor) -> anyhow::Result<Vec<Duration>> {
    wait_until("the pool to be full", || {
        Ok(node.metric("ombra_txpool_pending")? >= u64::try_from(POOL * 8 / 10)?)
    })?;
    let mut connection = Connection::open(node.rpc)?;
    let (begun, mut waits) = (Instant::now(), Vec::new());
    while begun.elapsed() < TIME {
        let due = Instant::now();
        let to = payer.address();
        let text = payer.sign(&Body::Transfer(Transfer::new(to, Amount::new(1), Amount::new(TIP))));
        let answer = connection.send(&text)?;
        let hash = answer.pointer("/result/hash").cloned();
        let hash = hash.with_context(|| format!("whoever offers a tip was refused: {answer}"))?;
        let seen = connection.call("ombra_waitForTransaction", &json!([hash]))?;
        ensure!(seen.get("blockIndex").is_some(), "what offers a tip was not included: {seen}");
        waits.push(due.elapsed());
        // The payer's rate.
        std::thread::sleep(PERIOD.saturating_sub(due.elapsed()));
    }
    Ok(waits)
}
