//! A hold on the engine's network, which outlives the engine: a validator gets another one when it begins
//! to sign after it only followed, and when nobody hears it.

use std::sync::Arc;

use malachitebft_app::net::{Multiaddr, PeerId};
use malachitebft_app_channel::NetworkRequest;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::amnesia::Withheld;
use crate::engine::settings;

/// A hold on the engine's network: to look at its peers and change them. Clones share it.
#[derive(Clone, Debug)]
pub struct Control {
    /// The running engine's.
    pub(crate) requests: Arc<Mutex<Option<mpsc::Sender<NetworkRequest>>>>,
    /// The nodes to stay connected to: those of the settings, and what operators made of them. The next
    /// engine starts with these.
    pub(crate) named: Arc<Mutex<Vec<Multiaddr>>>,
    pub(crate) peer_id: String,
    pub(crate) withheld: Withheld,
}

/// A connected node.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Its libp2p peer id.
    pub peer_id: String,
    /// Its address as a multiaddress.
    pub address: String,
    /// The name it gives itself.
    pub moniker: String,
    /// Its validator address, if it proved to be one of the current set.
    pub validator: Option<String>,
    /// How it behaves; 0 is neutral.
    pub score: f64,
    /// Whether the peer opened the connection.
    pub is_inbound: bool,
}

/// Why peers could not be listed or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Not a multiaddress.
    #[error("{text:?} is not a multiaddress such as /ip4/127.0.0.1/tcp/7100")]
    Multiaddr {
        /// What was written.
        text: String,
    },
    /// The engine refused, or is stopping.
    #[error("the consensus network does not answer: {reason}")]
    Network {
        /// Why.
        reason: String,
    },
}

impl Control {
    /// The height until which this validator follows without signing, because it has signed it and lost
    /// what it knew of it; none if it signs, and for a follower.
    #[must_use]
    pub fn follows_until(&self) -> Option<u64> {
        self.withheld.get()
    }

    fn requests(&self) -> Result<mpsc::Sender<NetworkRequest>, PeerError> {
        let requests = self.requests.lock().clone();
        requests.ok_or_else(|| network_error("the engine is not there"))
    }

    /// This node's libp2p peer id, for others' peer lists.
    #[must_use]
    pub fn peer_id(&self) -> &str {
        &self.peer_id
    }

    /// The connected nodes, by peer id.
    ///
    /// # Errors
    /// [`PeerError::Network`] when the engine does not answer.
    pub async fn peers(&self) -> Result<Vec<Peer>, PeerError> {
        let dump = NetworkRequest::dump_state(&self.requests()?).await.map_err(network_error)?;
        let Some(dump) = dump else { return Ok(Vec::new()) };
        let mut peers: Vec<Peer> = dump
            .peers
            .into_iter()
            .map(|(peer_id, peer)| Peer {
                peer_id: peer_id.to_string(),
                address: peer.address.to_string(),
                moniker: peer.moniker,
                validator: peer.consensus_address,
                score: peer.score,
                is_inbound: peer.connection_direction.is_some_and(|it| it.as_str() == "inbound"),
            })
            .collect();
        peers.sort_by(|a, b| a.peer_id.cmp(&b.peer_id));
        Ok(peers)
    }

    /// Stays connected to one more node, until the process ends.
    ///
    /// # Errors
    /// [`PeerError`] for a bad address, or when the engine refuses.
    pub async fn add_peer(&self, address: &str) -> Result<(), PeerError> {
        let address = multiaddr(address)?;
        NetworkRequest::add_persistent_peer(&self.requests()?, address.clone())
            .await
            .map_err(network_error)?
            .map_err(network_error)?;
        self.named.lock().push(address);
        Ok(())
    }

    /// No longer stays connected to a node, named by its peer id or by the address that it was
    /// added with.
    ///
    /// # Errors
    /// [`PeerError`] for a text that is neither, a node that is not stayed connected to, or when
    /// the engine refuses.
    pub async fn remove_peer(&self, whom: &str) -> Result<(), PeerError> {
        let address = match whom.parse::<PeerId>() {
            Ok(peer) => self.persistent_address(peer).await?,
            Err(_) => multiaddr(whom)?,
        };
        NetworkRequest::remove_persistent_peer(&self.requests()?, address.clone())
            .await
            .map_err(network_error)?
            .map_err(network_error)?;
        self.named.lock().retain(|it| *it != address);
        Ok(())
    }
}

impl Control {
    /// The address at which the engine stays connected to a peer.
    async fn persistent_address(&self, peer: PeerId) -> Result<Multiaddr, PeerError> {
        let dump = NetworkRequest::dump_state(&self.requests()?).await.map_err(network_error)?;
        let addresses = dump.map(|dump| dump.persistent_peer_addrs).unwrap_or_default();
        let name = peer.to_string();
        let mut own = addresses.into_iter().filter(|it| it.to_string().ends_with(&name));
        own.next().ok_or_else(|| network_error(format!("{name} is not a peer to stay with")))
    }
}

fn multiaddr(text: &str) -> Result<Multiaddr, PeerError> {
    settings::multiaddr(text).map_err(|_unreadable| PeerError::Multiaddr { text: text.to_owned() })
}

fn network_error(error: impl std::fmt::Display) -> PeerError {
    PeerError::Network { reason: error.to_string() }
}
