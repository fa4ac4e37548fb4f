//! Health, peers and the operator's levers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rpc::ports::{
    Admin, AdminError, Check, Clock, Identity, Network, Peer, PeerChange, PortFault, Readiness,
    Trust,
};
use tokio_util::sync::CancellationToken;

use crate::chain::NodeChain;
use crate::clock::now_ms;
use crate::engine::EngineControl;
use crate::forks;
use crate::logging::LogControl;
use crate::sync::{Phase, SyncState, TrustedBlock};

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
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) network: Arc<Peers>,
    pub(crate) sync: Arc<SyncState>,
    pub(crate) data: PathBuf,
    pub(crate) free_disk_bytes_min: u64,
    pub(crate) trusted: Option<TrustedBlock>,
    pub(crate) trust_period_ms: u64,
    /// Cancelled when the validator's key may sign; none for a follower.
    pub(crate) may_sign: Option<CancellationToken>,
}

/// The age of the newest block up to which a node is ready, in milliseconds: three heartbeats. On a chain that makes
/// blocks every few milliseconds, a busy machine is that late at times, so it is at least a second.
fn tip_age_max_ms(heartbeat_ms: u64) -> u64 {
    heartbeat_ms.saturating_mul(3).max(1_000)
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
        let (tip, age) = self.chain.tip_and_age();
        // Before the first block the age counts from the start: genesis may be of long ago.
        let age_ms = match tip.height {
            0 => age.known_ms(),
            _ => now_ms().saturating_sub(tip.timestamp),
        };
        let age_max_ms = tip_age_max_ms(self.chain.spec().params().heartbeat_ms);
        let disk = free_disk_bytes(&self.data);
        let disk_ok = disk.as_ref().is_ok_and(|free| *free >= self.free_disk_bytes_min);
        let disk = disk.map_or_else(|e| e.to_string(), |free| format!("{free} bytes free"));
        let writable = self.chain.store().is_writable();
        let (forks_ok, forks) = forks::readiness(&self.chain.forks(), tip.height);
        vec![
            Check {
                name: "peers",
                is_ok: !needs_peers || peers > 0,
                detail: format!("{peers} connected"),
            },
            Check {
                name: "lag",
                is_ok: self.sync.phase() == Phase::Running && !self.sync.is_syncing(),
                detail: self.sync.detail(tip.height),
            },
            Check {
                name: "tipAge",
                is_ok: age_ms <= age_max_ms,
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
            Check { name: "forks", is_ok: forks_ok, detail: forks },
            signing(self.follows_until(tip.height), self.waits_for_votes()),
        ]
    }

    fn clock(&self) -> Option<Check> {
        let fit = self.network.engine.get().map(consensus::Control::clock_fit);
        Some(clock(fit.unwrap_or_default()))
    }

    fn trust(&self) -> Option<Trust> {
        let tip = self.chain.tip();
        let age = |since: u64| Some(now_ms().saturating_sub(since));
        let (anchor, height, age_ms) = match self.trusted {
            _ if tip.height > 0 => ("chain", tip.height, age(tip.timestamp)),
            // When it was made is not known before it is here.
            Some(trusted) => ("trusted", trusted.height, None),
            None => ("genesis", 0, age(self.chain.spec().genesis_time)),
        };
        Some(Trust { anchor, height, age_ms, period_ms: self.trust_period_ms })
    }
}

impl Health {
    /// Until which height the validator follows because it has forgotten what it signed.
    fn follows_until(&self, tip: u64) -> Option<u64> {
        self.network.follows_until().filter(|height| *height > tip)
    }

    /// Whether the key must not sign yet because votes in blocks before the snapshot are not counted.
    fn waits_for_votes(&self) -> bool {
        self.may_sign.as_ref().is_some_and(|may_sign| !may_sign.is_cancelled())
    }
}

/// Whether a validator signs. One that has lost what it knew of a height that it signed does not, and
/// neither does one that may not know of a fork. Stopping another validator meanwhile may stop the chain.
fn signing(follows_until: Option<u64>, waits_for_votes: bool) -> Check {
    let detail = match follows_until {
        Some(height) => format!(
            "this key has signed for height {height}, or may have, and what this node knew of that is lost: \
             the node follows without signing until that height is decided"
        ),
        None if waits_for_votes => "the node follows without signing until the votes for later \
             forks in the blocks before its snapshot are counted"
            .to_owned(),
        None => "nothing is held back".to_owned(),
    };
    let is_ok = follows_until.is_none() && !waits_for_votes;
    Check { name: "signing", is_ok, detail }
}

