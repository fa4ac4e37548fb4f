//! Three addresses take all places that a node has for peers that come by themselves. Then somebody
//! comes from elsewhere.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use testkit::harness::{Plan, Rogue, Town, User};
use testkit::net::Network;
use testkit::suite::say;
use testkit::workload::key;

use super::peers::{STATUS, answer, within};

const ADDRESSES: [&str; 3] = ["127.0.1.1", "127.0.2.1", "127.0.3.1"];
const OF_ADDRESS: usize = 16;
const PER_ADDRESS: &str = "OMBRA__P2P__GOSSIP__LIMITS__PER_ADDRESS_MAX";
/// How long whoever comes last has to stay.
const STAYS: Duration = Duration::from_secs(4);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::make(4, 0)?;
    // What it is on a node that does not share its address with others.
    town.node_mut(0)?.environment.push((PER_ADDRESS.to_owned(), OF_ADDRESS.to_string()));
    town.start_all()?;
    let node = town.node(0)?;
    let address = [node.p2p_address(Network::Gossip)];
    let come = |from: &str| Rogue::start(Plan::gossip(node, "sync")?.coming_from(from), &address);
    let user = User::start(node.rpc, key(0)?);
    let mut takers = Vec::new();
    for from in ADDRESSES {
        for _ in 0..OF_ADDRESS {
            takers.push(come(from)?);
        }
    }
    let taken = || takers.iter().filter(|taker| taker.connected() > 0).count();
    let all = within("taking the places", Duration::from_secs(20), || Ok(taken() >= 45));
    let trouble = || takers.iter().map(Rogue::trouble).max().unwrap_or_default();
    all.with_context(|| format!("{} of {}: {}", taken(), takers.len(), trouble()))?;
    let (taken, late) = (taken(), come("127.0.4.1")?);
    let took = within("a place for somebody else", Duration::from_secs(10), || {
        Ok(late.connected() > 0 && answer(&late, &STATUS)?.is_some())
    })?;
    let since = Instant::now();
    while since.elapsed() < STAYS {
        ensure!(late.connected() > 0, "it was turned away: {}", late.trouble());
        // What must not happen is watched for a while.
        std::thread::sleep(Duration::from_millis(50));
    }
    let seen = user.tell("all places taken")?;
    say(&format!("   {taken} places taken: somebody from elsewhere had one within {took:.1?}"));
    seen.is_served()
}
