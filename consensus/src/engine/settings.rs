//! The engine's configuration, made of ours.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use malachitebft_app::config::{
    ConsensusConfig, DiscoveryConfig, GossipSubConfig, NodeConfig, P2pConfig, ProtocolNames,
    PubSubProtocol, ValuePayload, ValueSyncConfig,
};
use malachitebft_app::net::Multiaddr;
use malachitebft_core_types::LinearTimeouts;
use types::Hash;
use types::sign_bytes::Domain;

use super::timeouts::HeightTimeouts;
use crate::{Config, Network, StartError, Timeouts, admission};

/// Room for what surrounds a block in a message.
const ENVELOPE_BYTES: usize = 1024 * 1024;

/// Largest gossip message: a chunk of a body with its envelope, or a certificate of all votes.
const GOSSIP_BYTES_MAX: usize = 256 * 1024;

/// How often nodes tell each other how far they are. A node that missed blocks learns of them no
/// later than this.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);

/// How many nodes gossipsub wants in the mesh of a topic.
const MESH_SIZE: usize = 6;
/// With fewer than this in a mesh, gossipsub takes in every node that listens to the topic.
pub(crate) const MESH_MIN: usize = 4;
/// More than this are cut off, and refused for a minute: more than the engine has connections, so that
/// nobody finds a mesh full and cannot tell that from not being heard.
const MESH_MAX: usize = 512;
/// Of those in a mesh, how many this node must have called itself.
const MESH_OUTBOUND_MIN: usize = 2;

/// Blocks asked for in one sync request; the answer is also bounded in bytes.
const SYNC_BATCH: usize = 20;
/// How long a peer may take for an answer, in times that a proposal has to arrive: the answer may be as
/// large, and wait for others. Another peer is asked only after that.
const SYNC_ANSWER_IN_PROPOSALS: u32 = 3;
/// The same at least.
const SYNC_ANSWER_MIN: Duration = Duration::from_secs(1);
/// So many sync requests of one peer are answered in [`SYNC_WINDOW`]. Each is read from the database while
/// the engine waits for it. Whoever is behind asks a few times per [`STATUS_INTERVAL`] at most.
const SYNC_REQUESTS_MAX: u32 = 100;
const SYNC_WINDOW: Duration = Duration::from_secs(10);
/// So many sync requests are answered at a time, and so many more wait for that.
const SYNC_REQUESTS_AT_A_TIME: usize = 1;
const SYNC_REQUESTS_WAITING: usize = 16;

/// The engine's protocol, with the version of what its messages hold. 2: proposals may be compact blocks.
const CONSENSUS: &str = "consensus/2";

/// The engine's configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    moniker: String,
    consensus: ConsensusConfig,
    sync: ValueSyncConfig,
}

impl Settings {
    /// The settings of an engine that stays connected to the `named` nodes.
    pub(crate) fn new(config: &Config, named: Vec<Multiaddr>) -> Result<Self, StartError> {
        let response_bytes = response_bytes_max(config.block_bytes_max);
        let mut p2p = P2pConfig {
            protocol: gossip(),
            discovery: DiscoveryConfig {
                enabled: false,
                // Validators of a test network share one address; both ends of a pair dial.
                max_connections_per_ip: 64,
                ip_throttle_duration: Duration::ZERO,
                ..DiscoveryConfig::default()
            },
            protocol_names: protocol_names(&config.domain.now()),
            ..P2pConfig::default()
        };
        p2p.pubsub_max_size = size(GOSSIP_BYTES_MAX);
        p2p.rpc_max_size = size(response_bytes);
        match &config.network {
            Network::Alone => {
                p2p.listen_addr = multiaddr("/ip4/127.0.0.1/tcp/0")?;
                p2p.persistent_peers_only = true;
            }
            Network::Peers { listen, open, .. } => {
                p2p.listen_addr = multiaddr(listen)?;
                p2p.persistent_peers = named;
                p2p.persistent_peers_only = !open;
            }
        }
        let mut sync = ValueSyncConfig {
            enabled: config.network != Network::Alone,
            status_update_interval: STATUS_INTERVAL,
            batch_size: SYNC_BATCH,
            request_timeout: answer_wait_max(&config.timeouts),
            inbound_request_rate_limit_window: SYNC_WINDOW,
            max_inbound_requests_per_window: SYNC_REQUESTS_MAX,
            max_concurrent_inbound_requests: SYNC_REQUESTS_AT_A_TIME,
            max_pending_inbound_requests: SYNC_REQUESTS_WAITING,
            ..ValueSyncConfig::default()
        };
        sync.max_response_size = size(response_bytes);
        let consensus = ConsensusConfig {
            enabled: true,
            p2p,
            value_payload: ValuePayload::ProposalAndParts,
            queue_capacity: admission::HEIGHTS_AHEAD,
            queue_per_height_capacity: admission::MESSAGES_PER_HEIGHT_MAX,
        };
        Ok(Self { moniker: config.moniker.clone(), consensus, sync })
    }
}

