//! Peers, events, health, the operator's levers, the time.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;
use types::CheckedTx;

use super::{DroppedTx, Feed, PortFault};

/// A connected peer.
#[derive(Clone, PartialEq, Debug)]
pub struct Peer {
    /// Its peer id.
    pub peer_id: String,
    /// The address that it is reached at.
    pub address: String,
    /// The height that it told last.
    pub height: Option<u64>,
    /// The last round trip.
    pub latency_ms: Option<u64>,
    /// How it behaves; 0 is neutral.
    pub score: Option<f64>,
    /// Whether the peer opened the connection.
    pub is_inbound: bool,
}

/// This node in the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its peer id.
    pub peer_id: String,
    /// Addresses that it listens on.
    pub listen_addresses: Vec<String>,
}

/// Peers.
pub trait Network: Send + Sync {
    /// This node.
    fn identity(&self) -> Identity;

    /// Connected peers.
    fn peers(&self) -> Vec<Peer>;

    /// Whether the node is behind the chain and catching up.
    fn is_syncing(&self) -> bool;
}

/// Where a transaction stands that the pool took in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolStanding {
    /// The next blocks may hold it.
    Pending,
    /// It waits until something else is there, and may wait for ever.
    Queued,
}

/// What happened to a transaction in the pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolEvent {
    /// It was taken in.
    Accepted {
        /// The transaction.
        tx: CheckedTx,
        /// Where it stood then.
        standing: PoolStanding,
    },
    /// It was dropped. Inclusion in a block is not an event of the pool.
    Dropped(Arc<DroppedTx>),
}

impl PoolEvent {
    /// The transaction that it is about.
    #[must_use]
    pub fn tx(&self) -> &CheckedTx {
        match self {
            Self::Accepted { tx, .. } => tx,
            Self::Dropped(dropped) => &dropped.tx,
        }
    }

    /// About how much memory the event takes if nobody else has its transaction: for the text, and for what
    /// was parsed of it.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        const BYTES_PER_TEXT_BYTE: usize = 2;
        const BYTES_PER_EVENT: usize = 1024;
        let text = self.tx().signed_bytes();
        text.saturating_mul(BYTES_PER_TEXT_BYTE).saturating_add(BYTES_PER_EVENT)
    }
}

/// What happens, as it happens. Nobody whom the node needs waits for a listener, or wakes one: there may
/// be thousands.
pub trait Events: Send + Sync {
    /// The height of the latest committed block, sent once [`super::ChainQueries::block`] can answer it.
    fn committed(&self) -> watch::Receiver<u64>;

    /// Events of the pool from now on. Each listener is woken for each of them, so a connection has one.
    fn pool(&self) -> Feed<PoolEvent>;

    /// The transactions that the pool drops from now on: few, so that whoever needs no other events
    /// is not woken for each.
    fn dropped(&self) -> Feed<Arc<DroppedTx>>;
}

/// One check of `/readyz`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// `peers`, `lag`, `tipAge`, `disk`, `database`, `forks`, `signing`; of a miner `node`, `backend` and others.
    pub name: &'static str,
    /// Whether it passed.
    pub is_ok: bool,
    /// What was measured, for people.
    pub detail: String,
}

/// What a node relies on, and how old that is; `/readyz` shows it, and it makes no node unready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trust {
    /// `genesis`, `trusted` (the block of the settings) or `chain` (the newest block).
    pub anchor: &'static str,
    /// The block's height.
    pub height: u64,
    /// How long ago it was made, in milliseconds; none for a trusted block that is not here yet.
    pub age_ms: Option<u64>,
    /// A node that starts with an older one believes no single peer, in milliseconds.
    pub period_ms: u64,
}

/// Health.
pub trait Readiness: Send + Sync {
    /// Every check with its outcome. Takes at most a few milliseconds.
    fn checks(&self) -> Vec<Check>;

    /// Whether blocks of others fit the machine's clock; none for a process that is no node. It makes no
    /// node unready: with a wrong clock a validator proposes and votes in vain, but the node has what the
    /// others decide.
    fn clock(&self) -> Option<Check> {
        None
    }

    /// What the node relies on; none for a process that is no node.
    fn trust(&self) -> Option<Trust> {
        None
    }
}

/// What an operator asks for cannot be done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdminError {
    /// The argument is not acceptable.
    #[error("{field} {got:?} is not acceptable: {expected}")]
    Invalid {
        /// Which argument.
        field: &'static str,
        /// Its value.
        got: String,
        /// What would be.
        expected: String,
    },
    /// A fault of this node.
    #[error(transparent)]
    Fault(#[from] PortFault),
}

/// The operator's levers, served on the Unix socket only.
#[async_trait]
pub trait Admin: Send + Sync {
    /// The log filter in force.
    fn log_filter(&self) -> String;

    /// Replaces the log filter.
    ///
    /// # Errors
    /// [`AdminError`].
    fn set_log_filter(&self, filter: &str) -> Result<(), AdminError>;

    /// Drops every waiting transaction; answers how many.
    ///
    /// # Errors
    /// [`AdminError`].
    fn flush_pool(&self) -> Result<u64, AdminError>;

    /// Connects to a peer, or forgets one.
    ///
    /// # Errors
    /// [`AdminError`].
    async fn change_peer(&self, change: PeerChange) -> Result<(), AdminError>;
}

/// A change of the peers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerChange {
    /// Stay connected, for consensus, to the node at this multiaddress.
    Add(String),
    /// Stay connected, for transactions, to the node at this multiaddress.
    AddGossip(String),
    /// Disconnect from the node with this peer id or multiaddress.
    Remove(String),
    /// Keep a peer out of the exchange of transactions for a while.
    Ban {
        /// Its peer id.
        peer_id: String,
        /// For how long, in seconds.
        seconds: u64,
    },
    /// Let a peer in again, by its peer id.
    Unban(String),
}

/// The time.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
}

/// Addresses that the interfaces are bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoints {
    /// JSON-RPC and the rest of the network port.
    pub rpc: SocketAddr,
    /// Prometheus metrics, if served.
    pub metrics: Option<SocketAddr>,
    /// The operator's socket, if served.
    pub admin: Option<PathBuf>,
}
