//! Peers that send oversized and malformed messages, on every protocol.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tests::net::{Member, Network};
use tests::node::wait_for;

use crate::Extent;
use crate::harness::load::Load;
use crate::harness::report::say;
use crate::harness::rogue::{Plan, Rogue};
use crate::harness::town::Town;

const REST: &[usize] = &[0, 1, 2];
/// The validator whose key for the network the rogue has.
const STOLEN: usize = 3;
/// The protocols of the network for transactions, and those of the engine's.
const GOSSIP: &[&str] = &["pool", "peers", "sync"];
const CONSENSUS: &[&str] = &["sync", "validator-proof"];
const OVERSIZED: usize = 24 * 1024 * 1024;

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let mut town = Town::start(4, 0)?;
    let load = Load::start(&town.net, REST, 4, Duration::from_millis(20))?;
    load.confirms(10)?;
    town.kill(STOLEN)?;
    let key = town.node(STOLEN)?.node_key()?;
    for protocol in GOSSIP {
        let node = town.node(0)?;
        send_all(&town, Plan::gossip(node, protocol)?, Network::Gossip, protocol)?;
        load.confirms(4)?;
    }
    for protocol in CONSENSUS {
        let node = town.node(0)?;
        send_all(&town, Plan::consensus(node, key, protocol)?, Network::Consensus, protocol)?;
        load.confirms(4)?;
    }
    for network in [Network::Gossip, Network::Consensus] {
        bare(town.node(0)?, network)?;
    }
    load.confirms(4)?;
    let node = town.node(0)?;
    let [rejected, bans] = ["ombra_p2p_messages_rejected_total", "ombra_p2p_bans_total"];
    let [rejected, bans] = [node.metric(rejected)?, node.metric(bans)?];
    say(&format!("   messages that the node blamed peers for: {rejected}; peers kept out: {bans}"));
    ensure!(rejected > 0 && bans > 0, "rubbish was nobody's fault");

    town.restart(STOLEN)?;
    town.goes_on(&[0, 1, 2, STOLEN], 4)?;
    town.check(&*load.stop()?)
}

/// What is no message of any protocol here.
fn rubbish() -> Vec<Vec<u8>> {
    let long = |byte: u8, length: usize| vec![byte; length];
    vec![
        Vec::new(),
        vec![0],
        vec![0xff; 9],
        // Lengths that promise what does not come.
        [long(0xff, 8), long(0, 40)].concat(),
        [u32::MAX.to_le_bytes().to_vec(), long(1, 100)].concat(),
        // A question of each kind with too little behind it, and with too much.
        [long(0, 8), vec![0]].concat(),
        [long(0, 8), vec![1], long(1, 31)].concat(),
        [long(0, 8), vec![0, 0], long(1, 1_000)].concat(),
        [long(0, 8), vec![1], long(1, 32 * 1_000)].concat(),
        long(b'{', 60_000),
        long(0, 200_000),
    ]
}

/// One rogue after the other, because a node soon hears no more of each.
fn send_all(town: &Town, plan: Plan, network: Network, protocol: &str) -> anyhow::Result<()> {
    let address = town.node(0)?.p2p_address(network);
    let rogue = Rogue::start(plan.clone(), &[address])?;
    rogue.connects()?;
    // Subscriptions take a moment to be told; until then nothing goes out.
    let topic = plan.topics.first().context("a topic")?;
    wait_for("the rogue's first message to go out", || {
        rogue.publish(topic, vec![0xff; 3]);
        Ok((rogue.published() > 0 || rogue.connected() == 0).then_some(()))
    })?;
    for bytes in rubbish().into_iter().chain([vec![7; OVERSIZED]]) {
        for topic in &plan.topics {
            rogue.publish(topic, bytes.clone());
        }
        rogue.ask(bytes);
    }
    wait_for("the rogue's questions to be refused or answered", || {
        let (answered, failed) = rogue.answers();
        Ok((answered + failed > 0 || rogue.connected() == 0).then_some(()))
    })?;
    let (answered, failed) = rogue.answers();
    // The engine's network may cut it off before it has said anything.
    let was_heard = rogue.published() > 0;
    ensure!(was_heard || network == Network::Consensus, "nothing went out: {}", rogue.trouble());
    say(&format!(
        "   {network:?}, {protocol}: {} messages went out; of its questions {answered} had an answer, {failed} none",
        rogue.published()
    ));
    Ok(())
}

/// Bytes that are not even the handshake, and connections on which nothing is said.
fn bare(node: &Member, network: Network) -> anyhow::Result<()> {
    let address = node.p2p_address(network);
    let port: u16 = address.rsplit('/').next().context("a port")?.parse()?;
    let host = SocketAddr::new(node.rpc.ip(), port);
    let mut silent = Vec::new();
    for number in 0..50_u8 {
        let mut stream = TcpStream::connect(host)?;
        // A node may have closed it already.
        if number % 2 == 0 && stream.write_all(&vec![number; 10_000]).is_err() {
            continue;
        }
        silent.push(stream);
    }
    ensure!(!silent.is_empty(), "nothing was said");
    Ok(())
}
