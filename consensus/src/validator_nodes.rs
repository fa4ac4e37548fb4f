//! Which nodes of the engine's network have proved to be validators.
//!
//! A gossip message names the node that published it, and that node has signed it. But anybody can make up
//! nodes, so a name alone is worth nothing. A validator signs the id of its own node, and sends this proof
//! over each connection. What such a node publishes gets room of its own, which nobody else can take
//! (`parts/assembler.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use malachitebft_app::types::PeerId;
use malachitebft_app_channel::NetworkRequest;
use malachitebft_engine::network::NetworkStateDump;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::sleep;
use types::{Address, PublicKey};

/// How often the engine is asked.
const INTERVAL: Duration = Duration::from_secs(1);

/// The nodes of validators, one of each validator of the set. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValidatorNodes(Arc<Mutex<BTreeMap<Address, PeerId>>>);

impl ValidatorNodes {
    /// Whether a node has proved to be a validator.
    pub(crate) fn is_validator(&self, publisher: &PeerId) -> bool {
        self.0.lock().values().any(|node| node == publisher)
    }

    /// Learns from the engine, again and again.
    pub(crate) async fn learn(&self, network: mpsc::Sender<NetworkRequest>) -> Infallible {
        loop {
            sleep(INTERVAL).await;
            // An engine that does not answer is stopping or has much to do: what is known holds.
            if let Ok(Some(dump)) = NetworkRequest::dump_state(&network).await {
                self.update(&dump);
            }
        }
    }

    fn update(&self, dump: &NetworkStateDump) {
        let set = dump.validator_set.iter().filter_map(|it| address(&it.public_key)).collect();
        let connected = dump.peers.iter().filter_map(|(id, peer)| {
            let key = peer.consensus_public_key.as_ref()?;
            Some((address(key)?, PeerId::from_bytes(&id.to_bytes()).ok()?))
        });
        self.replace(&set, &connected.collect::<Vec<_>>());
    }

    /// The set and who is connected have changed. A node that has lost its connection keeps what it has
    /// proved, since others relay what it publishes, until another node proves to be the same validator.
    fn replace(&self, set: &BTreeSet<Address>, connected: &[(Address, PeerId)]) {
        let mut nodes = self.0.lock();
        nodes.retain(|validator, _| set.contains(validator));
        for (validator, node) in connected.iter().filter(|(validator, _)| set.contains(validator)) {
            let known = nodes.entry(*validator).or_insert(*node);
            if !connected.contains(&(*validator, *known)) {
                *known = *node;
            }
        }
    }

    /// A node that has proved to be this validator.
    #[cfg(test)]
    pub(crate) fn with(self, validator: Address, node: PeerId) -> Self {
        self.0.lock().insert(validator, node);
        self
    }
}

fn address(public_key: &[u8]) -> Option<Address> {
    Some(PublicKey::new(public_key.try_into().ok()?).address())
}

#[cfg(test)]
mod tests {
    //! Whose node is known.

    use super::*;
    use crate::testing::{key, peer};

    #[test]
    fn one_node_of_each_validator_of_the_set_is_known_until_another_takes_its_place() {
        let validator_nodes = ValidatorNodes::default();
        let [first, second, stranger] = [1, 2, 9].map(|seed| key(seed).address());
        let set = BTreeSet::from([first, second]);
        let known = || [1, 2, 3, 9].map(|byte| validator_nodes.is_validator(&peer(byte)));
        validator_nodes.replace(&set, &[(first, peer(1)), (first, peer(2)), (stranger, peer(9))]);
        assert_eq!(known(), [true, false, false, false]);
        validator_nodes.replace(&set, &[(first, peer(2)), (first, peer(1)), (second, peer(3))]);
        assert_eq!(known(), [true, false, true, false], "it is still there");
        validator_nodes.replace(&set, &[]);
        assert_eq!(known(), [true, false, true, false], "others relay what it publishes");
        validator_nodes.replace(&set, &[(first, peer(2))]);
        assert_eq!(known(), [false, true, true, false], "it has another node now");
        validator_nodes.replace(&BTreeSet::from([second]), &[]);
        assert_eq!(known(), [false, false, true, false], "it left the set");
    }
}
