//! Messages that come back to the node that published them.

use futures::StreamExt as _;
use libp2p::gossipsub::Event;
use libp2p::swarm::SwarmEvent;

use crate::support::rogue::{BehaviourEvent, rogue, topic};
use crate::support::{Node, config, repeatedly, tx};

/// Messages that come back.
const ECHOES: usize = 12;

/// A peer sends a message back to its origin when it had it from a third one first, as on slow or
/// lossy wires. That is no offence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_a_message_back_to_its_origin_stays() {
    let node = Node::start(config()).await;
    let mut rogue = rogue(&node);
    let echo = tokio::spawn(async move {
        let mut echoes = 0;
        loop {
            let event = rogue.select_next_some().await;
            let SwarmEvent::Behaviour(BehaviourEvent::Gossip(Event::Message { message, .. })) =
                event
            else {
                continue;
            };
            let gossip = &mut rogue.behaviour_mut().gossip;
            gossip.publish(topic(), message.data).expect("it goes back");
            echoes += 1;
            if echoes == ECHOES {
                // What comes last shows that all before it have arrived.
                gossip.publish(topic(), b"rubbish").expect("it goes out");
            }
        }
    });
    repeatedly("all echoes have arrived", |number| {
        node.receives(&tx(&format!("good {number}")));
        node.handle.counters().rejected.get() > 0
    })
    .await;
    assert_eq!(1, node.handle.counters().rejected.get(), "the rubbish, and no echo");
    let peers = node.handle.peers();
    let score = peers.first().expect("it is still connected").score;
    assert!(score > -11.0, "at most the rubbish counts, no echo: {score}");
    assert_eq!(0, node.handle.counters().bans.get());
    echo.abort();
}
