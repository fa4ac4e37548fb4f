//! A stranger connects to a validator where only named peers may, and never says who it is.
//!
//! The engine asked who somebody was only when it had an answer to the Identify protocol. So whoever did not
//! speak it stayed connected, heard all votes and proposals, had its own taken, and was given blocks.

use anyhow::{Context as _, ensure};
use testkit::harness::engine_wire::question;
use testkit::harness::{Plan, Rogue, Town, User};
use testkit::net::Network;
use testkit::node::wait_until;
use testkit::suite::say;
use testkit::workload::key;

/// So often it connects, and the chain goes on meanwhile.
const DIALS: usize = 4;
const BLOCKS: u64 = 10;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let node = town.node(0)?;
    let user = User::start(node.rpc, key(0)?);
    let plan = Plan::nameless(node)?;
    let topic = plan.topics.first().context("a topic")?.clone();
    let rogue = Rogue::start(plan, &[node.p2p_address(Network::Consensus)])?;
    wait_until("the stranger to be turned away again and again", || {
        // Taken or not: what it sends while it believes itself connected.
        rogue.publish(&topic, vec![7; 64]);
        rogue.ask(question(1, 5)?);
        let gained = (rogue.published(), rogue.answers().0, rogue.heard().len());
        ensure!(gained == (0, 0, 0), "published, answered, heard: {gained:?}");
        Ok(rogue.dialled() >= DIALS)
    })?;
    town.goes_on(&[0, 1, 2, 3], BLOCKS)?;
    let gained = (rogue.published(), rogue.answers().0, rogue.heard().len());
    ensure!(gained == (0, 0, 0), "published, answered, heard: {gained:?}");
    let seen = user.tell("a nameless stranger")?;
    say(&format!(
        "   turned away {} times: it heard, sent and was answered nothing",
        rogue.dialled()
    ));
    seen.is_served()
}
