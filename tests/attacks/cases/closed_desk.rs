//! Six peers ask a node for blocks, again and again, and read no answer. Others want to know meanwhile
//! how far the node is, and to have blocks of it.

use std::time::{Duration, Instant};

use anyhow::ensure;
use testkit::actor::{blob_chunk, blob_init, people};
use testkit::harness::{Plan, Rogue, Town, User};
use testkit::net::Network;
use testkit::suite::say;
use types::Body;

use super::peers::{STATUS, answer, first_blocks};

const DEAF: usize = 6;
/// What an answer has at least, so that it does not fit into what the system keeps for a reader.
const ANSWER_BYTES: usize = 600 * 1024;
/// What the chain has of this size.
const BLOBS: usize = 6;
const BLOB_BYTES: usize = 100 * 1024;
/// How long the desk is held.
const TIME: Duration = Duration::from_secs(12);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let node = town.node(0)?;
    let address = [node.p2p_address(Network::Gossip)];
    let plan = || Plan::gossip(node, "sync");
    let probe = Rogue::start(plan()?, &address)?;
    probe.connects()?;
    let [mut writer, user] = people()?;
    for number in 0..BLOBS {
        let (id, bytes) = (format!("blob-{number}"), vec![7; BLOB_BYTES]);
        node.send(&writer.sign(&Body::BlobInit(blob_init(&id, &bytes))))?;
        let chunk = node.send(&writer.sign(&blob_chunk(&id, 0, &bytes)))?;
        node.includes(&chunk)?;
    }
    let blocks = answer(&probe, &first_blocks())?.map_or(0, |blocks| blocks.len());
    ensure!(blocks > ANSWER_BYTES, "an answer has {blocks} bytes");

    let user = User::start(node.rpc, user.key);
    let deaf = (0..DEAF).map(|_| Rogue::start(plan()?.deaf(), &address));
    let deaf = deaf.collect::<anyhow::Result<Vec<_>>>()?;
    deaf.iter().try_for_each(Rogue::connects)?;
    let started = Instant::now();
    let (mut asked, mut told, mut blocks) = (0_u32, 0_u32, 0_u32);
    while started.elapsed() < TIME {
        for rogue in deaf.iter().filter(|rogue| rogue.connected() > 0) {
            for _ in 0..4 {
                let _asked = rogue.ask(first_blocks());
            }
        }
        asked += 1;
        told += u32::from(answer(&probe, &STATUS)?.is_some());
        blocks += u32::from(answer(&probe, &first_blocks())?.is_some());
        // The questions come at a rate.
        std::thread::sleep(Duration::from_millis(100));
    }
    let seen = user.tell("a desk that is held")?;
    say(&format!(
        "   {DEAF} peers that do not read: of {asked} questions how far the node is {told} were answered, of as many for blocks {blocks}"
    ));
    seen.is_served()?;
    ensure!(told == asked, "of {asked} questions how far the node is {told} were answered");
    ensure!(blocks * 2 > asked, "of {asked} questions for blocks {blocks} were answered");
    Ok(())
}
