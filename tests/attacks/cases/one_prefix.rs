//! Thousands of free registrations whose places in the state tree begin with the same eight bits.
//!
//! The first release cut the state at one depth for all, so these made one chunk of 17 MB, which is more
//! than a chunk may have: no node made a snapshot any more, and no new node could begin with one. The
//! keys were found by trying 932,413 of them, which takes seconds; their numbers are kept beside this
//! file, so that the attack does not take those seconds again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::harness::Town;
use testkit::http::{self, Connection};
use testkit::net::Member;
use testkit::suite::say;
use types::tx::MinerRegister;
use types::{Body, Hash, Keypair};

/// What is added to each number to get the next, beginning with 0.
const NUMBERS: &str = include_str!("one_prefix.txt");
/// How many registrations: with 5,234 bytes each, more than the 16 MiB that a chunk may have.
pub(super) const REGISTRATIONS: usize = 3_300;
/// The first byte of the key hashes.
const PREFIX: u8 = 0xa7;
/// Registrations in one call, and the pause after it: what is attacked are snapshots, not the time of
/// the validator.
const TOGETHER: usize = 30;
const PAUSE: Duration = Duration::from_millis(100);
/// Of which heights the node makes snapshots.
const INTERVAL: u64 = 20;
/// How long the attacker has.
const ATTACK_TIME_MAX: Duration = Duration::from_secs(60);
/// How long an honest node has to make a snapshot of what the attacker did.
const OFFER_TIME_MAX: Duration = Duration::from_secs(20);
const VALIDATOR: usize = 0;
const NEWCOMER: usize = 1;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    squat(Town::make(1, 1)?, |_| Ok(()), |_| Ok(()))
}

/// Registers the crowd on a chain of a validator and a node that begins later. Something may be done
/// before, and something looked at after it.
pub(super) fn squat(
    mut town: Town,
    before: impl FnOnce(&Town) -> anyhow::Result<()>,
    after_all: impl FnOnce(&Town) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let user = super::begin_snapshots(&mut town, INTERVAL)?;
    before(&town)?;
    let started = Instant::now();
    let registered = register(town.node(VALIDATOR)?.rpc)?;
    let took = started.elapsed();
    let after = town.node(VALIDATOR)?.height()?.next_multiple_of(INTERVAL);
    let made = is_offered(town.node(VALIDATOR)?, after)?;
    let seen = user.tell("with a crowd under one prefix")?;
    say(&format!("   {registered} registrations under one byte in {took:.0?}"));
    ensure!(
        registered == REGISTRATIONS,
        "{registered} of {REGISTRATIONS} registrations were taken"
    );
    let made = made.context("no snapshot was made any more")?;
    let waited = Instant::now();
    town.node_mut(NEWCOMER)?.start()?;
    let began = waited.elapsed();
    let earliest = super::earliest(town.node(NEWCOMER)?)?;
    say(&format!(
        "   a snapshot of block {after} was offered after {made:.0?}; a new node began at block {earliest} after {began:.0?}"
    ));
    ensure!(earliest > after, "the new node began at block {earliest}, not after {after}");
    after_all(&town)?;
    seen.is_served()
}

/// How long it takes until a node offers the state of this height; none if it does not.
fn is_offered(node: &Member, height: u64) -> anyhow::Result<Option<Duration>> {
    node.reaches(height)?;
    let (started, path) = (Instant::now(), node.home().join("data/snapshots"));
    while started.elapsed() < OFFER_TIME_MAX {
        if path.join(format!("{height}/offer")).exists() {
            return Ok(Some(started.elapsed()));
        }
        // The pause of a wait with a deadline.
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(None)
}

/// The attacker's keys.
pub(super) fn ground() -> anyhow::Result<Vec<Keypair>> {
    let (mut number, mut keys) = (0_u64, Vec::new());
    for added in NUMBERS.split_whitespace().take(REGISTRATIONS) {
        number += added.parse::<u64>()?;
        let key = Keypair::from_seed(Hash::digest(&number.to_be_bytes()).as_bytes());
        let place = Hash::digest_parts(&[b"m", key.address().as_bytes()]);
        ensure!(place.as_bytes().first() == Some(&PREFIX), "key {number} is none of these");
        keys.push(key);
    }
    Ok(keys)
}

/// Registers all keys, each with as many bytes as may be, and waits until they are in blocks.
fn register(rpc: SocketAddr) -> anyhow::Result<usize> {
    let capability = |number: usize| format!("{number:064}");
    let body = Body::MinerRegister(MinerRegister {
        name: "n".repeat(256),
        capabilities: (0..64).map(capability).collect(),
        model_info: "m".repeat(256),
    });
    let texts: Vec<String> = ground()?.into_iter().map(|key| Actor::new(key).sign(&body)).collect();
    let mut connection = Connection::open(rpc)?;
    let (deadline, mut taken) = (Instant::now() + ATTACK_TIME_MAX, 0);
    for together in texts.chunks(TOGETHER) {
        // The attacker's rate.
        std::thread::sleep(PAUSE);
        let mut left = together.to_vec();
        while !left.is_empty() && Instant::now() < deadline {
            let answer = connection.post(&http::send_body(&left))?;
            let answer: Value = serde_json::from_str(&answer)?;
            let accepted = |at: usize| answer.get(at).is_some_and(|it| it.get("result").is_some());
            let before = left.len();
            let mut at = 0;
            left.retain(|_| {
                at += 1;
                !accepted(at - 1)
            });
            taken += before - left.len();
            if !left.is_empty() {
                // Without room in the pool there will be some with the next block.
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    let last = texts.get(taken.saturating_sub(1)).context("no registration was taken")?;
    let answer = connection.send(last)?;
    let hash = answer.pointer("/result/hash").context("the last was not taken")?;
    connection.call("ombra_waitForTransaction", &json!([hash, { "timeoutMs": 30_000 }]))?;
    Ok(taken)
}