impl NodeConfig for Settings {
    fn moniker(&self) -> &str {
        &self.moniker
    }

    fn consensus(&self) -> &ConsensusConfig {
        &self.consensus
    }

    fn consensus_mut(&mut self) -> &mut ConsensusConfig {
        &mut self.consensus
    }

    fn value_sync(&self) -> &ValueSyncConfig {
        &self.sync
    }

    fn value_sync_mut(&mut self) -> &mut ValueSyncConfig {
        &mut self.sync
    }
}

/// How long an answer to a sync request is waited for.
fn answer_wait_max(timeouts: &Timeouts) -> Duration {
    timeouts.propose.saturating_mul(SYNC_ANSWER_IN_PROPOSALS).max(SYNC_ANSWER_MIN)
}

/// Largest answer to a sync request that is read: two full blocks, which earlier programs send.
fn response_bytes_max(block_bytes_max: usize) -> usize {
    block_bytes_max.saturating_mul(2).saturating_add(ENVELOPE_BYTES)
}

/// So many bytes of blocks are in one answer to a sync request; the first block is in any case.
pub(crate) const ANSWERED_BYTES_MAX: usize = 1024 * 1024;

/// How messages spread. A node sends what it publishes itself to everybody who listens.
fn gossip() -> PubSubProtocol {
    let (scores, explicit_peers, flood_publish) = (false, false, true);
    PubSubProtocol::GossipSub(GossipSubConfig::new(
        MESH_SIZE,
        MESH_MAX,
        MESH_MIN,
        MESH_OUTBOUND_MIN,
        scores,
        explicit_peers,
        flood_publish,
    ))
}

/// The engine's timeouts.
pub(crate) fn timeouts(timeouts: &Timeouts) -> HeightTimeouts {
    let Timeouts { propose, prevote, precommit, step } = *timeouts;
    HeightTimeouts::new(LinearTimeouts {
        propose,
        propose_delta: step,
        prevote,
        prevote_delta: step,
        precommit,
        precommit_delta: step,
        rebroadcast: propose.saturating_add(prevote).saturating_add(precommit),
        ..LinearTimeouts::default()
    })
}

/// The nodes that the configuration names.
pub(crate) fn named(network: &Network) -> Result<Vec<Multiaddr>, StartError> {
    let Network::Peers { peers, .. } = network else { return Ok(Vec::new()) };
    peers.iter().map(|peer| multiaddr(peer)).collect()
}

/// Warns of an address that names no key in a network of named peers: the engine cannot tell whoever has
/// that address from a stranger before they have said who they are.
pub(crate) fn warn_of_unpinned(address: &Multiaddr) {
    if !address.to_string().contains("/p2p/") {
        tracing::warn!(
            %address,
            "this consensus peer is named without /p2p/ID: until it has an ID, strangers can send this node \
             consensus messages; add the ID, or keep the port behind a firewall"
        );
    }
}

/// Checks that an address of [`Network::Peers`] can be read.
///
/// # Errors
/// [`StartError::Multiaddr`].
pub fn check_address(text: &str) -> Result<(), StartError> {
    multiaddr(text).map(drop)
}

/// Reads a multiaddress.
pub(crate) fn multiaddr(text: &str) -> Result<Multiaddr, StartError> {
    text.parse().map_err(|_unreadable| StartError::Multiaddr { text: text.to_owned() })
}

/// Where a node that listens at this multiaddress is reached on its own machine; none if that is no address
/// and port.
pub(crate) fn socket_address(listen: &str) -> Option<SocketAddr> {
    let mut parts = listen.split('/').skip(1);
    let (_, address, transport, port) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let address: IpAddr = address.parse().ok()?;
    let port = port.parse().ok().filter(|port| transport == "tcp" && *port != 0)?;
    Some(match address {
        any if !any.is_unspecified() => SocketAddr::new(any, port),
        IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
        IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port),
    })
}

/// Protocol names that hold the chain and its genesis: nodes of another chain are turned away at
/// once.
fn protocol_names(domain: &Domain) -> ProtocolNames {
    let Domain { chain_id, genesis_hash, .. } = domain;
    // The hash has a fixed length, so no two pairs give the same bytes.
    let digest = Hash::digest_parts(&[genesis_hash.as_bytes(), chain_id.as_bytes()]).to_string();
    let chain = digest.get(..16).unwrap_or_default();
    let name = |protocol: &str| format!("/ombra/{chain}/{protocol}");
    ProtocolNames {
        consensus: name(CONSENSUS),
        discovery_kad: name("kad/1"),
        discovery_regres: name("discovery/1"),
        sync: name("sync/1"),
        validator_proof: name("validator-proof/1"),
    }
}

/// A number of bytes in the engine's own type for sizes, which it does not re-export.
fn size<Size: FromStr<Err: Debug>>(bytes: usize) -> Size {
    format!("{bytes}B").parse().expect("a plain number of bytes is a size")
}

#[cfg(test)]
mod tests;
