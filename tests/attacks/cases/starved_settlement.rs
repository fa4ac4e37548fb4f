//! An attacker fills pool and blocks with well-paid transactions while an honest miner has work to
//! report. A miner whose steps stay out loses its runs, and what is locked for them.
//!
//! A tenth of pool and block is kept for steps and ends of runs, so the miner that tips nothing gets in.
//! The attacker can fill that tenth as well, with steps of runs of its own; then it is a miner's tip
//! that decides, as everywhere else. Both are tried, and what is said is the miner's delay beside what
//! the attacker paid.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tests::actor::{Actor, finish, step};
use tests::harness::report::say;
use tests::harness::town::{FAST, Town};
use tests::workload::keys;
use types::tx::{Protection, Transfer};
use types::{Amount, Body, Hash, Keypair};

use super::desk::{Asked, Desk, ombra, tipping};

/// Blocks and a pool so small that an attacker fills both.
const SMALL: [&str; 4] =
    ["maxBlockBytes=120000", "maxBlobBytes=1000", "maxTxBytes=20480", "maxChunkTxBytes=20480"];
const POOL_COUNT: u64 = 3_000;
/// Who fills them with transfers, how many at a time, and what each one tips, in micro.
const PAYERS: usize = 6;
const TOGETHER: usize = 50;
const TIP: u64 = 1_000;
/// Who fills the tenth with steps of runs of its own, and the steps of each.
const STEPPERS: usize = 6;
const STEPS: u64 = 200;
/// Runs that the honest miner reports on in each part, and what a miner tips that does not want to wait.
const RUNS: usize = 8;
const MAX_FEE: u64 = 90_000;
const TOKENS: u64 = 2_000;
const DEAR: u64 = 10 * TIP;
/// The longest that the miner is watched, and the longest that it may wait for a block.
const WATCHED: Duration = Duration::from_secs(8);
const DELAY_MAX: Duration = Duration::from_secs(1);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let params: Vec<&str> = FAST.iter().chain(&SMALL).copied().collect();
    let mut town = Town::from_v7_of(1, 0, PAYERS + STEPPERS + 2, &params)?;
    starve(&mut town)
}

