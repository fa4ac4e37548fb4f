//! Four validators and a follower: one chain, whichever node one talks to, and whoever is missing.

use testkit::net::Net;
use testkit::workload::Workload;

use crate::support::logs;

/// Signed transfers of one account, in nonce order.
fn transfers(count: usize) -> anyhow::Result<std::vec::IntoIter<String>> {
    let work = Workload::transfers(count, 1)?;
    let mut senders = work.waves.into_iter().flat_map(|wave| wave.by_sender);
    Ok(senders.next().unwrap_or_default().into_iter())
}

#[test]
fn what_a_follower_is_given_is_in_the_same_block_everywhere() -> anyhow::Result<()> {
    let mut net = Net::start(4, 1)?;
    let mut texts = transfers(30)?;
    let mut send = |net: &Net| -> anyhow::Result<u64> {
        let follower = &net.members[4];
        let hash = follower.send(&texts.next().expect("there are enough"))?;
        let (height, block) = follower.includes(&hash)?;
        for member in net.running() {
            assert_eq!((height, block.clone()), member.includes(&hash)?, "{}", member.name);
        }
        Ok(height)
    };

    for _ in 0..5 {
        let height = send(&net)?;
        net.same_block(height)?;
    }

    let before = net.members[3].height()?;
    net.members[3].kill()?;
    let mut height = before;
    for _ in 0..5 {
        height = send(&net)?;
    }
    assert!(height > before, "blocks go on without the fourth validator");

    net.members[3].start()?;
    net.members[3].meets(4)?;
    assert_eq!(net.members[0].block_hash(height)?, net.same_block(height)?);
    // It takes part again: what comes now reaches it too.
    let height = send(&net)?;
    net.same_block(height)?;
    Ok(())
}

#[test]
fn a_node_that_was_away_gets_what_waits_in_the_pools() -> anyhow::Result<()> {
    // One of two validators is missing, so nothing is decided and transactions wait.
    let mut net = Net::start(2, 1)?;
    net.members[1].kill()?;
    let mut texts = transfers(3)?;
    let hash = net.members[2].send(&texts.next().expect("there is one"))?;
    net.members[1].start()?;
    let (height, _) = net.members[1].includes(&hash)?;
    net.same_block(height)?;
    Ok(())
}

#[test]
fn a_node_of_another_genesis_is_refused_with_a_reason() -> anyhow::Result<()> {
    let mut net = Net::start(1, 1)?;
    let mut stranger = Net::make(1, 0)?;
    stranger.members[0].start()?;
    net.members[1].add_gossip_peer(&stranger.members[0])?;
    logs(&net.members[1], "refusing a node of another network")?;
    assert_eq!(1, net.members[1].peers()?.len(), "only the own validator");
    net.members[1].kill()
}
