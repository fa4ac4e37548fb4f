//! A hold on the running network.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::command::{Command, Whom};
use crate::dial::peer_of;
use crate::ports::Status;
use crate::{Counters, PeerError, SignedTx};

/// Who opened a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The peer.
    Inbound,
    /// This node.
    Outbound,
}

/// A peer, for asking it. Equal keys are the same peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerKey(pub(crate) PeerId);

impl PeerKey {
    /// The peer with this libp2p peer id; none if the text is no peer id.
    #[must_use]
    pub fn parse(peer_id: &str) -> Option<Self> {
        peer_id.parse().ok().map(Self)
    }
}

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A connected peer.
#[derive(Clone, PartialEq, Debug)]
pub struct Peer {
    /// Whom to ask.
    pub key: PeerKey,
    /// Its libp2p peer id.
    pub peer_id: String,
    /// The address that it is reached at.
    pub address: String,
    /// Who opened the connection.
    pub direction: Direction,
    /// Whether it is one of the nodes to stay connected to: the settings or the operator name it.
    pub is_named: bool,
    /// The last round trip.
    pub latency: Option<Duration>,
    /// The height that it told last.
    pub height: Option<u64>,
    /// How far it said last that its chain goes; none until it has. A claim, not more.
    pub status: Option<Status>,
    /// How it behaves; 0 is neutral, at -80 it is cut off.
    pub score: f64,
}

/// What is shown of the network.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) peers: Vec<Peer>,
    /// Nodes to stay connected to, whether they are or not.
    pub(crate) named: usize,
    pub(crate) listen_addresses: Vec<String>,
}

/// A hold on the network. Clones share it.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) peer_id: PeerId,
    pub(crate) announcements: mpsc::Sender<SignedTx>,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) view: Arc<Mutex<View>>,
    pub(crate) counters: Counters,
}

impl Handle {
    /// This node's peer id.
    #[must_use]
    pub fn peer_id(&self) -> String {
        self.peer_id.to_string()
    }

    /// The addresses that it listens on.
    #[must_use]
    pub fn listen_addresses(&self) -> Vec<String> {
        self.view.lock().listen_addresses.clone()
    }

    /// Publishes a transaction that the own pool has taken. One that came from a peer is left out.
    /// Never waits: without room it is left to the peers' pull, and counted.
    pub fn announce(&self, tx: SignedTx) {
        if self.announcements.try_send(tx).is_err() {
            self.counters.unpublished.inc();
        }
    }

    /// The connected peers that said that they are of this network, by peer id.
    #[must_use]
    pub fn peers(&self) -> Vec<Peer> {
        self.view.lock().peers.clone()
    }

    /// How many other nodes this one is to stay connected to: those that the settings and the operator
    /// name. Addresses that led to the same node count once.
    #[must_use]
    pub fn named(&self) -> usize {
        self.view.lock().named
    }

    /// What happened so far, in numbers.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Stays connected to one more node, until the process ends.
    ///
    /// # Errors
    /// [`PeerError`] for a text that is no multiaddress, or this node's own.
    pub async fn add_peer(&self, address: &str) -> Result<(), PeerError> {
        let parsed: Multiaddr = address.parse().map_err(|_unreadable| unreadable(address))?;
        if peer_of(&parsed) == Some(self.peer_id) {
            return Err(PeerError::Own { text: address.to_owned() });
        }
        self.send(Command::Add(parsed)).await
    }

    /// Disconnects from a node, named by its peer id or by the address that it was added with, and
    /// no longer stays connected to it. It may come back by itself.
    ///
    /// # Errors
    /// [`PeerError`] for a text that is neither.
    pub async fn remove_peer(&self, whom: &str) -> Result<(), PeerError> {
        let whom = match (whom.parse(), whom.parse()) {
            (Ok(peer), _) => Whom::Peer(peer),
            (Err(_), Ok(address)) => Whom::At(address),
            (Err(_), Err(_)) => return Err(unreadable(whom)),
        };
        self.send(Command::Remove(whom)).await
    }

    /// Disconnects from a peer and keeps it out for `time`.
    ///
    /// # Errors
    /// [`PeerError`] for a text that is no peer id, or this node's own.
    pub async fn ban_peer(&self, peer_id: &str, time: Duration) -> Result<(), PeerError> {
        let peer: PeerId = peer_id.parse().map_err(|_unreadable| unreadable(peer_id))?;
        if peer == self.peer_id {
            return Err(PeerError::Own { text: peer_id.to_owned() });
        }
        self.send(Command::Ban(peer, time)).await
    }

    /// Forgives a peer and lets it in again.
    ///
    /// # Errors
    /// [`PeerError`] for a text that is no peer id.
    pub async fn unban_peer(&self, peer_id: &str) -> Result<(), PeerError> {
        let peer = peer_id.parse().map_err(|_unreadable| unreadable(peer_id))?;
        self.send(Command::Unban(peer)).await
    }

    async fn send(&self, command: Command) -> Result<(), PeerError> {
        self.commands.send(command).await.map_err(|_closed| PeerError::Stopping)
    }
}

fn unreadable(text: &str) -> PeerError {
    PeerError::Unreadable { text: text.to_owned() }
}
