//! Peers that speak the protocols and send what is no message.

use std::time::Duration;

use futures::StreamExt as _;

use crate::support::rogue::{rogue, topic};
use crate::support::{Node, config, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_sends_rubbish_is_cut_off() {
    let node = Node::start(config()).await;
    let mut rogue = rogue(&node);
    let flood = tokio::spawn(async move {
        let mut beat = tokio::time::interval(Duration::from_millis(20));
        for number in 0_u64.. {
            tokio::select! {
                _ = rogue.select_next_some() => {}
                _ = beat.tick() => {
                    // Fails until the node has subscribed, and once it is gone.
                    let rubbish = number.to_le_bytes();
                    let _sent = rogue.behaviour_mut().gossip.publish(topic(), rubbish);
                }
            }
        }
    });
    eventually("the rogue is kept out", || node.handle.counters().bans.get() > 0).await;
    eventually("it is gone", || node.handle.peers().is_empty()).await;
    assert!(node.handle.counters().rejected.get() >= 3);
    assert_eq!(0, node.pool.offered(), "the pool has seen nothing of it");
    flood.abort();
}
