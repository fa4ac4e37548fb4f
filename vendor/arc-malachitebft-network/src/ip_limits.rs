//! Per-IP connection limiting and throttling behaviour.
//!
//! Limits the number of **inbound** connections from a single IP address and
//! enforces a minimum delay between reconnections from the same IP. This
//! prevents DoS attacks where an attacker either:
//! - Generates many PeerIds from the same IP to exhaust connection slots, or
//! - Cycles connections rapidly (connect N → close some or all → reconnect → repeat).
//!
//! Only inbound connections are limited. Outbound connections are not counted,
//! allowing nodes to connect to multiple peers behind the same NAT (e.g.,
//! validator clusters sharing a public IP).
//!
//! Tracks pending inbound connections immediately (before handshake completes)
//! to prevent resource exhaustion from incomplete handshakes.
//!
//! IPv4 connections are keyed on the full 32-bit address. IPv6 connections are
//! keyed on the `/64` prefix, matching the end-site allocation size that
//! Regional Internet Registries typically hand out. IPv4-mapped IPv6 addresses
//! are unmapped and keyed as IPv4.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use libp2p::core::Endpoint;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, ListenFailure, NetworkBehaviour, THandler,
    THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};
use tracing::debug;

/// Minimum interval between eviction sweeps of expired throttle entries.
/// `poll()` can be called very frequently, so we avoid scanning the full
/// `ip_state` map on every call.
const EVICTION_INTERVAL: Duration = Duration::from_secs(5);

/// Per-IP state tracking active connections and reconnect cooldown.
#[derive(Debug)]
struct IpState {
    /// Number of active inbound connections from this IP.
    connections: usize,
    /// When the most recent inbound connection from this IP closed.
    /// Set on every close while throttling is enabled; cleared when a new
    /// connection is accepted.
    last_disconnect: Option<Instant>,
}

/// Behaviour that limits connections per IP address and enforces reconnect throttling.
///
/// Tracks pending inbound connections immediately (before handshake completes)
/// to prevent attackers from exhausting resources with incomplete connections.
/// Also records when any inbound connection from an IP closes, rejecting new
/// connections from the same IP until a configurable cooldown has elapsed.
pub struct Behaviour {
    /// Map from ConnectionId to IP address for tracking.
    /// Includes both pending and established connections.
    connection_ips: HashMap<ConnectionId, IpAddr>,
    /// Per-IP connection count and reconnect cooldown state.
    ip_state: HashMap<IpAddr, IpState>,
    /// Maximum allowed connections per IP address.
    max_connections_per_ip: usize,
    /// Minimum time that must elapse after any inbound connection from an IP
    /// closes before a new inbound connection from that IP is accepted.
    ip_throttle_duration: Duration,
    /// IPs of persistent peers, exempt from the reconnect throttle.
    /// Refcounted: multiple persistent peers can share an IP (NAT, IPv6 /64),
    /// and the exemption is only dropped when every peer at that IP has been
    /// removed.
    persistent_ips: HashMap<IpAddr, usize>,
    /// When the last eviction sweep ran. Used to throttle sweeps so that
    /// `poll()` does not iterate `ip_state` on every event loop tick.
    last_eviction: Instant,
}

impl Behaviour {
    /// Create a new per-IP connection limiter with reconnect throttling.
    pub fn new(
        max_connections_per_ip: usize,
        ip_throttle_duration: Duration,
        persistent_peer_addrs: &[Multiaddr],
    ) -> Self {
        let mut persistent_ips: HashMap<IpAddr, usize> = HashMap::new();
        for ip in persistent_peer_addrs.iter().filter_map(extract_ip) {
            *persistent_ips.entry(ip).or_insert(0) += 1;
        }

        Self {
            connection_ips: HashMap::new(),
            ip_state: HashMap::new(),
            max_connections_per_ip,
            ip_throttle_duration,
            persistent_ips,
            last_eviction: Instant::now(),
        }
    }

    /// Drop throttle-only entries whose cooldown has expired.
    /// Entries with active connections are always retained.
    fn evict_expired(&mut self, now: Instant) {
        let throttle_duration = self.ip_throttle_duration;
        self.ip_state.retain(|_, state| {
            // Keep entries with active connections
            if state.connections > 0 {
                return true;
            }
            // Keep entries still within the throttle window
            state
                .last_disconnect
                .is_some_and(|t| now.duration_since(t) < throttle_duration)
        });
    }

    /// Register a persistent peer at this IP (exempts the IP from the throttle).
    /// Refcounted: each call must be paired with `remove_persistent_ip` once
    /// the peer is no longer persistent.
    pub fn add_persistent_ip(&mut self, ip: IpAddr) {
        let count = self.persistent_ips.entry(ip).or_insert(0);
        *count += 1;
        // On first reference, clear any pending throttle so the peer can
        // reconnect immediately.
        if *count == 1 {
            if let Some(state) = self.ip_state.get_mut(&ip) {
                if state.connections == 0 {
                    self.ip_state.remove(&ip);
                } else {
                    state.last_disconnect = None;
                }
            }
        }
    }

    /// Unregister a persistent peer at this IP. The exemption is only dropped
    /// once every peer at this IP has been removed.
    pub fn remove_persistent_ip(&mut self, ip: IpAddr) {
        if let Some(count) = self.persistent_ips.get_mut(&ip) {
            *count -= 1;
            if *count == 0 {
                self.persistent_ips.remove(&ip);
            }
        }
    }

    /// Increment connection count for an IP, tracking by connection ID.
    fn track_connection(&mut self, connection_id: ConnectionId, ip: IpAddr) {
        self.connection_ips.insert(connection_id, ip);
        let state = self.ip_state.entry(ip).or_insert(IpState {
            connections: 0,
            last_disconnect: None,
        });
        state.connections += 1;
        state.last_disconnect = None;
    }

