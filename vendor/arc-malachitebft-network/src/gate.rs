//! Who may connect at all.
//!
//! Where only persistent peers are wanted, everybody else is turned away as soon as the handshake has
//! proved who they are, before any protocol runs. Without this, a peer that never answers Identify
//! would be refused by nobody, and its messages would be taken.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt;
use std::task::{Context, Poll};

use libp2p::core::transport::PortUse;
use libp2p::core::Endpoint;
use libp2p::swarm::{
    dummy, ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};
use tracing::debug;

use crate::state::extract_peer_id_from_multiaddr;

/// Turns away peers that are not named.
pub struct Behaviour {
    /// Whether only named peers are wanted.
    is_closed: bool,
    /// The ids of the named peers; none if one of them is named by an address alone, because then it
    /// cannot be told from a stranger here.
    named: Option<HashSet<PeerId>>,
}

impl Behaviour {
    pub(crate) fn new(is_closed: bool, named: &[Multiaddr]) -> Self {
        Self {
            is_closed,
            named: ids(named),
        }
    }

    /// Other peers are named from now on.
    pub(crate) fn set_named<'a>(&mut self, named: impl IntoIterator<Item = &'a Multiaddr>) {
        self.named = ids(named);
    }

    fn check(&self, peer: PeerId) -> Result<THandler<Self>, ConnectionDenied> {
        match &self.named {
            Some(named) if self.is_closed && !named.contains(&peer) => {
                debug!(%peer, "Rejecting connection: not a persistent peer");
                Err(ConnectionDenied::new(NotNamed { peer }))
            }
            Some(_) | None => Ok(dummy::ConnectionHandler),
        }
    }
}

/// The ids in the addresses, if each has one.
fn ids<'a>(named: impl IntoIterator<Item = &'a Multiaddr>) -> Option<HashSet<PeerId>> {
    named.into_iter().map(extract_peer_id_from_multiaddr).collect()
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_established_inbound_connection(
        &mut self,
        _connection_id: ConnectionId,
        peer: PeerId,
        _local_addr: &Multiaddr,
        _remote_addr: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.check(peer)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _connection_id: ConnectionId,
        peer: PeerId,
        _addr: &Multiaddr,
        _role_override: Endpoint,
        _port_use: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.check(peer)
    }

    fn on_swarm_event(&mut self, _event: FromSwarm<'_>) {}

    fn on_connection_handler_event(
        &mut self,
        _peer_id: PeerId,
        _connection_id: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        match event {}
    }

    fn poll(
        &mut self,
        _cx: &mut Context<'_>,
    ) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[derive(Debug)]
struct NotNamed {
    peer: PeerId,
}

impl fmt::Display for NotNamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not one of the persistent peers", self.peer)
    }
}

impl std::error::Error for NotNamed {}
