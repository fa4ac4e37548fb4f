//! An account takes runs and the names of blobs in transactions that no block takes, because one before them
//! waits for the base fee to fall. An earlier version kept such transactions on its draft and refused everybody
//! else, at no cost for the account.
//!
//! The account lets a transaction wait that is not ready to pay any base fee. Where the pool refuses that, a payer
//! first pumps the base fee.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use fixtures::blob_init;
use serde_json::{Value, json};
use testkit::actor::{Actor, people, transfer};
use testkit::harness::Town;
use testkit::suite::say;
use testkit::workload::envelope;
use types::build::{Envelope, build_tx};
use types::tx::Protection;
use types::{Amount, Bid, Body, Hash};

use super::blobs::Attacker;
use super::pumped_fee::{PARAMS, pump};
use super::sending::{Asked, Senders};

/// Runs, and as many blobs.
const ROUNDS: u64 = 4;
/// The lowest base fee of the chain, in micro per KiB.
const LOWEST: u64 = 10;
/// How soon what an honest account sends must be in a block.
const SOON: Duration = Duration::from_secs(3);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::from_v7(1, 0, PARAMS)?.started()?;
    let node = town.node(0)?;
    let [mut requester, mut honest, mut thief, payer] = people()?;
    let mut senders = Senders::open(node.rpc)?;
    let mut runs = Vec::new();
    for number in 0..ROUNDS {
        let prompt = &format!("question {number}");
        let protection = Protection::default();
        let asked = Asked { prompt, max_fee: 10_000, max_steps: 10, protection };
        runs.push(senders.request(&mut requester, &asked)?);
    }

    let before = senders.wealth(&thief)?;
    let first = thief.sign(&transfer(thief.address(), 1));
    if senders.send(&[waiting(&thief, 0)])?.iter().any(|it| it.get("hash").is_none()) {
        senders.hand_in(&[waiting(&thief, LOWEST)])?;
        pump(&mut senders, &mut Attacker::new(payer.key, node.rpc)?)?;
    }
    thief.nonce += 1;
    senders.include(&[first])?;

    let mut slowest = Duration::ZERO;
    for (number, run) in (0..).zip(&runs) {
        let blob = blob(number);
        senders.hand_in(&[thief.sign(&Body::AgentClaim(thief.claim(*run))), thief.sign(&blob)])?;
        let begun = Instant::now();
        let text = honest.sign(&Body::AgentClaim(honest.claim(*run)));
        get_through(&mut senders, &[text, honest.sign(&blob)])?;
        slowest = slowest.max(begun.elapsed());
        belongs_to(&mut senders, *run, &honest)?;
        // What the thief has behind these is gone with them.
        thief.nonce -= 2;
    }
    let lost = before - senders.wealth(&thief)?;
    say(&format!(
        "   {ROUNDS} runs and as many blobs were taken in transactions that no block takes, for {lost} micro; an honest account had each of them within {slowest:.0?}"
    ));
    Ok(())
}

/// A transaction of the next nonce that is not ready to pay more than so much.
fn waiting(actor: &Actor, highest: u64) -> String {
    let bid = Bid { max_base_fee: Some(Amount::new(highest)), tip: None };
    let body = transfer(actor.address(), 1);
    build_tx(&actor.key, &body, &Envelope { bid, ..envelope(actor.nonce) })
}

fn blob(number: u64) -> Body {
    Body::BlobInit(blob_init(&format!("blob{number}"), b"x"))
}

/// Sends what must be taken and soon be in a block.
fn get_through(senders: &mut Senders, texts: &[String]) -> anyhow::Result<()> {
    let last = senders.hand_in(texts)?;
    let seen = senders.seen(&last, SOON)?;
    ensure!(seen.get("blockIndex").is_some(), "it is in no block after {SOON:?}: {seen}");
    Ok(())
}

fn belongs_to(senders: &mut Senders, run: Hash, miner: &Actor) -> anyhow::Result<()> {
    let record = senders.call("ombra_getAgentRun", &json!([run]))?;
    let of = record.get("minerAddress").and_then(Value::as_str).context("a run without a miner")?;
    ensure!(of == miner.address().to_string(), "the run is {of}'s");
    Ok(())
}
