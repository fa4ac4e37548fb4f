//! Many blobs of many chunks, of which only the last and shortest ever comes, are due at the same
//! time. The first release looked for every chunk of each when it dropped them, in one block.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use testkit::harness::{FAST, Town, User};
use testkit::suite::say;
use testkit::workload::keys;

use super::blobs::{Attacker, announce, chunk};

/// How long a blob may be unfinished, in milliseconds of the chain.
const TTL_MS: u64 = 12_000;
/// Blobs, and chunks of each: what a gigabyte has.
const BLOBS: u64 = 2_000;
const CHUNKS: u64 = 2_600;
/// Whose they are: a pool takes 2,048 transactions of one sender.
const ATTACKERS: usize = 4;
/// How long the chain is watched after the blobs are due.
const AFTER: Duration = Duration::from_secs(6);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let ttl = format!("blobTtlMs={TTL_MS}");
    let params = [FAST, &["maxBlobBytes=1073741824", &ttl]].concat();
    let town = Town::make_with(1, 0, &params)?.started()?;
    let node = town.node(0)?.rpc;
    let mut keys = keys(ATTACKERS + 1)?;
    let user = keys.pop().context("a key")?;
    let begun = Instant::now();
    for (first, key) in (0_u64..).zip(keys) {
        let mut attacker = Attacker::new(key, node)?;
        let mut texts = Vec::new();
        for number in (first..BLOBS).step_by(ATTACKERS) {
            let id = format!("dropped-{number}");
            texts.push(attacker.actor.sign(&announce(&id, CHUNKS)?));
            texts.push(attacker.actor.sign(&chunk(&id, CHUNKS - 1, CHUNKS)));
        }
        let accepted = attacker.send(&texts)?;
        ensure!(accepted == texts.len(), "only {accepted} of {} were accepted", texts.len());
    }
    let sent = begun.elapsed();
    ensure!(sent < Duration::from_millis(TTL_MS), "the blobs took {sent:?} to announce");
    let user = User::start(node, user);
    let seen = user.work_for(Duration::from_millis(TTL_MS) + AFTER - sent)?;
    say(&format!("   {BLOBS} blobs of {CHUNKS} chunks were dropped"));
    seen.tell("blobs dropped together");
    town.goes_on(&[0], 3)?;
    seen.is_served()
}
