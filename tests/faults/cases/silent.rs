//! Peers that connect, are asked, and never answer.

use std::time::Duration;

use anyhow::ensure;
use tests::net::Network;
use tests::node::wait_for;

use crate::Extent;
use crate::harness::load::Load;
use crate::harness::report::say;
use crate::harness::rogue::{Plan, Rogue};
use crate::harness::town::Town;

const ALL: &[usize] = &[0, 1, 2, 3];
/// The follower, which is away in between and has to catch up past the silent peers.
const BEHIND: usize = 4;
const BLOCKS: u64 = 50;
const PROTOCOLS: &[&str] = &["pool", "peers", "sync"];

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let mut town = Town::start(4, 1)?;
    let load = Load::start(&town.net, ALL, 4, Duration::ZERO)?;
    load.confirms(10)?;
    town.kill(BEHIND)?;
    town.goes_on(ALL, BLOCKS)?;

    let addresses: Vec<String> = (0..=BEHIND)
        .map(|at| Ok(town.node(at)?.p2p_address(Network::Gossip)))
        .collect::<anyhow::Result<_>>()?;
    town.restart(BEHIND)?;
    let node = town.node(0)?;
    let silent = PROTOCOLS.iter().map(|protocol| {
        // Twice, so that there are more of them than of others on that protocol.
        let plan = Plan::gossip(node, protocol)?;
        Ok([Rogue::start(plan.clone(), &addresses)?, Rogue::start(plan, &addresses)?])
    });
    let silent = silent.collect::<anyhow::Result<Vec<[Rogue; 2]>>>()?;
    let silent: Vec<Rogue> = silent.into_iter().flatten().collect();
    wait_for("questions to the silent peers", || {
        Ok((silent.iter().map(Rogue::asked).sum::<usize>() > 0).then_some(()))
    })?;
    town.goes_on(&[0, 1, 2, 3, BEHIND], 8)?;
    load.confirms(40)?;
    let asked: Vec<usize> = silent.iter().map(Rogue::asked).collect();
    say(&format!("   the silent peers were asked {asked:?} times and answered nothing"));
    ensure!(load.ledger().failures().is_empty(), "clients noticed: {:?}", load.ledger().failures());
    town.check(&*load.stop()?)
}
