//! Somebody asks again and again what the last chunk of a large blob would do. The first release
//! hashed all its chunks for each answer, under the lock that every submission needs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tests::harness::report::say;
use tests::harness::town::Town;
use tests::harness::user::User;
use tests::node::wait_for;
use tests::workload::keys;

use super::blobs::{Attacker, USER, announce, chunk, simulation};

/// How long the attack lasts.
const TIME: Duration = Duration::from_secs(10);
/// The most chunks of a blob: 16 MiB.
const CHUNKS: u64 = 42;
/// Askers, each with a connection of its own.
const ASKERS: u64 = 4;
/// The longest that half of the submissions may take.
const SUBMIT_P50_MAX: Duration = Duration::from_millis(25);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(1, 0)?;
    let node = town.node(0)?.rpc;
    let mut keys = keys(2)?;
    let user = keys.pop().context("a key")?;
    let key = keys.pop().context("a key")?;
    let mut attacker = Attacker::new(key.clone(), node)?;
    let init = attacker.actor.sign(&announce("large", CHUNKS)?);
    attacker.send(&[init])?;
    for index in 0..CHUNKS - 1 {
        let text = attacker.actor.sign(&chunk("large", index, CHUNKS));
        attacker.send(&[text])?;
    }
    let address = attacker.actor.address().to_string();
    wait_for("the chunks to be in blocks", || {
        let account = town.node(0)?.call("ombra_getAccount", &serde_json::json!([address]))?;
        let nonce = account.get("nonce").and_then(serde_json::Value::as_u64);
        Ok((nonce == Some(attacker.actor.nonce)).then_some(()))
    })?;
    let question = simulation(&attacker.actor.draft(&chunk("large", CHUNKS - 1, CHUNKS)));
    let user = User::start(node, USER, user);
    let asked = AtomicU64::new(0);
    let end = Instant::now() + TIME;
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let askers: Vec<_> = (0..ASKERS)
            .map(|_| {
                scope.spawn(|| -> anyhow::Result<()> {
                    let mut asker = Attacker::new(key.clone(), node)?;
                    while Instant::now() < end {
                        asker.post(&question)?;
                        asked.fetch_add(1, Ordering::Relaxed);
                        // Six questions a second each.
                        std::thread::sleep(Duration::from_millis(150));
                    }
                    Ok(())
                })
            })
            .collect();
        askers.into_iter().try_for_each(|asker| {
            asker.join().map_err(|_panic| anyhow::anyhow!("an asker panicked"))?
        })
    })?;
    let seen = user.stop()?;
    say(&format!("   {} simulations of a last chunk", asked.load(Ordering::Relaxed)));
    seen.tell("simulations of the last chunk of 16 MiB");
    let half = seen.submit(50);
    ensure!(half < SUBMIT_P50_MAX, "half of the submissions took {half:?} and longer");
    seen.is_served()
}
