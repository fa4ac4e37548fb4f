//! Health, peers and the operator's levers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rpc::ports::{
    Admin, AdminError, Check, Clock, Fault, Identity, Network, Peer, PeerChange, Readiness,
};

use crate::chain::Chain;
use crate::clock::now_ms;
use crate::logging::LogControl;

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        now_ms()
    }
}

/// What `/readyz` looks at.
pub(crate) struct Health {
    pub(crate) chain: Arc<Chain>,
    pub(crate) network: Arc<Peers>,
    pub(crate) data: PathBuf,
    pub(crate) free_disk_bytes_min: u64,
}

/// Free bytes on the disk that holds `path`.
///
/// # Errors
/// [`std::io::Error`] if the system does not say.
pub(crate) fn free_disk_bytes(path: &std::path::Path) -> std::io::Result<u64> {
    let facts = rustix::fs::statvfs(path)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

impl Readiness for Health {
    fn checks(&self) -> Vec<Check> {
        let peers = self.network.peers().len();
        // Peers are needed unless a single validator makes the blocks.
        let needs_peers = self.chain.validators().next.validators().len() > 1;
        let tip = self.chain.tip();
        let age_ms = now_ms().saturating_sub(tip.timestamp);
        let age_max_ms = self.chain.spec().params().heartbeat_ms.saturating_mul(3);
        let disk = free_disk_bytes(&self.data);
        let disk_ok = disk.as_ref().is_ok_and(|free| *free >= self.free_disk_bytes_min);
        let disk = disk.map_or_else(|e| e.to_string(), |free| format!("{free} bytes free"));
        let writable = self.chain.store().is_writable();
        vec![
            Check {
                name: "peers",
                is_ok: !needs_peers || peers > 0,
                detail: format!("{peers} connected"),
            },
            Check {
                name: "lag",
                is_ok: !self.network.is_syncing(),
                detail: format!("height {}", tip.height),
            },
            Check {
                name: "tipAge",
                is_ok: tip.height == 0 || age_ms <= age_max_ms,
                detail: format!("{age_ms} ms, at most {age_max_ms} ms"),
            },
            Check { name: "disk", is_ok: disk_ok, detail: disk },
            Check {
                name: "database",
                is_ok: matches!(writable, Ok(true)),
                detail: match writable {
                    Ok(true) => "writable".to_owned(),
                    Ok(false) => "writes are stopped".to_owned(),
                    Err(error) => error.to_string(),
                },
            },
        ]
    }
}

/// How often the list of peers is read from the engine.
const PEERS_INTERVAL: Duration = Duration::from_secs(1);

/// The peers of the consensus network, read from the engine once a second.
pub(crate) struct Peers {
    identity: Identity,
    connected: Mutex<Vec<Peer>>,
    engine: consensus::Control,
}

impl Peers {
    pub(crate) fn new(engine: consensus::Control, listen: Vec<String>) -> Self {
        let identity = Identity { peer_id: engine.peer_id().to_owned(), listen_addresses: listen };
        Self { identity, connected: Mutex::new(Vec::new()), engine }
    }

    /// Keeps the list fresh until cancelled.
    pub(crate) async fn watch(&self) {
        loop {
            match self.engine.peers().await {
                Ok(peers) => *self.connected.lock() = peers.into_iter().map(peer).collect(),
                Err(error) => tracing::debug!(%error, "the engine did not list its peers"),
            }
            tokio::time::sleep(PEERS_INTERVAL).await;
        }
    }
}

fn peer(peer: consensus::Peer) -> Peer {
    Peer {
        peer_id: peer.peer_id,
        address: peer.address,
        height: None,
        latency_ms: None,
        score: None,
        is_inbound: false,
    }
}

impl Network for Peers {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn peers(&self) -> Vec<Peer> {
        self.connected.lock().clone()
    }

    fn is_syncing(&self) -> bool {
        false
    }
}

/// The operator's levers.
pub(crate) struct Operator {
    pub(crate) log: LogControl,
    pub(crate) log_filter: Mutex<String>,
    pub(crate) pool: Arc<txpool::Pool>,
    pub(crate) engine: consensus::Control,
}

#[async_trait]
impl Admin for Operator {
    fn log_filter(&self) -> String {
        self.log_filter.lock().clone()
    }

    fn set_log_filter(&self, filter: &str) -> Result<(), AdminError> {
        self.log.set(filter).map_err(|error| AdminError::Invalid {
            field: "filter",
            got: filter.to_owned(),
            expected: error.to_string(),
        })?;
        filter.clone_into(&mut self.log_filter.lock());
        Ok(())
    }

    fn flush_pool(&self) -> Result<u64, AdminError> {
        let dropped = self
            .pool
            .clear(now_ms())
            .map_err(|fault| AdminError::Fault(Fault::new("flushing the pool", fault)))?;
        Ok(u64::try_from(dropped).unwrap_or(u64::MAX))
    }

    async fn change_peer(&self, change: PeerChange) -> Result<(), AdminError> {
        let (address, outcome) = match &change {
            PeerChange::Add(address) => (address, self.engine.add_peer(address).await),
            PeerChange::Remove(address) => (address, self.engine.remove_peer(address).await),
        };
        outcome.map_err(|error| AdminError::Invalid {
            field: "address",
            got: address.clone(),
            expected: error.to_string(),
        })
    }
}
