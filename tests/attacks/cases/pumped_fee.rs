//! A payer fills block after block, so that the base fee rises above what an honest transaction is ready
//! to pay. That one waits and makes no blocks meanwhile; it gets through when the base fee has fallen.
//! Others, who are ready to pay more, do not stop.
//!
//! What is said at the end is what the pumping cost, and what it did to the one that waited.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::{people, transfer};
use testkit::harness::{Town, User};
use testkit::node::{wait_for, wait_until};
use testkit::suite::say;
use testkit::workload::envelope;
use types::build::{Envelope, build_tx};
use types::{Amount, Bid};

use super::blobs::Attacker;
use super::sending::Senders;

/// Blocks of about forty transfers, so that a payer fills them with little.
pub(super) const PARAMS: &[&str] = &[
    "minBlockIntervalMs=100",
    "heartbeatMs=500",
    "maxBlockBytes=20480",
    "maxBlobBytes=1000",
    "maxTxBytes=20480",
    "maxChunkTxBytes=20480",
];
/// What the honest transaction is ready to pay, in micro per KiB; a quiet chain takes 10.
const HIGHEST: u64 = 14;
/// How far the payer pumps the base fee.
const PUMPED: u64 = 30;
/// Transfers that the payer has under way: some blocks of them.
const UNDER_WAY: u64 = 200;
/// How long the payer may take, and the honest one wait afterwards.
const PUMP_MAX: Duration = Duration::from_secs(60);
/// How long is watched whether blocks come, and how many heartbeats that is at most.
const WATCHED: Duration = Duration::from_secs(3);
const HEARTBEATS_MAX: u64 = 8;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::from_v7(1, 0, PARAMS)?.started()?;
    let node = town.node(0)?;
    let [user, mut honest, payer] = people()?;
    let (user, mut payer) = (User::start(node.rpc, user.key), Attacker::new(payer.key, node.rpc)?);

    // The second one is taken before the base fee rises, and its turn comes when it has.
    let first = honest.sign(&transfer(honest.address(), 1));
    let bid = Bid { max_base_fee: Some(Amount::new(HIGHEST)), tip: None };
    let to_itself = transfer(honest.address(), 1);
    let waiting = build_tx(&honest.key, &to_itself, &Envelope { bid, ..envelope(honest.nonce) });
    let waiting = node.send(&waiting)?;
    let mut senders = Senders::open(node.rpc)?;
    let before = senders.wealth(&payer.actor)?;
    let pumping = Instant::now();
    pump(&mut senders, &mut payer)?;
    let pumped = pumping.elapsed();
    node.send(&first)?;
    let why = wait_for("the honest transaction to wait", || {
        let seen = node.call("ombra_getTransaction", &json!([waiting]))?;
        Ok(seen.pointer("/waiting/code").and_then(Value::as_str).map(str::to_owned))
    })?;
    ensure!(why == "FEE_ABOVE_MAX", "it waits for {why}");
    let seen = user.tell("the base fee is pumped")?;
    wait_until(
        "everything else to be in blocks",
        || Ok(node.metric("ombra_txpool_pending")? == 0),
    )?;
    let cost = before - senders.wealth(&payer.actor)?;

    // Nothing but heartbeats while it waits.
    let (height, fee) = (node.height()?, senders.base_fee()?);
    ensure!(fee > HIGHEST, "the base fee has fallen to {fee} already: this proves nothing");
    // What must not happen is watched for a while.
    std::thread::sleep(WATCHED);
    let blocks = node.height()? - height;
    ensure!(blocks <= HEARTBEATS_MAX, "{blocks} blocks in {WATCHED:?} for one that waits");
    let falling = Instant::now();
    let included = wait_for("the honest transaction to be included", || {
        let seen = node.call("ombra_getTransaction", &json!([waiting]))?;
        Ok(seen.get("inclusionFee").and_then(Value::as_str).map(str::to_owned))
    })?;
    say(&format!(
        "   the payer pumped the base fee to {PUMPED} in {pumped:.0?} for {cost} micro; the honest transaction waited {:.0?} longer, made {blocks} blocks in {WATCHED:?}, and paid {included} micro",
        falling.elapsed() + WATCHED,
    ));
    seen.is_served()
}

/// Fills blocks until the base fee is so high.
pub(super) fn pump(senders: &mut Senders, payer: &mut Attacker) -> anyhow::Result<()> {
    let begun = Instant::now();
    let address = payer.actor.address();
    while senders.base_fee()? < PUMPED {
        ensure!(begun.elapsed() < PUMP_MAX, "the base fee does not rise");
        let account = senders.call("ombra_getAccount", &json!([address]))?;
        let included = account.get("nonce").and_then(Value::as_u64).context("a nonce")?;
        let missing = UNDER_WAY.saturating_sub(payer.actor.nonce.saturating_sub(included));
        let texts: Vec<String> =
            (0..missing).map(|_| payer.actor.sign(&transfer(address, 1))).collect();
        ensure!(payer.send(&texts)? == texts.len(), "the payer was refused");
    }
    Ok(())
}
