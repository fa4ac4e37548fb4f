//! The settings of this network.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Whom the node exchanges transactions with. Part of the node's settings, as `p2p.gossip`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Multiaddress to listen on; port 0 picks a free one.
    pub listen: String,
    /// Multiaddresses that others are told to reach this node at; empty: those that it listens on.
    /// To be set where these cannot be reached from outside, as behind Docker's ports.
    pub external: Vec<String>,
    /// Multiaddresses of nodes to stay connected to, for ever; names are resolved at each attempt.
    /// With `/p2p/ID` a node is pinned to its key.
    pub peers: Vec<String>,
    /// Whether peers are asked for further peers, and told about them.
    pub exchange: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: "/ip4/0.0.0.0/tcp/30778".to_owned(),
            external: Vec::new(),
            peers: Vec::new(),
            exchange: true,
            limits: Limits::default(),
        }
    }
}

/// What keeps peers cheap.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections that others opened. Beyond, the least useful of them goes; those in `peers` do not
    /// count.
    pub inbound_max: u32,
    /// Connections that this node opened.
    pub outbound_max: u32,
    /// Connections that are being opened, in each direction.
    pub opening_max: u32,
    /// Of these, the ones that the addresses of one group may be opening: a /24 of IPv4, a /64 of
    /// IPv6. Private and loopback addresses do not count, nor one at which a named peer was before.
    pub opening_per_group_max: u32,
    /// Connections that one IP address may have opened; those in `peers` do not count.
    pub per_address_max: u32,
    /// Connections that the addresses of one group may have opened: a /24 of IPv4, a /64 of IPv6.
    pub per_group_max: u32,
    /// With fewer peers, the node looks for more by exchange.
    pub peers_wanted: u32,
    /// Messages from peers that wait for the own pool; what comes beyond is ignored.
    pub waiting_max: u32,
    /// Bytes of these messages.
    pub waiting_bytes_max: u32,
    /// How long a first offence keeps a peer out, in milliseconds. Each further one doubles it, up
    /// to an hour.
    pub ban_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inbound_max: 48,
            outbound_max: 16,
            opening_max: 256,
            opening_per_group_max: 4,
            per_address_max: 16,
            per_group_max: 16,
            peers_wanted: 8,
            waiting_max: 4_096,
            waiting_bytes_max: 16 * 1024 * 1024,
            ban_ms: 60_000,
        }
    }
}

impl Limits {
    pub(crate) const fn ban(&self) -> Duration {
        Duration::from_millis(self.ban_ms)
    }
}
