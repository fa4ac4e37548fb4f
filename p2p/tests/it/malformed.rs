//! Peers that speak the protocols and send what is no message.

use std::time::Duration;

use futures::StreamExt as _;
use libp2p::gossipsub::{self, IdentTopic, MessageAuthenticity, MessageId, ValidationMode};
use libp2p::swarm::NetworkBehaviour;
use libp2p::{Multiaddr, Swarm, SwarmBuilder, identify, noise, tcp, yamux};
use types::Hash;

use crate::support::{Node, config, eventually, home_network};

#[derive(NetworkBehaviour)]
struct Behaviour {
    identify: identify::Behaviour,
    gossip: gossipsub::Behaviour,
}

fn topic() -> IdentTopic {
    let genesis = Hash::digest(b"genesis").to_string();
    IdentTopic::new(format!("/ombra/town/{}/txs/1", &genesis[..8]))
}

/// A node that says that it is of the network and then sends anything.
fn rogue() -> Swarm<Behaviour> {
    let gossip = gossipsub::ConfigBuilder::default()
        .validation_mode(ValidationMode::Anonymous)
        .message_id_fn(|message| MessageId::new(Hash::digest(&message.data).as_bytes()))
        .build()
        .expect("settings that fit together");
    let mut gossip = gossipsub::Behaviour::new(MessageAuthenticity::Anonymous, gossip)
        .expect("settings that fit together");
    gossip.subscribe(&topic()).expect("a topic");
    SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_tcp(tcp::Config::default(), noise::Config::new, yamux::Config::default)
        .expect("a transport")
        .with_behaviour(|key| {
            let identify = identify::Config::new(home_network().version(), key.public());
            Behaviour { identify: identify::Behaviour::new(identify), gossip }
        })
        .expect("a behaviour")
        .build()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_sends_rubbish_is_cut_off() {
    let node = Node::start(config()).await;
    let mut rogue = rogue();
    let address: Multiaddr = node.address().parse().expect("an address");
    rogue.dial(address).expect("a dial");
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