/// Whether the machine's clock is right, by the blocks of others. If most do not fit it, it is more likely
/// to be wrong than all of theirs.
fn clock(fit: consensus::Fit) -> Check {
    let consensus::Fit { proposers, ahead, behind } = fit;
    let missed = ahead.saturating_add(behind);
    let is_ok = missed.saturating_mul(2) <= proposers;
    let detail = match (proposers, missed) {
        (0, _) => "this clock has not judged a block of another validator recently".to_owned(),
        (_, 0) => format!("the last blocks of {proposers} other validators fit this clock"),
        _ => format!(
            "of the last blocks of {proposers} other validators {ahead} were ahead of this clock \
             and {behind} behind it: {} is wrong; this validator's proposals and votes count only \
             while its clock is right",
            if is_ok { "theirs" } else { "it, or that of each of them," }
        ),
    };
    Check { name: "clock", is_ok, detail }
}

/// How often the list of peers is read from the engine.
const PEERS_INTERVAL: Duration = Duration::from_secs(1);

/// The peers of both networks: of consensus, read from the engine once a second, and of
/// transactions. A node that is met on both is one peer.
pub(crate) struct Peers {
    own: String,
    listen: Option<String>,
    engine_peers: Mutex<Vec<consensus::Peer>>,
    engine: Arc<EngineControl>,
    gossip: Option<p2p::Handle>,
    sync: Arc<SyncState>,
}

impl Peers {
    pub(crate) fn new(
        engine: Arc<EngineControl>,
        gossip: Option<p2p::Handle>,
        listen: Option<&str>,
        sync: Arc<SyncState>,
    ) -> Self {
        let (own, listen) = (engine.peer_id().to_owned(), listen.map(str::to_owned));
        Self { own, listen, engine_peers: Mutex::new(Vec::new()), engine, gossip, sync }
    }

    /// Until which height this validator follows without signing.
    fn follows_until(&self) -> Option<u64> {
        self.engine.get().and_then(consensus::Control::follows_until)
    }

    /// Keeps the list fresh until asked to stop.
    pub(crate) async fn run(
        self: Arc<Self>,
        stop: CancellationToken,
    ) -> Result<(), crate::fault::NodeFault> {
        stop.run_until_cancelled(self.watch()).await;
        Ok(())
    }

    async fn watch(&self) {
        loop {
            if let Some(engine) = self.engine.get() {
                match engine.peers().await {
                    Ok(peers) => *self.engine_peers.lock() = peers,
                    Err(error) => tracing::debug!(%error, "the engine did not list its peers"),
                }
            }
            tokio::time::sleep(PEERS_INTERVAL).await;
        }
    }
}

fn of_engine(peer: &consensus::Peer) -> Peer {
    let consensus::Peer { peer_id, address, moniker: _, validator: _, score, is_inbound } = peer;
    Peer {
        peer_id: peer_id.clone(),
        address: address.clone(),
        height: None,
        latency_ms: None,
        score: Some(*score),
        is_inbound: *is_inbound,
    }
}

fn of_gossip(peer: p2p::Peer) -> Peer {
    let p2p::Peer {
        key: _,
        peer_id,
        address,
        direction,
        is_named: _,
        latency,
        height,
        status: _,
        score,
    } = peer;
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Peer {
        peer_id,
        address,
        height,
        latency_ms: latency.map(millis),
        score: Some(score),
        is_inbound: direction == p2p::Direction::Inbound,
    }
}

impl Network for Peers {
    fn identity(&self) -> Identity {
        let gossip = self.gossip.iter().flat_map(p2p::Handle::listen_addresses);
        let addresses = self.listen.iter().cloned().chain(gossip);
        Identity { peer_id: self.own.clone(), listen_addresses: addresses.collect() }
    }

    fn peers(&self) -> Vec<Peer> {
        let engine = self.engine_peers.lock();
        let mut peers: BTreeMap<String, Peer> =
            engine.iter().map(|peer| (peer.peer_id.clone(), of_engine(peer))).collect();
        // Of a node that is met on both networks the transaction network knows more.
        let gossip = self.gossip.iter().flat_map(p2p::Handle::peers);
        peers.extend(gossip.map(|peer| (peer.peer_id.clone(), of_gossip(peer))));
        peers.into_values().collect()
    }

    fn is_syncing(&self) -> bool {
        self.sync.is_syncing()
    }
}

/// What an operator is told who changes peers of consensus too early.
const NOT_STARTED: &str = "consensus to have started: the node is catching up";

