//! Whether anybody hears what this validator publishes.
//!
//! A peer tells what it has subscribed to when the first connection to a node opens, and never again while
//! one is open. A node that loses its connections without the peer noticing, as in a power cut, comes back
//! on a second one: it receives everything, and what it publishes is sent to nobody. The engine neither
//! notices nor mends that, and a set that needs this validator's votes stops. A new network does mend it:
//! all its connections are first ones, once the peers have given up the old ones.

use std::future::pending;
use std::time::Duration;

use malachitebft_app_channel::NetworkRequest;
use malachitebft_engine::network::NetworkStateDump;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// How often the engine is asked. It looks at its mesh itself once a second.
const INTERVAL: Duration = Duration::from_secs(1);

/// Resolves when nobody has heard this validator for `patience`, although other nodes that matter to it are
/// connected. Without a patience it never does.
pub(super) async fn lost(network: mpsc::Sender<NetworkRequest>, patience: Option<Duration>) {
    let Some(patience) = patience else { return pending().await };
    let mut unheard_since = None;
    loop {
        sleep(INTERVAL).await;
        // An engine that does not answer is stopping or has much to do: nothing is known.
        let Ok(Some(dump)) = NetworkRequest::dump_state(&network).await else { continue };
        if !is_unheard(&dump) {
            unheard_since = None;
        } else if unheard_since.get_or_insert_with(Instant::now).elapsed() >= patience {
            return;
        }
    }
}

/// Whether validators or named nodes are connected, and some topic of the engine has nobody in its mesh.
/// Others may be connected who have no reason to listen, so they alone do not make a node unheard.
fn is_unheard(dump: &NetworkStateDump) -> bool {
    let listens = dump.peers.iter().any(|(id, peer)| {
        peer.consensus_address.is_some() || dump.persistent_peer_ids.contains(id)
    });
    let has_nobody = |topic: &String| !dump.peers.values().any(|peer| peer.topics.contains(topic));
    listens && dump.local_node.subscribed_topics.iter().any(has_nobody)
}
