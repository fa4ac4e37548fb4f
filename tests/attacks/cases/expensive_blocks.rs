//! Transactions that make a node work as much as possible for their bytes: the chunk of a byte that
//! completes a blob of 16 MiB, which is hashed as a whole then, and the steps of runs, which burn no
//! inclusion fee. Blocks stop at their budget of work, whatever is offered.
//!
//! What is said is how much work the fullest block had, the longest time between two blocks, and what
//! it cost the attackers.

use std::net::SocketAddr;
use std::sync::Barrier;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::{Actor, step};
use testkit::harness::{Town, User};
use testkit::net::Member;
use testkit::parallel;
use testkit::suite::say;
use testkit::workload::keys;
use types::Keypair;

use super::blobs::{LARGE_CHUNKS, announce, chunk};
use super::sending::{Senders, ombra, own_run};

/// What a block may work: little more than one large blob takes.
const BLOCK_WORK: u64 = 20_000;
/// Attackers, each with a blob to complete and a run to report on.
const ATTACKERS: usize = 4;
const STEPS: u64 = 200;
/// The bytes of such a blob, of which the last chunk has one.
const BLOB_BYTES: u64 = 41 * 400_000 + 1;
/// The longest time between two blocks, in milliseconds.
const INTERVAL_MAX_MS: u64 = 1_000;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::one_from_v7(&[&format!("maxBlockWork={BLOCK_WORK}")])?;
    let rpc = town.node(0)?.rpc;
    let mut all = keys(ATTACKERS + 1)?;
    let user = User::start(rpc, all.pop().context("a key")?);
    let ready = Barrier::new(ATTACKERS);
    let struck = parallel::at_once(&all, |number, key| {
        Attack::prepare(rpc, key.clone(), number, &ready)?.strike()
    })?;
    let paid = struck.iter().map(|it| it.paid).sum();
    let first = struck.iter().map(|it| it.from).min().context("an attacker")?;
    let last = town.node(0)?.height()?;
    let fullest = fullest(town.node(0)?, first, last)?;
    let intervals = town.intervals(0, first, last)?;
    let longest = intervals.into_iter().max().unwrap_or_default();
    say(&format!(
        "   {ATTACKERS} blobs of {BLOB_BYTES} bytes were completed at once, with {} steps: the fullest block worked {fullest} of {BLOCK_WORK} units, blocks were at most {longest} ms apart; it cost {} OMBRA",
        STEPS * u64::try_from(ATTACKERS)?,
        ombra(paid),
    ));
    let seen = user.tell("while blocks are full of work")?;
    ensure!(fullest <= BLOCK_WORK, "a block worked {fullest} units");
    ensure!(fullest >= BLOB_BYTES / 1_024, "no blob was completed: this is no attack");
    town.goes_on(&[0], 3)?;
    ensure!(longest <= INTERVAL_MAX_MS, "the chain stood still for {longest} ms");
    seen.is_served()
}

/// An attacker that is ready to strike.
struct Attack {
    senders: Senders,
    actor: Actor,
    before: i128,
    texts: Vec<String>,
}

impl Attack {
    /// Stores a blob but for its last chunk, claims a run of its own, and waits for the others.
    fn prepare(
        rpc: SocketAddr,
        key: Keypair,
        number: usize,
        ready: &Barrier,
    ) -> anyhow::Result<Self> {
        let prepared = Self::store(rpc, key, number);
        // The others wait for whoever failed, too.
        ready.wait();
        prepared
    }

    fn store(rpc: SocketAddr, key: Keypair, number: usize) -> anyhow::Result<Self> {
        let (mut senders, mut actor) = (Senders::open(rpc)?, Actor::new(key));
        let before = senders.wealth(&actor)?;
        let id = format!("dear-{number}");
        let init = actor.sign(&announce(&id, LARGE_CHUNKS)?);
        senders.include(&[init])?;
        for index in 0..LARGE_CHUNKS - 1 {
            let text = actor.sign(&chunk(&id, index, LARGE_CHUNKS));
            senders.include(&[text])?;
        }
        let run = own_run(&mut senders, &mut actor, STEPS)?;
        let last = actor.sign(&chunk(&id, LARGE_CHUNKS - 1, LARGE_CHUNKS));
        let steps = (0..STEPS).map(|index| actor.sign(&step(run, index, 0)));
        let texts = std::iter::once(last).chain(steps).collect();
        Ok(Self { senders, actor, before, texts })
    }

    /// Sends everything at once and waits until it is in blocks.
    fn strike(mut self) -> anyhow::Result<Struck> {
        let chain = self.senders.call("ombra_chainInfo", &json!([]))?;
        let from = chain["height"].as_u64().context("a height")?;
        self.senders.include(&self.texts)?;
        Ok(Struck { paid: self.before - self.senders.wealth(&self.actor)?, from })
    }
}

/// An attacker that has struck.
struct Struck {
    /// What all of it cost, preparations too, in micro.
    paid: i128,
    /// The height before.
    from: u64,
}

/// The work of the block with the most of it, at least.
fn fullest(node: &Member, first: u64, last: u64) -> anyhow::Result<u64> {
    let mut fullest = 0;
    for height in first..=last {
        let block = node.call("ombra_getBlock", &json!([height, true]))?;
        let txs = block["transactions"].as_array().context("transactions")?;
        fullest = fullest.max(txs.iter().map(least_work).sum());
    }
    Ok(fullest)
}

/// What a transaction counts by docs/protocol.md section 16 at least: the figures of the table there, of
/// a blob that is completed what its bytes count.
fn least_work(tx: &Value) -> u64 {
    match tx["type"].as_str() {
        Some("AGENT_STEP") => 43,
        Some("SOCIAL_BLOB_CHUNK") if tx["chunkIndex"] == LARGE_CHUNKS - 1 => {
            33 + BLOB_BYTES.div_ceil(1_024)
        }
        Some("SOCIAL_BLOB_CHUNK") => 3_160,
        _ => 25,
    }
}