/// Settles while others fill pool and blocks.
fn starve(town: &mut Town) -> anyhow::Result<()> {
    town.node_mut(0)?.start_with(&[("OMBRA__TXPOOL__COUNT_MAX", POOL_COUNT.to_string())])?;
    super::is_ready(town.node(0)?)?;
    let rpc = town.node(0)?.rpc;
    let mut all = keys(PAYERS + STEPPERS + 2)?;
    let mut desk = Desk::open(rpc)?;
    let (mut requester, mut miner) = (Actor::new(pop(&mut all)?), Actor::new(pop(&mut all)?));
    let work = claimed(&mut desk, &mut requester, &mut miner, 3 * RUNS)?;
    let mut steppers = Vec::new();
    for _ in 0..STEPPERS {
        steppers.push(prepared(&mut desk, pop(&mut all)?)?);
    }

    let (full, over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let before = balances(&mut desk, &all)?;
    let payers: Vec<_> = all.iter().map(|key| pay(rpc, key.clone(), &full, &over)).collect();
    tests::node::wait_for("a full pool", || {
        ensure!(!payers.iter().any(JoinHandle::is_finished), "a payer has given up");
        Ok((full.load(Ordering::Relaxed) > 0).then_some(()))
    })?;
    let mut parts = work.chunks(RUNS);
    let mut part = || parts.next().context("runs");
    let started = Instant::now();
    let plain = settle(&mut desk, &mut miner, part()?, 0)?;
    let paid = before - balances(&mut desk, &all)?;
    let base_fee = desk.base_fee().unwrap_or_default();
    plain.tell("a full pool and full blocks");
    say(&format!(
        "   the attacker paid {} OMBRA in {:.0?}, the base fee is {base_fee} now",
        ombra(paid),
        started.elapsed()
    ));
    let steps_of_all: usize = steppers.iter().map(Vec::len).sum();
    let stepping: Vec<_> = steppers.into_iter().map(|it| flood(rpc, it, &over)).collect();
    let dear = settle(&mut desk, &mut miner, part()?, DEAR)?;
    dear.tell("a tenth full of the attacker's steps, too; the miner tips");
    let cheap = settle(&mut desk, &mut miner, part()?, 0)?;
    cheap.tell("the same; the miner tips nothing");
    over.store(true, Ordering::Relaxed);
    for each in stepping.into_iter().chain(payers) {
        each.join().map_err(|_panic| anyhow::anyhow!("an attacker panicked"))??;
    }
    say(&format!("   the attacker had {} steps, at {} micro each", steps_of_all, 100 + TIP));
    town.goes_on(&[0], 3)?;
    plain.is_served()?;
    dear.is_served()
}

fn pop(keys: &mut Vec<Keypair>) -> anyhow::Result<Keypair> {
    keys.pop().context("a key")
}

fn balances(desk: &mut Desk, keys: &[Keypair]) -> anyhow::Result<i128> {
    keys.iter().map(|key| desk.wealth(&Actor::new(key.clone()))).sum()
}

/// Runs that the miner has claimed.
fn claimed(
    desk: &mut Desk,
    requester: &mut Actor,
    miner: &mut Actor,
    count: usize,
) -> anyhow::Result<Vec<Hash>> {
    let mut runs = Vec::new();
    for number in 0..count {
        let prompt = &format!("question {number}");
        let protection = Protection::default();
        let asked = Asked { prompt, max_fee: MAX_FEE, max_steps: 10, protection };
        let run = desk.request(requester, &asked)?;
        let claim = miner.sign(&Body::AgentClaim(miner.claim(run)));
        desk.include(&[claim])?;
        runs.push(run);
    }
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
fn settle(desk: &mut Desk, miner: &mut Actor, runs: &[Hash], tip: u64) -> anyhow::Result<Delays> {
    let mut delays = Vec::new();
    let end = Instant::now() + WATCHED;
    for run in runs {
        let rest = MAX_FEE - TOKENS - 100;
        let ended = Body::AgentFinish(finish(*run, TOKENS, [TOKENS, rest, 100]));
        for body in [step(*run, 0, TOKENS), ended] {
            let delay = report(desk, miner, &body, (tip, end))?;
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
    desk: &mut Desk,
    miner: &mut Actor,
    body: &Body,
    (tip, end): (u64, Instant),
) -> anyhow::Result<Option<Duration>> {
    let text = match tip {
        0 => miner.sign(body),
        _ => tipping(miner, body, tip),
    };
    let due = Instant::now();
    while Instant::now() < end {
        let answer = desk.send(std::slice::from_ref(&text))?.pop().context("no answer")?;
        let Some(hash) = answer.get("hash").cloned() else {
            let code = answer.pointer("/error/data/code").and_then(Value::as_str);
            ensure!(code == Some("POOL_FULL"), "a miner was refused: {answer}");
            // A miner that is refused for a full pool tries again.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let left = end.saturating_duration_since(Instant::now());
        let seen = desk.seen(&hash, left)?;
        if seen.get("blockIndex").is_some() {
            return Ok(Some(due.elapsed()));
        }
    }
    Ok(None)
}

/// Keeps the pool full with transfers that tip, until it is over.
fn pay(
    rpc: SocketAddr,
    key: Keypair,
    full: &Arc<AtomicU64>,
    over: &Arc<AtomicBool>,
) -> JoinHandle<anyhow::Result<()>> {
    let (full, over) = (Arc::clone(full), Arc::clone(over));
    std::thread::spawn(move || {
        let (mut desk, mut actor) = (Desk::open(rpc)?, Actor::new(key));
        let to = actor.address();
        let body = Body::Transfer(Transfer::new(to, Amount::new(1), Amount::new(TIP)));
        let mut texts = Vec::new();
        while !over.load(Ordering::Relaxed) {
            while texts.len() < TOGETHER {
                texts.push(actor.sign(&body));
            }
            if !offer(&mut desk, &mut texts)? {
                full.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    })
}

/// Offers the first of these texts of one sender and keeps those that were not taken. Answers whether
/// there was room for all.
fn offer(desk: &mut Desk, texts: &mut Vec<String>) -> anyhow::Result<bool> {
    let first = texts.get(..TOGETHER.min(texts.len())).unwrap_or_default();
    let answers = desk.send(first)?;
    let taken = answers.iter().take_while(|it| it.get("hash").is_some()).count();
    texts.drain(..taken.min(texts.len()));
    let had_room = taken == answers.len();
    if !had_room {
        // There will be some with the next block.
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(had_room)
}

/// A run of somebody who asks for it and claims it, and all its steps, which tip.
fn prepared(desk: &mut Desk, key: Keypair) -> anyhow::Result<Vec<String>> {
    let mut actor = Actor::new(key);
    let (max_fee, protection) = (STEPS * 100, Protection::default());
    let asked = Asked { prompt: "mine", max_fee, max_steps: STEPS, protection };
    let run = desk.request(&mut actor, &asked)?;
    let claim = actor.sign(&Body::AgentClaim(actor.claim(run)));
    desk.include(&[claim])?;
    Ok((0..STEPS).map(|index| tipping(&mut actor, &step(run, index, 0), TIP)).collect())
}

/// Brings an attacker's steps in, until it is over.
fn flood(
    rpc: SocketAddr,
    mut texts: Vec<String>,
    over: &Arc<AtomicBool>,
) -> JoinHandle<anyhow::Result<()>> {
    let over = Arc::clone(over);
    std::thread::spawn(move || {
        let mut desk = Desk::open(rpc)?;
        while !texts.is_empty() && !over.load(Ordering::Relaxed) {
            offer(&mut desk, &mut texts)?;
        }
        Ok(())
    })
}
