//! Peers that connect, are asked, and never answer.

use std::time::Instant;

use anyhow::ensure;
use testkit::net::Network;
use testkit::node::wait_until;

use crate::{ALL, Extent};
use testkit::harness::engine_wire::status;
use testkit::harness::{BROADCAST, Load, Plan, Rogue, Town};
use testkit::suite::say;

/// The follower, which is away in between and has to catch up past the silent peers.
const BEHIND: usize = 4;
/// The follower whose place on the engine's network a silent peer takes.
const STOLEN: usize = 5;
const BLOCKS: u64 = 50;
/// Blocks that may still be under way to the follower when its wires are cut.
const UNDER_WAY_MAX: u64 = 8;
/// The protocols of the network for transactions.
const PROTOCOLS: &[&str] = &["pool", "peers", "sync"];

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let mut town = Town::on_wires(4, 2)?;
    town.kill(STOLEN)?;
    let load = Load::full(&town.net, ALL, 4)?;
    town.kill(BEHIND)?;
    town.goes_on(ALL, BLOCKS)?;
    town.restart(BEHIND)?;

    let silent = Silent::start(&town)?;
    silent.are_asked()?;
    town.goes_on(&[0, 1, 2, 3, BEHIND], 1)?;
    // A node that runs, and for which only the silent peers are left for a while.
    town.switch()?.part(ALL, &[BEHIND]);
    let at_the_cut = town.height(ALL)?;
    town.comes_to_rest(&[BEHIND], at_the_cut + UNDER_WAY_MAX)?;
    town.goes_on(ALL, BLOCKS)?;
    town.switch()?.heal();
    let back = Instant::now();
    let goal = town.height(ALL)?;
    wait_until("the node that was cut off to have what it missed", || {
        silent.claim_blocks();
        Ok(town.node(BEHIND)?.height()? >= goal)
    })?;
    say(&format!("   {BLOCKS} blocks behind: it had them after {:.1?}", back.elapsed()));
    town.goes_on(&[0, 1, 2, 3, BEHIND], 8)?;
    load.confirms(40)?;
    silent.tell();
    ensure!(load.ledger().failures().is_empty(), "clients noticed: {:?}", load.ledger().failures());
    town.check(&*load.stop()?)
}

/// The silent peers.
struct Silent {
    /// Those on the network for transactions, by what they can be asked.
    gossip: Vec<(&'static str, Rogue)>,
    engine: Rogue,
    /// What that one says, so that it is asked: that it has blocks which nobody else has.
    claim: Vec<u8>,
}

impl Silent {
    fn start(town: &Town) -> anyhow::Result<Self> {
        let addresses = |network| -> anyhow::Result<Vec<String>> {
            (0..=BEHIND).map(|at| Ok(town.node(at)?.p2p_address(network))).collect()
        };
        let (node, key) = (town.node(0)?, town.node(STOLEN)?.node_key()?);
        let mut gossip = Vec::new();
        for protocol in PROTOCOLS {
            let plan = Plan::gossip(node, protocol)?;
            gossip.push((*protocol, Rogue::start(plan, &addresses(Network::Gossip)?)?));
        }
        let plan = Plan::consensus(node, key, BROADCAST)?.without_topics();
        let engine = Rogue::start(plan, &addresses(Network::Consensus)?)?;
        Ok(Self { gossip, engine, claim: status(key, u64::MAX)? })
    }

    fn claim_blocks(&self) {
        // It goes out to whoever is connected, again and again.
        let _told = self.engine.ask(self.claim.clone());
    }

    /// Waits until each of them was asked what it can be asked.
    fn are_asked(&self) -> anyhow::Result<()> {
        for (protocol, rogue) in &self.gossip {
            wait_until(&format!("a question on {protocol} to the silent peer"), || {
                Ok(rogue.asked(protocol) > 0)
            })?;
        }
        wait_until("a question of the engine to the silent peer", || {
            self.claim_blocks();
            Ok(self.engine.asked("/sync/") > 0)
        })
    }

    fn tell(&self) {
        for (protocol, rogue) in &self.gossip {
            say(&format!("   asked on {protocol}: {} times", rogue.asked(protocol)));
        }
        say(&format!("   asked by the engine: {} times", self.engine.asked("/sync/")));
    }
}