/// The operator's levers.
pub(crate) struct Operator {
    pub(crate) log: LogControl,
    pub(crate) log_filter: Mutex<String>,
    pub(crate) pool: Arc<txpool::Pool>,
    pub(crate) engine: Arc<EngineControl>,
    pub(crate) gossip: Option<p2p::Handle>,
}

impl Operator {
    /// The transaction network, if the node takes part in one.
    fn gossip(&self, given: &str) -> Result<&p2p::Handle, AdminError> {
        self.gossip.as_ref().ok_or_else(|| AdminError::Invalid {
            field: "change",
            got: given.to_owned(),
            expected: "a node that has peers; this one runs without peers".to_owned(),
        })
    }

    /// Forgets a peer in both networks. Fails if neither can make sense of what was given.
    async fn remove(&self, whom: &str) -> Result<(), String> {
        let engine = match self.engine.get() {
            Some(engine) => engine.remove_peer(whom).await.map_err(|error| error.to_string()),
            None => Err(NOT_STARTED.to_owned()),
        };
        match &self.gossip {
            None => engine,
            Some(gossip) => gossip.remove_peer(whom).await.map_err(|error| error.to_string()),
        }
    }
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
            .map_err(|fault| AdminError::Fault(PortFault::new("flushing the pool", fault)))?;
        Ok(u64::try_from(dropped).unwrap_or(u64::MAX))
    }

    async fn change_peer(&self, change: PeerChange) -> Result<(), AdminError> {
        let (given, outcome) = match &change {
            PeerChange::Add(address) => {
                let outcome = match self.engine.get() {
                    Some(engine) => {
                        engine.add_peer(address).await.map_err(|error| error.to_string())
                    }
                    None => Err(NOT_STARTED.to_owned()),
                };
                (address, outcome)
            }
            PeerChange::AddGossip(address) => {
                let outcome = self.gossip(address)?.add_peer(address).await;
                (address, outcome.map_err(|error| error.to_string()))
            }
            PeerChange::Remove(whom) => (whom, self.remove(whom).await),
            PeerChange::Ban { peer_id, seconds } => {
                let time = Duration::from_secs(*seconds);
                let outcome = self.gossip(peer_id)?.ban_peer(peer_id, time).await;
                (peer_id, outcome.map_err(|error| error.to_string()))
            }
            PeerChange::Unban(peer_id) => {
                let outcome = self.gossip(peer_id)?.unban_peer(peer_id).await;
                (peer_id, outcome.map_err(|error| error.to_string()))
            }
        };
        outcome.map_err(|expected| AdminError::Invalid {
            field: "change",
            got: given.clone(),
            expected,
        })
    }
}

#[cfg(test)]
mod tests {
    //! What `/readyz` says of a validator that does not sign.

    use super::*;

    #[test]
    fn a_clock_that_most_blocks_of_others_do_not_fit_is_told() {
        let fit = |proposers, ahead, behind| clock(consensus::Fit { proposers, ahead, behind });
        for right in [fit(0, 0, 0), fit(3, 0, 0), fit(3, 1, 0), fit(2, 0, 1)] {
            assert!(right.is_ok, "{}", right.detail);
        }
        for wrong in [fit(3, 2, 0), fit(3, 1, 1), fit(1, 0, 1)] {
            assert!(!wrong.is_ok, "{}", wrong.detail);
        }
        let detail = fit(3, 2, 0).detail;
        assert!(detail.contains("2 were ahead of this clock and 0 behind"), "{detail}");
    }

    #[test]
    fn a_block_may_be_three_heartbeats_old_and_a_second_on_a_fast_chain() {
        let known = [(10_000, 30_000), (400, 1_200), (50, 1_000), (u64::MAX, u64::MAX)];
        assert_eq!(
            known,
            known.map(|(heartbeat_ms, _)| (heartbeat_ms, tip_age_max_ms(heartbeat_ms)))
        );
    }

    #[test]
    fn a_validator_that_is_held_back_is_not_ready_and_says_why() {
        let free = signing(None, false);
        assert!(free.is_ok, "{}", free.detail);
        let forgot = signing(Some(42), false);
        assert!(!forgot.is_ok && forgot.detail.contains("height 42"), "{}", forgot.detail);
        let waits = signing(None, true);
        assert!(!waits.is_ok && waits.detail.contains("votes for later forks"), "{}", waits.detail);
        assert_eq!(signing(Some(42), true).detail, forgot.detail);
    }
}
