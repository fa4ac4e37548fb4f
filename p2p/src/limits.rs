//! How many connections there may be: in all, of one peer, and of those that others opened, from one
//! IP address and one group of them. Refuses what it can before the handshake, which is where a
//! connection begins to cost something.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::IpAddr;
use std::task::{Context, Poll};

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{Multiaddr, PeerId};

use crate::group::{Group, ip_of};
use crate::reachability::is_local;
use crate::{Direction, Limits};

/// Connections of one peer: two nodes that dial each other at the same moment have two.
const OF_PEER_MAX: u32 = 2;
/// Connections that are let in beyond the places, until it is decided who goes.
const COMING_MAX: u32 = 8;

/// There are as many connections as there may be.
#[derive(Debug, thiserror::Error)]
#[error("there are {max} connections {of}, which is all that there may be")]
pub(crate) struct TooMany {
    max: u32,
    of: &'static str,
}

/// A connection, also one that is being opened.
#[derive(Debug)]
struct Link {
    direction: Direction,
    /// Where it came from, if others opened it.
    ip: Option<IpAddr>,
    /// Whose it is; none before the handshake.
    peer: Option<PeerId>,
}

impl Link {
    fn is_opening(&self, direction: Direction) -> bool {
        self.peer.is_none() && self.direction == direction
    }

    fn is_open(&self, direction: Direction) -> bool {
        self.peer.is_some() && self.direction == direction
    }
}

/// Counts connections. Those of peers that an operator named count only until the handshake has
/// shown who they are.
///
/// libp2p has such a behaviour too; it keeps an entry for each peer that ever was connected.
#[derive(Debug)]
pub(crate) struct Behaviour {
    limits: Limits,
    links: BTreeMap<ConnectionId, Link>,
    named: BTreeSet<PeerId>,
    /// Where a named peer came from or was reached last.
    named_at: BTreeMap<PeerId, IpAddr>,
}

impl Behaviour {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self { limits, links: BTreeMap::new(), named: BTreeSet::new(), named_at: BTreeMap::new() }
    }

    /// Connections of this peer do not count.
    pub(crate) fn bypass(&mut self, peer: PeerId) {
        self.named.insert(peer);
    }

    /// The peer's connections count again.
    pub(crate) fn count_again(&mut self, peer: &PeerId) {
        self.named.remove(peer);
        self.named_at.remove(peer);
    }

    fn names(&self, link: &Link) -> bool {
        link.peer.is_some_and(|peer| self.named.contains(&peer))
    }

    fn count(&self, is_counted: impl Fn(&Link) -> bool) -> u32 {
        let counted = self.links.values().filter(|link| is_counted(link)).count();
        u32::try_from(counted).unwrap_or(u32::MAX)
    }

    fn enter(&mut self, connection: ConnectionId, ip: Option<IpAddr>) -> Result<(), TooMany> {
        // Whoever opens connections and never says who it is keeps no named peer out.
        if !ip.is_some_and(|ip| self.named_at.values().any(|at| *at == ip)) {
            self.check_opening(ip)?;
        }
        if let Some(ip) = ip {
            let group = Group::of_ip(ip);
            let count = |is_counted: &dyn Fn(IpAddr) -> bool| {
                self.count(|link| link.ip.is_some_and(is_counted) && !self.names(link))
            };
            below(count(&|other| other == ip), self.limits.per_address_max, "of this address")?;
            let of_group = count(&|other| Group::of_ip(other) == group);
            below(of_group, self.limits.per_group_max, "of this address group")?;
        }
        let link = Link { direction: Direction::Inbound, ip, peer: None };
        self.links.insert(connection, link);
        Ok(())
    }

    fn check_opening(&self, ip: Option<IpAddr>) -> Result<(), TooMany> {
        let opening = |link: &Link| link.is_opening(Direction::Inbound);
        below(self.count(opening), self.limits.opening_max, "that others are opening")?;
        let Some(ip) = ip.filter(|ip| !is_local(*ip)) else { return Ok(()) };
        let group = Some(Group::of_ip(ip));
        let of_group = self.count(|link| opening(link) && link.ip.map(Group::of_ip) == group);
        let max = self.limits.opening_per_group_max;
        below(of_group, max, "that this address group is opening")
    }

    /// A handshake has shown who a peer is.
    fn establish(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        remote: &Multiaddr,
    ) -> Result<(), TooMany> {
        if !self.named.contains(&peer) {
            self.check(connection, peer)?;
        } else if let Some(ip) = ip_of(remote) {
            self.named_at.insert(peer, ip);
        }
        let dialled = || Link { direction: Direction::Outbound, ip: None, peer: None };
        self.links.entry(connection).or_insert_with(dialled).peer = Some(peer);
        Ok(())
    }

    fn check(&self, connection: ConnectionId, peer: PeerId) -> Result<(), TooMany> {
        let direction = self.links.get(&connection).map(|link| link.direction);
        if direction == Some(Direction::Inbound) {
            // A few more than there are places: who comes is let in first, and then the least useful
            // goes.
            let max = self.limits.inbound_max.saturating_add(COMING_MAX);
            let open = self.count(|it| it.is_open(Direction::Inbound) && !self.names(it));
            below(open, max, "that others opened")?;
        } else {
            let open = self.count(|it| it.is_open(Direction::Outbound));
            below(open, self.limits.outbound_max, "that this node opened")?;
        }
        below(self.count(|it| it.peer == Some(peer)), OF_PEER_MAX, "of this peer")
    }

    fn leave(&mut self, connection: ConnectionId) {
        self.links.remove(&connection);
    }
}

const fn below(count: u32, max: u32, of: &'static str) -> Result<(), TooMany> {
    if count < max { Ok(()) } else { Err(TooMany { max, of }) }
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.enter(connection, ip_of(remote)).map_err(ConnectionDenied::new)
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.establish(connection, peer, remote).map_err(ConnectionDenied::new)?;
        Ok(dummy::ConnectionHandler)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        _: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        if peer.is_some_and(|peer| self.named.contains(&peer)) {
            return Ok(Vec::new());
        }
        let opening = self.count(|link| link.is_opening(Direction::Outbound));
        below(opening, self.limits.opening_max, "that this node is opening")
            .map_err(ConnectionDenied::new)?;
        let link = Link { direction: Direction::Outbound, ip: None, peer: None };
        self.links.insert(connection, link);
        Ok(Vec::new())
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        remote: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.establish(connection, peer, remote).map_err(ConnectionDenied::new)?;
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ConnectionClosed(closed) = event {
            self.leave(closed.connection_id);
        } else if let FromSwarm::ListenFailure(failed) = event {
            self.leave(failed.connection_id);
        } else if let FromSwarm::DialFailure(failed) = event {
            self.leave(failed.connection_id);
        }
    }

    fn on_connection_handler_event(
        &mut self,
        _: PeerId,
        _: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
