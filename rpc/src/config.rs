//! Settings of the interfaces. Every duration is in milliseconds, every size in bytes.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::ports::FeedBounds;

/// Where the node listens and how much it takes from clients.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// JSON-RPC, WebSocket, `/healthz` and `/readyz`. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// Prometheus metrics at `/metrics`. Port 0 picks a free one.
    pub metrics_listen: SocketAddr,
    /// Whether the metrics listener is opened.
    pub metrics: bool,
    /// Origins of web pages that may call, as browsers write them (`https://wallet.example`); `*`
    /// for all. A request of another page is answered 403. Programs send no origin.
    pub origins: Vec<String>,
    /// Further names under which the node may be called while it listens on loopback; IP addresses
    /// and `localhost` always may. Naming one has the same hold on any other address: for a node
    /// whose port is published on loopback by somebody else, as Docker does.
    pub hosts: Vec<String>,
    /// How fast clients may ask.
    pub rate: RateLimits,
    /// How much clients may send and hold.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8777)),
            metrics_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9777)),
            metrics: true,
            origins: Vec::new(),
            hosts: Vec::new(),
            rate: RateLimits::default(),
            limits: Limits::default(),
        }
    }
}

/// How fast clients may ask.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimits {
    /// Requests of one address per second, on average; 0 is any number. Each JSON-RPC call counts,
    /// also in an array and on a WebSocket, and each message on `/api/ws`.
    pub requests_per_second: u32,
    /// How many of them may come at once; 0 is as many as in ten seconds.
    pub burst: u32,
    /// Keys of clients that count for themselves, whatever their address. Sent as `X-API-Key`.
    pub keys: Vec<String>,
    /// The same as `requests_per_second` for each key; 0 is any number.
    pub key_requests_per_second: u32,
    /// Networks of proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Addresses that are remembered, about 200 bytes each. Who comes after longer than all of them
    /// begins anew.
    pub clients_max: u32,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            requests_per_second: 0,
            burst: 0,
            keys: Vec::new(),
            key_requests_per_second: 0,
            trusted_proxies: Vec::new(),
            clients_max: 65_536,
        }
    }
}

/// Bounds on what clients may send and hold, so that no client can exhaust the node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// How much of what all clients share one of them may have, in percent, from 1 to 100: of
    /// connections, WebSockets, streams, calls that wait or read, and of the memory for requests and for
    /// answers. It may have one of each, the largest body and the largest answer in any case. A client
    /// is an IPv4 address, an IPv6 network of 64 bits, or one of `rate.keys`; behind one of
    /// `rate.trusted_proxies` it is whom the proxy asks for.
    pub client_share_percent: u32,
    /// Open connections of all kinds; a further one is answered 503 and closed.
    pub connections_max: u32,
    /// Of these, upgraded to WebSocket.
    pub websockets_max: u32,
    /// The largest body of a POST.
    pub request_bytes_max: u32,
    /// The largest message on a WebSocket; must hold one SOCIAL_BLOB_CHUNK.
    pub websocket_message_bytes_max: u32,
    /// All bodies and WebSocket messages that are being read or answered at the same time, together.
    pub request_memory_bytes_max: u32,
    /// All answers that wait to be taken, together; should be several times `response_bytes_max`.
    pub response_memory_bytes_max: u32,
    /// The largest answer; a larger one becomes error −32008 (−32011 for a batch).
    pub response_bytes_max: u32,
    /// Texts in one page of a list: a page ends early when it is full.
    pub page_bytes_max: u32,
    /// Calls in one JSON-RPC array.
    pub batch_calls_max: u32,
    /// Calls of one WebSocket connection that are executed at the same time.
    pub websocket_calls_max: u32,
    /// Answers and notifications that wait to be sent on one WebSocket connection.
    pub websocket_queue_max: u32,
    /// Subscriptions of one WebSocket connection.
    pub subscriptions_max: u32,
    /// Event streams and web sockets under `/api` that are open at the same time.
    pub streams_max: u32,
    /// `ombra_waitForTransaction` calls of all clients that wait at the same time.
    pub waiting_calls_max: u32,
    /// Pool events kept for a subscriber that reads slowly; beyond, the oldest are lost and
    /// the subscriber is told how many.
    pub pool_events_max: u32,
    /// Memory for these events, with their transactions; beyond, the oldest are lost as well.
    pub pool_events_bytes_max: u32,
    /// Blocks that a live subscriber may fall behind the tip before its subscription is closed.
    pub subscription_lag_blocks_max: u64,
    /// How long a request's head may take, and how long a connection may stay idle.
    pub head_timeout_ms: u64,
    /// How long a request's body, or a WebSocket message, may take.
    pub body_timeout_ms: u64,
    /// How long a client may refuse to take what the node sends.
    pub write_timeout_ms: u64,
    /// What a client must take per second while there is something to take; with less, it uses up
    /// `write_timeout_ms`. 0 is any.
    pub write_bytes_per_second_min: u32,
    /// How often a WebSocket is pinged, at least 1; one that does not answer within twice this is
    /// closed.
    pub ping_interval_ms: u64,
    /// How long open requests may take to end at shutdown.
    pub shutdown_timeout_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            client_share_percent: 25,
            connections_max: 512,
            websockets_max: 128,
            request_bytes_max: 16 * 1024 * 1024,
            websocket_message_bytes_max: 2 * 1024 * 1024,
            request_memory_bytes_max: 64 * 1024 * 1024,
            response_memory_bytes_max: 256 * 1024 * 1024,
            response_bytes_max: 32 * 1024 * 1024,
            page_bytes_max: 4 * 1024 * 1024,
            batch_calls_max: 1_000,
            websocket_calls_max: 64,
            websocket_queue_max: 256,
            subscriptions_max: 64,
            streams_max: 128,
            waiting_calls_max: 4_096,
            pool_events_max: 4_096,
            pool_events_bytes_max: 16 * 1024 * 1024,
            subscription_lag_blocks_max: 1_000,
            head_timeout_ms: 30_000,
            body_timeout_ms: 30_000,
            write_timeout_ms: 30_000,
            write_bytes_per_second_min: 32 * 1024,
            ping_interval_ms: 20_000,
            shutdown_timeout_ms: 3_000,
        }
    }
}

impl Limits {
    /// The settings that are not within their bounds, and what would fit.
    #[must_use]
    pub fn faults(&self) -> Vec<(&'static str, &'static str)> {
        let mut faults = Vec::new();
        if !(1..=100).contains(&self.client_share_percent) {
            faults.push(("client_share_percent", "expected 1 to 100 percent"));
        }
        if self.ping_interval_ms == 0 {
            faults.push(("ping_interval_ms", "expected 1 millisecond or more"));
        }
        faults
    }

    /// What is kept of the pool's events.
    #[must_use]
    pub fn pool_events(&self) -> FeedBounds {
        let size = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
        FeedBounds {
            events_max: size(self.pool_events_max),
            bytes_max: size(self.pool_events_bytes_max),
        }
    }

    pub(crate) const fn head_timeout(&self) -> Duration {
        Duration::from_millis(self.head_timeout_ms)
    }

    pub(crate) const fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }

    pub(crate) const fn write_timeout(&self) -> Duration {
        Duration::from_millis(self.write_timeout_ms)
    }

    pub(crate) const fn ping_interval(&self) -> Duration {
        // Nothing can be done every 0 ms.
        Duration::from_millis(if self.ping_interval_ms == 0 { 1 } else { self.ping_interval_ms })
    }

    pub(crate) const fn shutdown_timeout(&self) -> Duration {
        Duration::from_millis(self.shutdown_timeout_ms)
    }
}
