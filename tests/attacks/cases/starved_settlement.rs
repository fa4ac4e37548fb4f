//! An attacker fills pool and blocks with well-paid transactions while an honest miner has work to
//! report. A miner whose steps stay out loses its runs, and what is locked for them.
//!
//! A tenth of pool and block is kept for steps and ends of runs, so the miner that tips nothing gets in.
//! The attacker can fill that tenth as well, with steps of runs of its own that tip a little. Tips do not
//! count in it, so the miner still gets its turn. Both are tried, and what is said is the miner's delay
//! beside what the attacker paid.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::{Actor, finish, step};
use testkit::harness::{FAST, Town};
use testkit::net::NetOptions;
use testkit::parallel::Worker;
use testkit::suite::say;
use testkit::workload::keys;
use types::tx::Transfer;
use types::{Amount, Body, Hash, Keypair};

use super::sending::{Senders, ombra, own_run, padded_step, tipping, wealth};

/// Blocks and a pool so small that an attacker fills both.
const SMALL: [&str; 4] =
    ["maxBlockBytes=60000", "maxBlobBytes=1000", "maxTxBytes=20480", "maxChunkTxBytes=20480"];
const POOL_COUNT: u64 = 3_000;
/// Who fills them with transfers, how many at a time, and what each one tips, in micro.
const PAYERS: usize = 6;
const TOGETHER: usize = 50;
const TIP: u64 = 1_000;
/// Who fills the tenth with steps of runs of its own, the steps of each, and what each one tips: the
/// least that is more than nothing. Three of them fill a block's tenth, so that no other fits beside them.
const STEPPERS: usize = 4;
const STEPS: u64 = 200;
const STEP_TIP: u64 = 2;
const STEP_BYTES: usize = 1_960;
/// Runs that the honest miner reports on in each part, and what a miner tips that does not want to wait.
const RUNS: usize = 8;
const MAX_FEE: u64 = 90_000;
const TOKENS: u64 = 2_000;
const DEAR: u64 = 10 * TIP;
/// How long the miner tries to bring in one report, and the longest that one may take.
const WATCHED: Duration = Duration::from_secs(6);
const DELAY_MAX: Duration = Duration::from_secs(1);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let accounts = PAYERS + STEPPERS + 2;
    let options = NetOptions { accounts, v7: Some(0), ..NetOptions::new(1, 0) };
    starve(&mut Town::of(options, &[FAST, &SMALL].concat())?)
}

/// Settles while others fill pool and blocks.
fn starve(town: &mut Town) -> anyhow::Result<()> {
    town.node_mut(0)?.start_with(&[("OMBRA__TXPOOL__COUNT_MAX", POOL_COUNT.to_string())])?;
    super::is_ready(town.node(0)?)?;
    let rpc = town.node(0)?.rpc;
    let mut all = keys(PAYERS + STEPPERS + 2)?;
    let mut senders = Senders::open(rpc)?;
    let (mut requester, mut miner) = (Actor::new(pop(&mut all)?), Actor::new(pop(&mut all)?));
    let work = claimed(&mut senders, &mut requester, &mut miner, 3 * RUNS)?;
    let mut steppers = Vec::new();
    for _ in 0..STEPPERS {
        steppers.push(prepared(&mut senders, pop(&mut all)?)?);
    }

    let before = wealth(&mut senders, &all)?;
    let full = Arc::<AtomicBool>::default();
    let pay = |key: &Keypair| {
        let (key, full) = (key.clone(), Arc::clone(&full));
        Worker::start(move |over| pay(rpc, key, &full, over))
    };
    let mut attackers: Vec<Worker<()>> = all.iter().map(pay).collect();
    testkit::node::wait_until("a full pool", || {
        ensure!(!attackers.iter().any(Worker::has_ended), "a payer has given up");
        Ok(full.load(Ordering::Relaxed))
    })?;
    let mut parts = work.chunks(RUNS);
    let mut part = || parts.next().context("runs");
    let started = Instant::now();
    let plain = settle(&mut senders, &mut miner, part()?, 0)?;
    let paid = before - wealth(&mut senders, &all)?;
    let base_fee = senders.base_fee().unwrap_or_default();
    plain.tell("a full pool and full blocks");
    say(&format!(
        "   the attacker paid {} OMBRA in {:.0?}, the base fee is {base_fee} now",
        ombra(paid),
        started.elapsed()
    ));
    let runs: Vec<Hash> = steppers.iter().map(|(run, _)| *run).collect();
    let flood = |(_, texts)| Worker::start(move |over| flood(rpc, texts, over));
    attackers.extend(steppers.into_iter().map(flood));
    let dear = settle(&mut senders, &mut miner, part()?, DEAR)?;
    dear.tell("a tenth full of the attacker's steps, too; the miner tips");
    let cheap = settle(&mut senders, &mut miner, part()?, 0)?;
    cheap.tell("the same; the miner tips nothing");
    let stepped = steps(&mut senders, &runs)?;
    Worker::stop_all(attackers)?;
    let all_steps = STEPS * u64::try_from(STEPPERS)?;
    say(&format!(
        "   {stepped} of the attacker's {all_steps} steps were in blocks by then, for {} micro each",
        100 + STEP_TIP
    ));
    ensure!(stepped > 0, "the attacker's steps stayed out: this is no attack");
    ensure!(stepped < all_steps, "the attacker's steps were used up before the end");
    town.goes_on(&[0], 3)?;
    plain.is_served()?;
    dear.is_served()?;
    cheap.is_served()
}

fn pop(keys: &mut Vec<Keypair>) -> anyhow::Result<Keypair> {
    keys.pop().context("a key")
}

