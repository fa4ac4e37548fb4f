//! Peers say that their pools are full, and give one transaction each nine seconds. A node that starts
//! meanwhile has transactions that nobody else knows, and wants to be pulled from.

use std::collections::BTreeMap;
use std::time::Duration;

use testkit::actor::{Actor, transfer};
use testkit::harness::rogue::Answer;
use testkit::harness::{Plan, Rogue, Town};
use testkit::net::Network;
use testkit::suite::say;
use testkit::workload::key;
use types::Hash;

use super::peers::{poor_txs, within};

const SLOW: u64 = 9;
/// A little less than how long a node waits for an answer.
const PAUSE: Duration = Duration::from_secs(9);
const TXS: u64 = 100;
/// Transactions that only the late node has.
const WAITING: u64 = 10;
/// How soon they have to be pulled, once the node answers.
const PULLED_MAX: Duration = Duration::from_secs(10);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::make(1, 1)?;
    // The follower takes transactions that wait for one before them, while nobody else is there.
    town.node_mut(0)?.start()?;
    town.node_mut(1)?.start()?;
    town.net.meet_all()?;
    town.node(1)?.reaches(1)?;
    town.kill(0)?;
    let sender = Actor::new(key(0)?);
    for nonce in 1..=WAITING {
        let text = sender.at(nonce).draft(&transfer(sender.address(), 1));
        town.node(1)?.send(&text)?;
    }
    town.kill(1)?;

    town.restart(0)?;
    let node = town.node(0)?;
    let address = [node.p2p_address(Network::Gossip)];
    let slow = (0..SLOW)
        .map(|number| Rogue::start_with(Plan::gossip(node, "pool")?, &address, slowly(number)));
    let slow = slow.collect::<anyhow::Result<Vec<_>>>()?;
    slow.iter().try_for_each(Rogue::connects)?;
    within("a question to each of four slow peers", Duration::from_secs(20), || {
        Ok(slow.iter().filter(|rogue| rogue.asked("pool") > 1).count() >= 4)
    })?;
    let pulled = town.node(0)?.metric("ombra_p2p_pulled_total")?;
    town.restart(1)?;
    let took = within("the pull from an honest node", PULLED_MAX, || {
        Ok(town.node(0)?.metric("ombra_p2p_pulled_total")? >= pulled + WAITING)
    })?;
    say(&format!("   {SLOW} slow peers: what only one node had was pulled within {took:.1?}"));
    Ok(())
}

/// Lists transactions of nobody's, and gives one of them after each pause.
fn slowly(number: u64) -> Answer {
    let txs: BTreeMap<Hash, Vec<u8>> = poor_txs(1_000 + number, TXS).into_iter().collect();
    Box::new(move |question| {
        let (content, kind) = (question.bytes.get(9..)?, *question.bytes.get(8)?);
        if kind == 0 {
            let mut list = vec![0; 9];
            list.extend(txs.keys().flat_map(|hash| *hash.as_bytes()));
            return Some(list);
        }
        // This is what makes it slow.
        std::thread::sleep(PAUSE);
        let hash = Hash::new(content.first_chunk::<32>().copied()?);
        txs.get(&hash).cloned()
    })
}
