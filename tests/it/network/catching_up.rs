//! A node that was never there, or away for long, gets blocks in batches before it takes part.

use anyhow::Context as _;
use serde_json::json;
use testkit::http::{Connection, send_body};
use testkit::net::{Member, Net, log_field};
use testkit::node::{wait_for, wait_until};
use testkit::workload::Workload;

use super::liar::{Liar, Lie};
use crate::fake_peer::gossip_address;
use crate::support::chain;

/// Blocks of the chain that is caught up with.
const BLOCKS: u64 = 2_500;
const NEWCOMER: usize = 3;

/// A chain of one validator that makes a block every few milliseconds, and three followers of which
/// the last has not been started.
fn long_chain(blocks: u64) -> anyhow::Result<Net> {
    let mut net = Net::make_as(&chain(1, 3, &["minBlockIntervalMs=2", "heartbeatMs=2"]))?;
    net.members[..NEWCOMER].iter_mut().try_for_each(Member::start)?;
    let texts = Workload::transfers(2_000, 10)?;
    for texts in texts.waves.into_iter().flat_map(|wave| wave.by_sender) {
        for part in texts.chunks(50) {
            Connection::open(net.members[0].rpc)?.post(&send_body(part))?;
        }
    }
    // A busy machine makes them slowly. It is patient as long as they come.
    for height in (0..blocks).step_by(100).chain([blocks]) {
        net.running().try_for_each(|member| member.reaches(height))?;
    }
    Ok(net)
}

fn syncing(member: &Member) -> anyhow::Result<bool> {
    let info = member.call("ombra_chainInfo", &json!([]))?;
    Ok(info["syncing"].as_bool().expect("chainInfo tells it"))
}

#[test]
fn a_newcomer_catches_up_from_several_peers_and_goes_on_where_it_was_killed() -> anyhow::Result<()>
{
    let mut net = long_chain(BLOCKS)?;
    net.members[NEWCOMER].start()?;
    let newcomer = &net.members[NEWCOMER];
    wait_for("the newcomer to be syncing", || {
        let seen = newcomer.readiness()?;
        if !syncing(newcomer)? {
            anyhow::ensure!(newcomer.height()? == 0, "it caught up unseen");
            return Ok(None);
        }
        let mut checks = seen["checks"].as_array().into_iter().flatten();
        let lag = checks.find(|check| check["name"] == "lag").context("the check is listed")?;
        if !lag["detail"].as_str().unwrap_or_default().starts_with("catching up") {
            return Ok(None);
        }
        assert_eq!((&json!(false), &json!(false)), (&seen["ready"], &lag["ok"]), "{seen}");
        Ok(Some(()))
    })?;
    let text = Workload::transfers(1, 1)?.waves.remove(0).by_sender.remove(0).remove(0);
    let refused = Connection::open(newcomer.rpc)?.send(&text)?;
    let error = &refused["error"];
    assert_eq!(json!([-32052, "SYNCING"]), json!([error["code"], error["data"]["code"]]));
    // Queries are answered meanwhile, of any block that is there.
    newcomer.reaches(50)?;
    assert_eq!(net.members[0].block_hash(50)?, newcomer.block_hash(50)?);

    newcomer.reaches(BLOCKS / 10)?;
    let height = newcomer.height()?;
    net.members[NEWCOMER].kill()?;
    assert!(height < BLOCKS, "it was killed in the middle, at {height}");
    net.members[NEWCOMER].start()?;
    let again = |log: &str| {
        let begun = log.lines().filter(|line| line.contains("catching up with peers"));
        begun.filter_map(|line| log_field(line, "height")).nth(1)
    };
    let newcomer = &net.members[NEWCOMER];
    let resumed = wait_for("it to go on", || Ok(again(&newcomer.logged()?)))?;
    assert!(resumed >= height, "it goes on at {resumed}, it had {height}");
    net.members[2].kill()?;
    net.same_block(BLOCKS)?;
    wait_until("it to be there", || Ok(!syncing(&net.members[NEWCOMER])?))?;
    assert!(net.members[NEWCOMER].logged()?.contains("caught up"));
    // It follows what is made from now on.
    let next = net.members[0].height()? + 20;
    net.same_block(next)?;
    // Whether it is ready as a whole depends on the age of a tip that changes every few milliseconds.
    wait_until("it not to lag", || {
        let lag = net.members[NEWCOMER].check("lag")?;
        Ok(lag["ok"] == json!(true))
    })
}

#[test]
fn peers_that_lie_about_blocks_are_kept_out_and_the_others_are_enough() -> anyhow::Result<()> {
    let mut net = long_chain(300)?;
    let lies = [Lie::Block, Lie::Certificate, Lie::Silence];
    let liars = lies.map(|lie| Liar::start(&net.members[0], lie));
    let liars: Vec<Liar> = liars.into_iter().collect::<anyhow::Result<_>>()?;
    let mut peers: Vec<String> = liars.iter().map(|liar| liar.peer.address()).collect();
    // A node that begins wants the same blocks of two of those that it names.
    peers.push(gossip_address(&net.members[0])?);
    peers.push(gossip_address(&net.members[1])?);
    let variable = ("OMBRA__P2P__GOSSIP__PEERS", json!(peers).to_string());
    net.members[NEWCOMER].start_with(&[variable])?;

    let newcomer = &net.members[NEWCOMER];
    wait_until("the liars to be kept out", || {
        let log = newcomer.logged()?;
        let kept_out = |liar: &Liar| {
            log.lines().any(|line| {
                line.contains("keeping a peer out") && line.contains(&liar.peer.peer_id())
            })
        };
        Ok(liars[..2].iter().all(kept_out))
    })?;
    net.same_block(300)?;
    wait_until("the newcomer to be there", || {
        let log = newcomer.logged()?;
        Ok(log.contains("caught up") && !syncing(newcomer)?)
    })?;
    assert!(liars.iter().all(|liar| liar.asked() > 0), "each of them was asked");
    net.same_block(net.members[0].height()?)?;
    Ok(())
}