/// Runs that the miner has claimed.
fn claimed(
    senders: &mut Senders,
    requester: &mut Actor,
    miner: &mut Actor,
    count: usize,
) -> anyhow::Result<Vec<Hash>> {
    let (mut requests, mut claims, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        let request = requester.request(&format!("question {number}"), MAX_FEE, 10);
        let run = request.agent_run_id;
        requests.push(requester.sign(&Body::AgentRequest(request)));
        claims.push(miner.sign(&Body::AgentClaim(miner.claim(run))));
        runs.push(run);
    }
    senders.include(&requests)?;
    senders.include(&claims)?;
    Ok(runs)
}

/// How long the miner's reports took to be in blocks; none for one that was not in time.
struct Delays(Vec<Option<Duration>>);

impl Delays {
    fn tell(&self, when: &str) {
        let mut taken: Vec<_> = self.0.iter().flatten().copied().collect();
        taken.sort_unstable();
        let half = taken.get(taken.len() / 2).copied().unwrap_or_default();
        let slowest = taken.last().copied().unwrap_or_default();
        say(&format!(
            "   {when}: {} of {} steps and ends got in, half within {half:.0?}, the slowest {slowest:.0?}",
            taken.len(),
            self.0.len(),
        ));
    }

    fn is_served(&self) -> anyhow::Result<()> {
        for delay in &self.0 {
            let delay = delay.context("an honest miner's report stayed out")?;
            ensure!(delay < DELAY_MAX, "an honest miner's report took {delay:?}");
        }
        Ok(())
    }
}

/// The honest miner reports a step of each run and ends it, one after the other.
fn settle(
    senders: &mut Senders,
    miner: &mut Actor,
    runs: &[Hash],
    tip: u64,
) -> anyhow::Result<Delays> {
    let mut delays = Vec::new();
    for run in runs {
        let ended = finish(*run, TOKENS, [TOKENS, MAX_FEE - TOKENS - 100, 100]).into();
        for body in [step(*run, 0, TOKENS), ended] {
            let delay = report(senders, miner, &body, tip)?;
            delays.push(delay);
            if delay.is_none() {
                return Ok(Delays(delays));
            }
        }
    }
    Ok(Delays(delays))
}

/// Reports once, and again while the pool is full.
fn report(
    senders: &mut Senders,
    miner: &mut Actor,
    body: &Body,
    tip: u64,
) -> anyhow::Result<Option<Duration>> {
    let text = match tip {
        0 => miner.sign(body),
        _ => tipping(miner, body, tip),
    };
    let (due, end) = (Instant::now(), Instant::now() + WATCHED);
    while Instant::now() < end {
        let answer = senders.send(std::slice::from_ref(&text))?.pop().context("no answer")?;
        let Some(hash) = answer.get("hash").cloned() else {
            let code = answer.pointer("/error/data/code").and_then(Value::as_str);
            ensure!(code == Some("POOL_FULL"), "a miner was refused: {answer}");
            // A miner that is refused for a full pool tries again.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let left = end.saturating_duration_since(Instant::now());
        let seen = senders.seen(&hash, left)?;
        if seen.get("blockIndex").is_some() {
            return Ok(Some(due.elapsed()));
        }
    }
    Ok(None)
}

/// Keeps the pool full with transfers that tip, until it is over.
fn pay(rpc: SocketAddr, key: Keypair, full: &AtomicBool, over: &AtomicBool) -> anyhow::Result<()> {
    let (mut senders, mut actor) = (Senders::open(rpc)?, Actor::new(key));
    let to = actor.address();
    let body = Body::Transfer(Transfer::new(to, Amount::new(1), Amount::new(TIP)));
    let mut texts = Vec::new();
    while !over.load(Ordering::Relaxed) {
        while texts.len() < TOGETHER {
            texts.push(actor.sign(&body));
        }
        if !offer(&mut senders, &mut texts)? {
            full.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Offers the first of these texts of one sender and keeps those that were not taken. Answers whether
/// there was room for all.
fn offer(senders: &mut Senders, texts: &mut Vec<String>) -> anyhow::Result<bool> {
    let first = texts.get(..TOGETHER.min(texts.len())).unwrap_or_default();
    let answers = senders.send(first)?;
    let taken = answers.iter().take_while(|it| it.get("hash").is_some()).count();
    texts.drain(..taken.min(texts.len()));
    let had_room = taken == answers.len();
    if !had_room {
        // There will be some with the next block.
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(had_room)
}

/// How many steps these runs have.
fn steps(senders: &mut Senders, runs: &[Hash]) -> anyhow::Result<u64> {
    let mut steps = 0;
    for run in runs {
        let record = senders.call("ombra_getAgentRun", &json!([run]))?;
        steps += record["stepCount"].as_u64().context("a number of steps")?;
    }
    Ok(steps)
}

/// A run of somebody who asks for it and claims it, and all its steps, which tip.
fn prepared(senders: &mut Senders, key: Keypair) -> anyhow::Result<(Hash, Vec<String>)> {
    let mut actor = Actor::new(key);
    let run = own_run(senders, &mut actor, STEPS)?;
    let steps = (0..STEPS).map(|index| padded_step(&mut actor, (run, index), STEP_TIP, STEP_BYTES));
    Ok((run, steps.collect()))
}

/// Brings an attacker's steps in, until it is over.
fn flood(rpc: SocketAddr, mut texts: Vec<String>, over: &AtomicBool) -> anyhow::Result<()> {
    let mut senders = Senders::open(rpc)?;
    while !texts.is_empty() && !over.load(Ordering::Relaxed) {
        offer(&mut senders, &mut texts)?;
    }
    Ok(())
}
