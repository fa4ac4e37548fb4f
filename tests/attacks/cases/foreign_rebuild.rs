//! A pool is full of what waits, and somebody signs two transactions for each nonce: one for this
//! node and another one for the next. Whichever gets into a block contradicts a pool, which has to
//! look at everything again. The first release did so before it went on with the chain.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::transfer;
use testkit::harness::{FAST, Town};
use testkit::net::{Member, NetOptions};
use testkit::parallel::joined;
use testkit::suite::say;
use testkit::workload::keys;
use types::Keypair;

use super::blobs::Attacker;

/// How long the contradictions come.
const TIME: Duration = Duration::from_secs(12);
/// About one pair for each block.
const PAUSE: Duration = Duration::from_millis(100);
/// What waits: of each of so many senders so many, which is most that a pool takes.
const SENDERS: usize = 75;
const WAITING: usize = 2_000;
/// So large that few of them leave with a block.
const PROMPT_BYTES: usize = 900;
/// The longest that the chain may stand still, and a client wait for an answer. A transfer behind a
/// full pool waits for longer, so no user's transfers are looked at here.
const PAUSE_MAX_MS: u64 = 1_000;
/// Whose pool is full, and the other.
const FULL: usize = 0;
const OTHER: usize = 1;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    // Small blocks, so that what waits goes on waiting.
    let options = NetOptions { accounts: SENDERS + 1, ..NetOptions::new(2, 0) };
    let mut town = Town::of(options, &[FAST, &["maxBlockBytes=786432"]].concat())?;
    let mut keys = keys(SENDERS + 1)?;
    let double = keys.pop().context("a key")?;
    // Neither node gets the other's transactions but in blocks, as if they were far apart.
    let apart = [super::peers(&town, &[])?];
    // Alone it makes no blocks, and so nothing leaves its pool.
    town.node_mut(FULL)?.start_with(&apart)?;
    let waiting = fill(town.node(FULL)?, keys)?;
    town.node_mut(OTHER)?.start_with(&apart)?;
    town.goes_on(&[FULL, OTHER], 1)?;
    let nodes = [town.node(FULL)?, town.node(OTHER)?];
    let first = nodes[FULL].height()?;
    let mut attackers = [Attacker::at(&double, nodes[FULL])?, Attacker::at(&double, nodes[OTHER])?];
    let (begun, mut pairs, mut slowest) = (Instant::now(), 0_u64, Duration::ZERO);
    while begun.elapsed() < TIME {
        let asked = Instant::now();
        nodes[FULL].call("ombra_getAccount", &json!([double.address().to_string()]))?;
        slowest = slowest.max(asked.elapsed());
        pairs += u64::from(contradict(&mut attackers, nodes[OTHER])?);
        // The rate of the contradictions is the attack's.
        std::thread::sleep(PAUSE);
    }
    let last = town.height(&[OTHER])?;
    let interval = town.intervals(OTHER, first, last)?.into_iter().max().context("no blocks")?;
    let rebuilds = nodes[FULL].metric("ombra_txpool_rebuilds_total")?;
    let left = nodes[FULL].metric("ombra_txpool_pending")?;
    say(&format!(
        "   {pairs} pairs of contradictions, {rebuilds} rebuilds, {left} of {waiting} still wait; longest between two of {} blocks {interval} ms, slowest answer {slowest:.0?}",
        last - first,
    ));
    ensure!(rebuilds > 0, "nothing was built anew: this proves nothing");
    ensure!(interval < PAUSE_MAX_MS, "the chain stood still for {interval} ms");
    ensure!(slowest < Duration::from_millis(PAUSE_MAX_MS), "an answer took {slowest:?}");
    Ok(())
}

/// Fills a pool with requests; answers how many it took.
fn fill(node: &Member, keys: Vec<Keypair>) -> anyhow::Result<usize> {
    let prompt = "a".repeat(PROMPT_BYTES);
    let mut waiting = 0;
    for key in keys {
        let mut sender = Attacker::new(key, node.rpc)?;
        let texts: Vec<String> = (0..WAITING)
            .map(|_| {
                let request = sender.actor.request(&prompt, 1_000, 1);
                sender.actor.sign(&request.into())
            })
            .collect();
        waiting += sender.send(&texts)?;
    }
    ensure!(waiting >= SENDERS * WAITING / 2, "only {waiting} transactions were taken");
    Ok(waiting)
}

/// Sends two transactions of one nonce, one to each node. False if a node refused its own.
fn contradict(attackers: &mut [Attacker; 2], other: &Member) -> anyhow::Result<bool> {
    let address = attackers[OTHER].actor.address();
    let account = other.call("ombra_getAccount", &json!([address.to_string()]))?;
    let nonce = account.get("nonce").and_then(Value::as_u64).context("a nonce")?;
    let sent = std::thread::scope(|scope| {
        let sending = attackers.iter_mut().zip(1..).map(|(attacker, amount)| {
            attacker.actor.nonce = nonce;
            let text = attacker.actor.draft(&transfer(address, amount));
            scope.spawn(move || attacker.send(&[text]))
        });
        let sending: Vec<_> = sending.collect();
        let sent = sending.into_iter().map(|it| joined(it.join(), "an attacker"));
        sent.collect::<anyhow::Result<Vec<_>>>()
    })?;
    Ok(sent.iter().all(|accepted| *accepted == 1))
}