    /// Decrement connection count when a connection closes or fails.
    /// Records the disconnect time on every close so a peer that keeps one
    /// connection open cannot cycle the rest without the cooldown.
    fn untrack_connection(&mut self, connection_id: ConnectionId) {
        let Some(ip) = self.connection_ips.remove(&connection_id) else {
            return;
        };
        let Some(state) = self.ip_state.get_mut(&ip) else {
            return;
        };

        state.connections = state.connections.saturating_sub(1);

        if self.ip_throttle_duration > Duration::ZERO && !self.persistent_ips.contains_key(&ip) {
            state.last_disconnect = Some(Instant::now());
        } else if state.connections == 0 {
            self.ip_state.remove(&ip);
        }
    }
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = libp2p::swarm::dummy::ConnectionHandler;
    type ToSwarm = std::convert::Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        connection_id: ConnectionId,
        _local_addr: &Multiaddr,
        remote_addr: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        if let Some(ip) = extract_ip(remote_addr) {
            let count = self.ip_state.get(&ip).map(|s| s.connections).unwrap_or(0);

            if count >= self.max_connections_per_ip {
                debug!(
                    %ip,
                    count,
                    max = self.max_connections_per_ip,
                    "Rejecting inbound connection: per-IP limit exceeded"
                );
                return Err(ConnectionDenied::new(IpLimitExceeded { ip, count }));
            }

            // Enforce reconnect throttle for non-persistent IPs
            if !self.persistent_ips.contains_key(&ip) {
                if let Some(state) = self.ip_state.get(&ip) {
                    if let Some(last) = state.last_disconnect {
                        let elapsed = last.elapsed();
                        if elapsed < self.ip_throttle_duration {
                            debug!(
                                %ip,
                                ?elapsed,
                                throttle = ?self.ip_throttle_duration,
                                "Rejecting inbound connection: reconnect too soon"
                            );
                            return Err(ConnectionDenied::new(IpThrottled {
                                ip,
                                elapsed,
                                throttle_duration: self.ip_throttle_duration,
                            }));
                        }
                    }
                }
            }

            // Track immediately to prevent race conditions with concurrent connections
            self.track_connection(connection_id, ip);
        }
        Ok(())
    }

    fn handle_established_inbound_connection(
        &mut self,
        _connection_id: ConnectionId,
        _peer: PeerId,
        _local_addr: &Multiaddr,
        _remote_addr: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        // Already tracked in handle_pending_inbound_connection
        Ok(libp2p::swarm::dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _connection_id: ConnectionId,
        _peer: PeerId,
        _addr: &Multiaddr,
        _role_override: Endpoint,
        _port_use: libp2p::core::transport::PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(libp2p::swarm::dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionClosed(info) => {
                self.untrack_connection(info.connection_id);
            }
            FromSwarm::ListenFailure(ListenFailure { connection_id, .. }) => {
                self.untrack_connection(connection_id);
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(
        &mut self,
        _peer_id: PeerId,
        _connection_id: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        // dummy::ConnectionHandler produces no events
        match event {}
    }

    fn poll(
        &mut self,
        _cx: &mut Context<'_>,
    ) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        // Sweep expired throttle-only entries periodically to bound memory
        // under sustained connection attempts from many unique IPs.
        let now = Instant::now();
        if now.duration_since(self.last_eviction) >= EVICTION_INTERVAL {
            self.evict_expired(now);
            self.last_eviction = now;
        }

        Poll::Pending
    }
}

/// Error returned when the per-IP connection limit is exceeded.
#[derive(Debug)]
struct IpLimitExceeded {
    ip: IpAddr,
    count: usize,
}

impl std::fmt::Display for IpLimitExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "per-IP connection limit exceeded for {}: {} connections",
            self.ip, self.count
        )
    }
}

impl std::error::Error for IpLimitExceeded {}

/// Error returned when a reconnection attempt is throttled.
#[derive(Debug)]
struct IpThrottled {
    ip: IpAddr,
    elapsed: Duration,
    throttle_duration: Duration,
}

impl std::fmt::Display for IpThrottled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "reconnect throttled for {}: {:.1}s elapsed, minimum {:.1}s required",
            self.ip,
            self.elapsed.as_secs_f64(),
            self.throttle_duration.as_secs_f64()
        )
    }
}

impl std::error::Error for IpThrottled {}

/// Extract the connection-limiter key from a multiaddr.
///
/// IPv4 addresses are returned in full. IPv6 addresses are masked to their
/// `/64` prefix so that all hosts within an end-site allocation share one key.
/// IPv4-mapped IPv6 addresses (`::ffff:a.b.c.d`) are unmapped and keyed as
/// IPv4, avoiding a single bucket for the entire IPv4 space.
pub(crate) fn extract_ip(addr: &Multiaddr) -> Option<IpAddr> {
    use libp2p::multiaddr::Protocol;
    for proto in addr.iter() {
        match proto {
            Protocol::Ip4(ip) => return Some(IpAddr::V4(ip)),
            Protocol::Ip6(ip) => {
                if let Some(v4) = ip.to_ipv4_mapped() {
                    return Some(IpAddr::V4(v4));
                }
                return Some(IpAddr::V6(mask_ipv6_to_64(ip)));
            }
            _ => continue,
        }
    }
    None
}

/// Zero the host portion of an IPv6 address, keeping only the `/64` prefix.
fn mask_ipv6_to_64(ip: Ipv6Addr) -> Ipv6Addr {
    let s = ip.segments();
    Ipv6Addr::new(s[0], s[1], s[2], s[3], 0, 0, 0, 0)
}
