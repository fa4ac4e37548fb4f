//! Peers that send oversized and malformed messages, on every protocol of both networks.

pub(super) mod engine;

use anyhow::{Context as _, ensure};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use testkit::net::{Member, Network};
use testkit::node::wait_until;

use crate::{ALL, Extent};
use testkit::harness::{Load, Plan, Rogue, Town};
use testkit::suite::say;

/// The protocols of the network for transactions.
const PROTOCOLS: &[&str] = &["pool", "peers", "sync"];
const OVERSIZED: usize = 24 * 1024 * 1024;

/// On the network for transactions.
pub(super) fn run(_: Extent) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let load = Load::steady(&town.net, ALL, 4)?;
    let node = town.node(0)?;
    let [rejected, bans] = ["ombra_p2p_messages_rejected_total", "ombra_p2p_bans_total"];
    publish_all(node)?;
    load.confirms(4)?;
    let rejected = node.metric(rejected)?;
    for protocol in PROTOCOLS {
        let before = node.metric(bans)?;
        ask_all(node, protocol)?;
        load.confirms(4)?;
        let blamed = node.metric(bans)? - before;
        say(&format!("   {protocol}: {blamed} peers kept out for {} questions", rubbish().len()));
        // To ask whom a node knows takes no bytes, and a stream with too many is only closed.
        ensure!(blamed > 0 || *protocol == "peers", "rubbish was nobody's fault");
    }
    bare(node, Network::Gossip)?;
    load.confirms(4)?;
    say(&format!("   messages that the node blamed peers for: {rejected}"));
    ensure!(rejected > 0, "rubbish was nobody's fault");
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
        long(7, OVERSIZED),
    ]
}

/// Each message from another rogue, because a node soon hears no more of each.
fn publish_all(node: &Member) -> anyhow::Result<()> {
    for bytes in rubbish() {
        let (rogue, topic) = Rogue::publisher(node)?;
        // Subscriptions take a moment to be told; until then nothing goes out.
        wait_until("a rogue's message to go out", || Ok(rogue.publish(&topic, bytes.clone())))
            .with_context(|| rogue.trouble())?;
    }
    Ok(())
}

/// Each question from another rogue.
fn ask_all(node: &Member, protocol: &str) -> anyhow::Result<()> {
    let plan = Plan::gossip(node, protocol)?;
    for bytes in rubbish() {
        let rogue = Rogue::start(plan.clone(), &[node.p2p_address(Network::Gossip)])?;
        ask(&rogue, bytes)?;
    }
    Ok(())
}

/// Asks, and waits until it was answered or refused; that it never left is an error.
fn ask(rogue: &Rogue, bytes: Vec<u8>) -> anyhow::Result<()> {
    let outcomes = || {
        let (answered, failed) = rogue.answers();
        answered + failed
    };
    let before = outcomes();
    wait_until("a rogue's question to go out", || Ok(rogue.ask(bytes.clone()) > 0))
        .with_context(|| rogue.trouble())?;
    wait_until("a rogue's question to be answered or refused", || {
        ensure!(rogue.undelivered() == 0, "a question was not delivered: {}", rogue.trouble());
        Ok(outcomes() > before)
    })
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
