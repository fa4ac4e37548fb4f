//! Whether anybody hears what this validator publishes.
//!
//! A peer tells what it has subscribed to when the first connection to a node opens, and never again while
//! one is open. A node that loses its connections without the peer noticing, as in a power cut, comes back
//! on a second one: it receives everything, and what it publishes is not sent to that peer. The engine
//! neither notices nor mends that, and a set that needs this validator's votes stops. A new network does
//! mend it: all its connections are first ones, once the peers have given up the old ones.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use malachitebft_app_channel::NetworkRequest;
use malachitebft_engine::network::NetworkStateDump;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::engine::settings::MESH_MIN;

/// How often the engine is asked. It looks at its mesh itself once a second.
const INTERVAL: Duration = Duration::from_secs(1);

/// Resolves when a node that matters to this validator has not heard it for `patience`, although it is
/// connected. Without a patience it never does.
pub(super) async fn lost(network: mpsc::Sender<NetworkRequest>, patience: Option<Duration>) {
    let Some(patience) = patience else { return pending().await };
    let mut deaf: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        sleep(INTERVAL).await;
        // An engine that does not answer is stopping or has much to do: nothing is known.
        let Ok(Some(dump)) = NetworkRequest::dump_state(&network).await else { continue };
        let now = Instant::now();
        let since = |peer: String| (deaf.get(&peer).copied().unwrap_or(now), peer);
        deaf = who_do_not_hear(&dump).map(since).map(|(since, peer)| (peer, since)).collect();
        if deaf.values().any(|since| since.elapsed() >= patience) {
            return;
        }
    }
}

/// The validators and named nodes that are connected and have not told what they listen to. Gossipsub takes
/// every node that has told it into the mesh of a topic while there are fewer than [`MESH_MIN`] in it. With
/// more than that, others carry on what is published.
fn who_do_not_hear(dump: &NetworkStateDump) -> impl Iterator<Item = String> {
    let is_sparse = |topic: &&String| {
        dump.peers.values().filter(|peer| peer.topics.contains(*topic)).count() < MESH_MIN
    };
    let sparse: Vec<&String> = dump.local_node.subscribed_topics.iter().filter(is_sparse).collect();
    let matters = dump.peers.iter().filter(|(id, peer)| {
        peer.consensus_address.is_some() || dump.persistent_peer_ids.contains(id)
    });
    matters
        .filter(move |(_, peer)| sparse.iter().any(|topic| !peer.topics.contains(*topic)))
        .map(|(id, _)| id.to_string())
}
