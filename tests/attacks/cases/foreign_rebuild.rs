//! A pool is full of what waits, and somebody signs two transactions for each nonce: one for this
//! node and another one for the next. Whichever gets into a block contradicts a pool, which has to
//! look at everything again. The first release did so before it went on with the chain.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tests::actor::transfer;
use tests::harness::report::say;
use tests::harness::town::{FAST, Town};
use tests::harness::user::User;
use tests::workload::keys;

use super::blobs::{Attacker, USER};

/// How long the contradictions come.
const TIME: Duration = Duration::from_secs(10);
/// What waits: of each of so many senders so many.
const SENDERS: usize = 8;
const WAITING: usize = 2_000;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    // Small blocks, so that what waits goes on waiting.
    let params: Vec<&str> = FAST.iter().copied().chain(["maxBlockBytes=786432"]).collect();
    let mut town = Town::make_with(2, 0, &params)?;
    town.start_all()?;
    let nodes = [town.node(0)?.rpc, town.node(1)?.rpc];
    let mut keys = keys(SENDERS + 2)?;
    let user = keys.pop().context("a key")?;
    let double = keys.pop().context("a key")?;
    let own = double.address();
    for key in keys {
        let mut sender = Attacker::new(key, nodes[0])?;
        let body = transfer(sender.actor.address(), 1);
        let texts: Vec<String> = (0..WAITING).map(|_| sender.actor.sign(&body)).collect();
        sender.send(&texts)?;
    }
    let user = User::start(nodes[0], USER, user);
    let mut attackers =
        [Attacker::new(double.clone(), nodes[0])?, Attacker::new(double, nodes[1])?];
    let (begun, mut pairs) = (Instant::now(), 0_u64);
    let address = own.to_string();
    while begun.elapsed() < TIME {
        let account = town.node(0)?.call("ombra_getAccount", &serde_json::json!([address]))?;
        let nonce = account.get("nonce").and_then(serde_json::Value::as_u64).context("a nonce")?;
        std::thread::scope(|scope| {
            let sending = attackers.iter_mut().zip(1..).map(|(attacker, amount)| {
                attacker.actor.nonce = nonce;
                let text = attacker.actor.draft(&transfer(own, amount));
                scope.spawn(move || attacker.send(&[text]))
            });
            let sending: Vec<_> = sending.collect();
            sending.into_iter().try_for_each(|it| {
                it.join().map_err(|_panic| anyhow::anyhow!("an attacker panicked"))?.map(drop)
            })
        })?;
        pairs += 1;
        // About one pair for each block.
        std::thread::sleep(Duration::from_millis(100));
    }
    let seen = user.stop()?;
    let rebuilds = town.node(0)?.metric("txpool_rebuilds_total").unwrap_or_default();
    say(&format!("   {pairs} pairs of contradictions, {rebuilds} rebuilds"));
    seen.tell("a full pool and contradictions");
    ensure!(pairs > 0, "nothing was tried");
    town.goes_on(&[0, 1], 3)?;
    seen.is_served()
}
