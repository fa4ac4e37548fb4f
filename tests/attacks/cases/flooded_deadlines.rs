//! Thousands of runs and of blobs that nobody finishes are due in the same moment, and so is a run of an
//! honest requester. Blocks go on at their pace, because each sweeps only so many of both.
//!
//! Before fork v7 runs and blobs shared that number, and whoever left blobs unfinished kept the escrows
//! of others. What is said is how long the honest escrow was late, beside what the attacker paid.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::harness::{Town, User};
use testkit::net::Member;
use testkit::parallel;
use testkit::suite::say;
use testkit::workload::keys;
use types::tx::Protection;
use types::{Body, Hash, Keypair};

use super::blobs::announce;
use super::sending::{Asked, Senders, ombra};

/// How long runs and blobs may wait, in milliseconds of the chain.
const TTL_MS: u64 = 26_000;
/// How many of each a block sweeps.
const SWEPT: u64 = 50;
/// Blobs, and then runs, of the attackers; each has half of both.
const BLOBS: u64 = 3_000;
const RUNS: u64 = 1_000;
const ATTACKERS: u64 = 2;
/// What each run is worth: the least escrow.
const ESCROW: u64 = 100;
/// So many transactions go together, no more than a block takes without a higher price.
const TOGETHER: usize = 250;
/// How long the attackers have.
const ATTACK_TIME_MAX: Duration = Duration::from_secs(12);
/// The honest requester's escrow.
const MAX_FEE: u64 = 90_000;
/// How late the honest escrow may be: in blocks, those that the runs before it take and some more.
const LATE_BLOCKS_MAX: u64 = RUNS / SWEPT + 4;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let params = [
        format!("blobTtlMs={TTL_MS}"),
        format!("pendingTtlMs={TTL_MS}"),
        format!("maxExpiriesPerBlock={SWEPT}"),
    ];
    flood(&Town::one_from_v7(&params.each_ref().map(String::as_str))?)
}

fn flood(town: &Town) -> anyhow::Result<()> {
    let rpc = town.node(0)?.rpc;
    let mut all = keys(usize::try_from(ATTACKERS)? + 2)?;
    let user = User::start(rpc, all.pop().context("a key")?);
    let mut requester = Actor::new(all.pop().context("a key")?);
    let begun = Instant::now();
    let paid = leave_all(rpc, &all)?;
    let took = begun.elapsed();
    ensure!(took < ATTACK_TIME_MAX, "the attackers took {took:.0?}");

    // The honest run is due after all of them.
    let mut senders = Senders::open(rpc)?;
    let (max_fee, protection) = (MAX_FEE, Protection::default());
    let asked = Asked { prompt: "is anybody there?", max_fee, max_steps: 10, protection };
    let run = senders.request(&mut requester, &asked)?;
    let record = senders.call("ombra_getAgentRun", &json!([run]))?;
    let deadline = record["deadlineAt"].as_u64().context("a deadline")?;
    let Late { ms, blocks } = late(town.node(0)?, &mut senders, &run, deadline)?;
    say(&format!(
        "   {RUNS} runs and {BLOBS} blobs due together cost {} OMBRA; the honest escrow of a run that was due after them came back {blocks} blocks and {ms} ms late",
        ombra(paid),
    ));
    let seen = user.tell("while deadlines pass together")?;
    town.goes_on(&[0], 3)?;
    ensure!(
        blocks <= LATE_BLOCKS_MAX,
        "the honest escrow was late by {blocks} blocks, which is more than {LATE_BLOCKS_MAX}"
    );
    seen.is_served()
}

/// Has the attackers leave all blobs and then all runs alone. Answers what it cost them in micro, beside
/// the escrows, which come back.
fn leave_all(rpc: SocketAddr, keys: &[Keypair]) -> anyhow::Result<i128> {
    let paid = parallel::at_once(keys, |number, key| leave(rpc, Actor::new(key.clone()), number))?;
    Ok(paid.into_iter().sum())
}

fn leave(rpc: SocketAddr, mut actor: Actor, number: usize) -> anyhow::Result<i128> {
    let mut senders = Senders::open(rpc)?;
    let before = senders.wealth(&actor)?;
    let mut texts = Vec::new();
    for blob in 0..BLOBS / ATTACKERS {
        texts.push(actor.sign(&announce(&format!("left-{number}-{blob}"), 1)?));
    }
    for run in 0..RUNS / ATTACKERS {
        let request = actor.request(&format!("left {run}"), ESCROW, 1);
        texts.push(actor.sign(&Body::AgentRequest(request)));
    }
    for together in texts.chunks(TOGETHER) {
        senders.include(together)?;
    }
    Ok(before - senders.wealth(&actor)? - i128::from(ESCROW * RUNS / ATTACKERS))
}

/// How late a run's escrow came back.
struct Late {
    ms: u64,
    blocks: u64,
}

/// Waits until a run has lapsed; answers how long after its deadline.
fn late(node: &Member, senders: &mut Senders, run: &Hash, deadline: u64) -> anyhow::Result<Late> {
    let mut record = Value::Null;
    testkit::node::wait_until("the honest run to lapse", || {
        record = senders.call("ombra_getAgentRun", &json!([run]))?;
        Ok(record["status"] == "timeout")
    })?;
    let finished = record["finishedAt"].as_u64().context("an end")?;
    // The blocks after the first that could have swept it.
    let (mut blocks, mut height) = (0, node.height()?);
    loop {
        let block = node.call("ombra_getBlock", &json!([height, false]))?;
        let time = block["timestamp"].as_u64().context("a timestamp")?;
        if time <= deadline {
            break;
        }
        if time <= finished {
            blocks += 1;
        }
        height = height.checked_sub(1).context("a block before the deadline")?;
    }
    Ok(Late { ms: finished - deadline, blocks: u64::saturating_sub(blocks, 1) })
}
