//! A hold on the engine's network, which outlives the engine: a validator gets another one when it begins
//! to sign after it only followed, and when nobody hears it.

use std::sync::Arc;

use malachitebft_app::net::{Multiaddr, PeerId};
use malachitebft_app_channel::NetworkRequest;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::amnesia::Withheld;
use crate::engine::settings;
use crate::{Fit, Punctuality};

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
    pub(crate) punctuality: Punctuality,
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

    /// Whether the blocks of others fitted this machine's clock lately. A node that does not vote judges
    /// none.
    #[must_use]
    pub fn clock_fit(&self) -> Fit {
        self.punctuality.fit()
    }

    fn requests(&self) -> Result<mpsc::Sender<NetworkRequest>, PeerError> {
        let requests = self.requests.lock().clone();
        requests.ok_or_else(|| network_error("the engine is not running"))
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
    /// [`PeerError`] for a bad address, or one that is named already.
    pub async fn add_peer(&self, address: &str) -> Result<(), PeerError> {
        let address = multiaddr(address)?;
        {
            let mut named = self.named.lock();
            if named.contains(&address) {
                return Err(network_error(format!("{address} is already a permanent peer")));
            }
            named.push(address.clone());
        }
        let added = match self.requests() {
            Ok(requests) => NetworkRequest::add_persistent_peer(&requests, address.clone()).await,
            Err(_between_engines) => return Ok(()),
        };
        match added {
            Ok(Err(refused)) => {
                self.named.lock().retain(|it| *it != address);
                Err(network_error(refused))
            }
            // An engine that is stopping answers nothing; the next one has the peer.
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    /// No longer stays connected to a node, named by its peer id or by the address that it was
    /// added with.
    ///
    /// # Errors
    /// [`PeerError`] for a text that is neither, or a node that is not stayed connected to.
    pub async fn remove_peer(&self, whom: &str) -> Result<(), PeerError> {
        let address = self.take_named(whom)?;
        if let Ok(requests) = self.requests() {
            // An engine that is stopping answers nothing; the next one does not have the peer.
            let removed = NetworkRequest::remove_persistent_peer(&requests, address).await;
            removed.unwrap_or(Ok(())).map_err(network_error)?;
        }
        Ok(())
    }

    /// Takes a node out of those to stay connected to.
    fn take_named(&self, whom: &str) -> Result<Multiaddr, PeerError> {
        let by_id = whom.parse::<PeerId>().ok().map(|id| format!("/p2p/{id}"));
        let address = if by_id.is_some() { None } else { Some(multiaddr(whom)?) };
        let is_it = |named: &Multiaddr| match &by_id {
            Some(id) => named.to_string().ends_with(id.as_str()),
            None => Some(named) == address.as_ref(),
        };
        let mut named = self.named.lock();
        let at = named.iter().position(is_it);
        let at = at.ok_or_else(|| network_error(format!("{whom} is not a permanent peer")))?;
        Ok(named.remove(at))
    }
}

fn multiaddr(text: &str) -> Result<Multiaddr, PeerError> {
    settings::multiaddr(text).map_err(|_unreadable| PeerError::Multiaddr { text: text.to_owned() })
}

fn network_error(error: impl std::fmt::Display) -> PeerError {
    PeerError::Network { reason: error.to_string() }
}
