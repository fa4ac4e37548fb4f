//! A peer sends 4,000 well-signed transfers a second from accounts that have nothing. No pool takes
//! them, and no rule of the bytes is broken; under a new name it comes back whenever it is cut off.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use testkit::harness::{Rogue, Town, User};
use testkit::process::cpu_seconds;
use testkit::suite::say;
use testkit::workload::key;

use super::peers::{packs, poor_txs};

/// Transactions in one message, and the time between two.
const PACK: usize = 100;
const EVERY: Duration = Duration::from_millis(25);
/// All messages, and the transactions in them.
const PACKS: usize = 600;
const TXS: u64 = 6_000;
/// How long the flood goes on.
const TIME: Duration = Duration::from_secs(15);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let packs = packs(&poor_txs(0, TXS), PACKS, PACK);
    let town = Town::start(4, 0)?;
    let node = town.node(0)?;
    // The user is at another node: what it sends reaches the flooded one as gossip.
    let user = User::start(town.node(1)?.rpc, key(0)?);
    let pid = node.pid().context("a node that runs")?;
    let (cpu, started) = (cpu_seconds(pid)?, Instant::now());
    let (mut names, mut sent, mut packs) = (1, 0_u64, packs.into_iter());
    let mut rogue = flooder(&town)?;
    let topic = rogue.1.clone();
    while started.elapsed() < TIME
        && let Some(pack) = packs.next()
    {
        if rogue.0.connected() == 0 && names < 200 {
            (rogue, names) = (flooder(&town)?, names + 1);
        }
        sent += u64::from(rogue.0.publish(&topic, pack));
        // The flood is a rate.
        std::thread::sleep(EVERY);
    }
    let cores = (cpu_seconds(pid)? - cpu) / started.elapsed().as_secs_f64();
    let seen = user.tell("a flood of poor transfers")?;
    let figure = |name: &str| node.metric(&format!("ombra_p2p_{name}_total"));
    let (bans, unread, no_room) =
        (figure("bans")?, figure("messages_unread").unwrap_or(0), figure("messages_no_room")?);
    say(&format!(
        "   {sent} messages of {PACK} under {names} names: {bans} cut off, {unread} left unread, {no_room} without room; the node took {cores:.2} cores"
    ));
    seen.is_served()?;
    ensure!(bans > 0, "whoever brings nothing but what is refused is not cut off");
    ensure!(no_room == 0, "{no_room} messages found no room");
    Ok(())
}

/// A flooder with a new name, and the topic that it floods.
fn flooder(town: &Town) -> anyhow::Result<(Rogue, String)> {
    let (rogue, topic) = Rogue::publisher(town.node(0)?)?;
    rogue.connects()?;
    Ok((rogue, topic))
}
