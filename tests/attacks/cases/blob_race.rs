//! Blobs are dropped by their deadline while their last chunks are asked about, and others of their
//! chunks wait in the pool: between the write of such a block and the pool's following it, what the
//! pool knows of the blob and what the database has must not be of two heights. The first release
//! took the difference for a broken database and stopped.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tests::harness::report::say;
use tests::harness::town::{FAST, Town};
use tests::harness::user::User;
use tests::workload::keys;

use super::blobs::{Attacker, USER, announce, chunk, simulation};

/// How long the attack lasts.
const TIME: Duration = Duration::from_secs(20);
/// How long a blob may be unfinished, in milliseconds of the chain.
const TTL_MS: u64 = 2_000;
/// Blobs at a time, and chunks of each.
const BLOBS: u64 = 6;
const CHUNKS: u64 = 3;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let ttl = format!("blobTtlMs={TTL_MS}");
    // A block has room for one chunk, so that others wait.
    let params: Vec<&str> =
        FAST.iter().copied().chain([ttl.as_str(), "maxBlockBytes=786432"]).collect();
    let mut town = Town::make_with(1, 0, &params)?;
    town.start_all()?;
    let node = town.node(0)?.rpc;
    let mut keys = keys(2)?;
    let user = User::start(node, USER, keys.pop().context("a key")?);
    let mut attacker = Attacker::new(keys.pop().context("a key")?, node)?;
    let begun = Instant::now();
    let (mut rounds, mut questions) = (0_u64, 0_u64);
    while begun.elapsed() < TIME {
        questions += round(&mut attacker, rounds)?;
        rounds += 1;
    }
    let seen = user.stop()?;
    say(&format!("   {} blobs were dropped under {questions} questions", rounds * BLOBS));
    seen.tell("blobs dropped under their last chunks");
    ensure!(town.node(0)?.pid().is_some(), "the node has ended");
    town.goes_on(&[0], 3)?;
    seen.is_served()
}

/// Announces blobs with a chunk each, lets others wait when they are due, and asks about the last ones.
fn round(attacker: &mut Attacker, number: u64) -> anyhow::Result<u64> {
    let ids: Vec<String> = (0..BLOBS).map(|at| format!("race-{number}-{at}")).collect();
    let begun = Instant::now();
    let nonce = attacker.actor.nonce;
    for id in &ids {
        let texts =
            [announce(id, CHUNKS)?, chunk(id, 0, CHUNKS)].map(|it| attacker.actor.sign(&it));
        attacker.send(&texts)?;
    }
    // All of it is in blocks by the deadline; what waits then is about blobs that go.
    let ttl = Duration::from_millis(TTL_MS);
    while begun.elapsed() < ttl.mul_f64(0.85) {
        // The attack is timed by the chain's clock.
        std::thread::sleep(Duration::from_millis(10));
    }
    let waiting: Vec<String> =
        ids.iter().map(|id| attacker.actor.sign(&chunk(id, 1, CHUNKS))).collect();
    attacker.send(&waiting)?;
    let mut questions = 0;
    while begun.elapsed() < ttl.mul_f64(1.5) {
        for id in &ids {
            let last = attacker.actor.draft(&chunk(id, CHUNKS - 1, CHUNKS));
            attacker.post(&simulation(&last))?;
            questions += 1;
        }
    }
    // What was dropped with its blob has used no nonce.
    let address = attacker.actor.address().to_string();
    let account = attacker.post(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ombra_getAccount\",\"params\":[\"{address}\"]}}"
    ))?;
    let account: serde_json::Value = serde_json::from_str(&account)?;
    let next = account.pointer("/result/nonce").and_then(serde_json::Value::as_u64);
    attacker.actor.nonce = next.unwrap_or(nonce);
    Ok(questions)
}
