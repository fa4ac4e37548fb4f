//! A peer that speaks the protocols and publishes whatever a test wants it to.

use std::sync::atomic::{AtomicU64, Ordering};

use libp2p::gossipsub::{self, IdentTopic, MessageAuthenticity, MessageId, ValidationMode};
use libp2p::swarm::NetworkBehaviour;
use libp2p::{Multiaddr, Swarm, SwarmBuilder, identify, noise, tcp, yamux};
use types::Hash;

use super::{Node, home_network};

#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    identify: identify::Behaviour,
    pub(crate) gossip: gossipsub::Behaviour,
}

/// The topic of the network of most tests.
pub(crate) fn topic() -> IdentTopic {
    let genesis = Hash::digest(b"genesis").to_string();
    IdentTopic::new(format!("/ombra/town/{}/txs/1", &genesis[..8]))
}

/// A peer that says that it is of the network and dials the node. It never tells of messages that
/// it has, and may publish one again.
pub(crate) fn rogue(node: &Node) -> Swarm<Behaviour> {
    let count = AtomicU64::new(0);
    let gossip = gossipsub::ConfigBuilder::default()
        .validation_mode(ValidationMode::Anonymous)
        .gossip_lazy(0)
        .gossip_factor(0.0)
        .message_id_fn(move |_| {
            MessageId::from(count.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec())
        })
        .build()
        .expect("settings that fit together");
    let mut gossip = gossipsub::Behaviour::new(MessageAuthenticity::Anonymous, gossip)
        .expect("settings that fit together");
    gossip.subscribe(&topic()).expect("a topic");
    dialling(node, |identify| Behaviour { identify, gossip })
}

/// A peer that says that it is of the network, with this behaviour, and dials the node.
pub(crate) fn dialling<B: NetworkBehaviour>(
    node: &Node,
    behaviour: impl FnOnce(identify::Behaviour) -> B,
) -> Swarm<B> {
    let mut swarm = SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_tcp(tcp::Config::default(), noise::Config::new, yamux::Config::default)
        .expect("a transport")
        .with_behaviour(|key| {
            let identify = identify::Config::new(home_network().version(), key.public());
            behaviour(identify::Behaviour::new(identify))
        })
        .expect("a behaviour")
        .build();
    let address: Multiaddr = node.address().parse().expect("an address");
    swarm.dial(address).expect("a dial");
    swarm
}
