//! How many connections one IP address may have opened, the ones being opened included. Refuses
//! before the handshake, which is where a connection begins to cost something.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::task::{Context, Poll};

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{Multiaddr, PeerId};

/// The address has as many connections as it may have.
#[derive(Debug, thiserror::Error)]
#[error("{ip} has {max} connections, which is all that one address may open")]
pub(crate) struct TooMany {
    ip: IpAddr,
    max: u32,
}

/// Counts connections that others opened, by IP address.
#[derive(Debug)]
pub(crate) struct Behaviour {
    max: u32,
    open: BTreeMap<ConnectionId, IpAddr>,
    counts: BTreeMap<IpAddr, u32>,
}

impl Behaviour {
    pub(crate) const fn new(max: u32) -> Self {
        Self { max, open: BTreeMap::new(), counts: BTreeMap::new() }
    }

    fn enter(&mut self, connection: ConnectionId, ip: IpAddr) -> Result<(), TooMany> {
        let count = self.counts.entry(ip).or_insert(0);
        if *count >= self.max {
            return Err(TooMany { ip, max: self.max });
        }
        *count = count.saturating_add(1);
        self.open.insert(connection, ip);
        Ok(())
    }

    fn leave(&mut self, connection: ConnectionId) {
        let Some(ip) = self.open.remove(&connection) else { return };
        let Some(count) = self.counts.get_mut(&ip) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.counts.remove(&ip);
        }
    }
}

/// The IP address in a multiaddress.
pub(crate) fn ip_of(address: &Multiaddr) -> Option<IpAddr> {
    address.iter().find_map(|part| {
        if let Protocol::Ip4(ip) = part {
            Some(IpAddr::V4(ip))
        } else if let Protocol::Ip6(ip) = part {
            Some(IpAddr::V6(ip).to_canonical())
        } else {
            None
        }
    })
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
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
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

    #[test]
    fn an_address_gets_its_share_and_room_again_when_one_closes() {
        let mut limit = Behaviour::new(2);
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let id = ConnectionId::new_unchecked;
        assert!(limit.enter(id(1), one).is_ok());
        assert!(limit.enter(id(2), one).is_ok());
        assert!(limit.enter(id(3), one).is_err(), "a third connection of one address");
        assert!(limit.enter(id(4), other).is_ok());
        limit.leave(id(3));
        assert!(limit.enter(id(5), one).is_err(), "a refused connection gives no room back");
        limit.leave(id(1));
        assert!(limit.enter(id(6), one).is_ok());
    }

    #[test]
    fn an_ipv4_address_written_as_ipv6_is_the_same_address() {
        let written = "/ip6/::ffff:192.0.2.1/tcp/1".parse().unwrap();
        assert_eq!(Some("192.0.2.1".parse().unwrap()), ip_of(&written));
    }
}
