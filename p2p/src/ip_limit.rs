//! How many connections one IP address, and one group of them, may have opened, the ones being opened included. Refuses
//! before the handshake, which is where a connection begins to cost something.

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

/// The address, or its group, has as many connections as it may have.
#[derive(Debug, thiserror::Error)]
#[error("{ip} or its group has {max} connections, which is all that it may open")]
pub(crate) struct TooMany {
    ip: IpAddr,
    max: u32,
}

/// Counts connections that others opened, by IP address and by its group. Peers that an operator
/// named count only until the handshake has shown who they are.
#[derive(Debug)]
pub(crate) struct Behaviour {
    max: u32,
    group_max: u32,
    open: BTreeMap<ConnectionId, IpAddr>,
    named: BTreeSet<PeerId>,
}

impl Behaviour {
    pub(crate) const fn new(max: u32, group_max: u32) -> Self {
        Self { max, group_max, open: BTreeMap::new(), named: BTreeSet::new() }
    }

    /// Connections of this peer do not count.
    pub(crate) fn bypass(&mut self, peer: PeerId) {
        self.named.insert(peer);
    }

    /// The peer's next connections count again.
    pub(crate) fn count_again(&mut self, peer: &PeerId) {
        self.named.remove(peer);
    }

    fn enter(&mut self, connection: ConnectionId, ip: IpAddr) -> Result<(), TooMany> {
        let group = Group::of_ip(ip);
        let count = |is_counted: &dyn Fn(IpAddr) -> bool| {
            let counted = self.open.values().filter(|other| is_counted(**other)).count();
            u32::try_from(counted).unwrap_or(u32::MAX)
        };
        if count(&|other| other == ip) >= self.max {
            return Err(TooMany { ip, max: self.max });
        }
        if count(&|other| Group::of_ip(other) == group) >= self.group_max {
            return Err(TooMany { ip, max: self.group_max });
        }
        self.open.insert(connection, ip);
        Ok(())
    }

    fn leave(&mut self, connection: ConnectionId) {
        self.open.remove(&connection);
    }
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
        match ip_of(remote) {
            Some(ip) => self.enter(connection, ip).map_err(ConnectionDenied::new),
            None => Ok(()),
        }
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        if self.named.contains(&peer) {
            self.leave(connection);
        }
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ConnectionClosed(closed) = event {
            self.leave(closed.connection_id);
        } else if let FromSwarm::ListenFailure(failed) = event {
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
mod tests {
    use super::*;

    fn enter(limit: &mut Behaviour, connection: usize, ip: &str) -> bool {
        limit.enter(ConnectionId::new_unchecked(connection), ip.parse().unwrap()).is_ok()
    }

    #[test]
    fn an_address_gets_its_share_and_room_again_when_one_closes() {
        let mut limit = Behaviour::new(2, 3);
        let id = ConnectionId::new_unchecked;
        assert!(enter(&mut limit, 1, "192.0.2.1"));
        assert!(enter(&mut limit, 2, "192.0.2.1"));
        assert!(!enter(&mut limit, 3, "192.0.2.1"), "a third connection of one address");
        assert!(enter(&mut limit, 4, "192.0.2.2"));
        assert!(!enter(&mut limit, 5, "192.0.2.3"), "a fourth connection of one group");
        assert!(enter(&mut limit, 6, "192.0.3.1"));
        limit.leave(id(3));
        assert!(!enter(&mut limit, 7, "192.0.2.1"), "a refused connection gives no room back");
        limit.leave(id(1));
        assert!(enter(&mut limit, 8, "192.0.2.1"));
    }

    #[test]
    fn a_named_peer_counts_only_until_it_has_shown_who_it_is() {
        let (mut limit, peer) = (Behaviour::new(1, 1), PeerId::random());
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        limit.bypass(peer);
        for connection in 0..20 {
            let id = ConnectionId::new_unchecked(connection);
            assert!(limit.handle_pending_inbound_connection(id, &address, &address).is_ok());
            let established =
                limit.handle_established_inbound_connection(id, peer, &address, &address);
            assert!(established.is_ok(), "{connection}");
        }
        limit.count_again(&peer);
        assert!(enter(&mut limit, 20, "127.0.0.1"));
        assert!(!enter(&mut limit, 21, "127.0.0.1"));
    }
}
