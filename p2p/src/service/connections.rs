//! Connections that open, close, and fail.

use std::time::Instant;

use libp2p::core::ConnectedPoint;
use libp2p::swarm::{ConnectionId, DialError, ListenError};
use libp2p::{Multiaddr, PeerId};

use super::Service;
use crate::peers::Connected;

impl Service {
    pub(super) fn on_opened(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        endpoint: &ConnectedPoint,
    ) {
        self.peers.opened(peer, connection, endpoint, Instant::now());
        if self.targets.connected(connection, peer) {
            self.bypass(peer);
        }
        tracing::debug!(%peer, address = %endpoint.get_remote_address(), "connected");
        self.make_room();
    }

    /// With more connections of others than there are places, parts with the least useful peer.
    fn make_room(&mut self) {
        let is_named = |peer: &PeerId| self.targets.names(peer);
        if self.peers.inbound(is_named) <= self.inbound_max {
            return;
        }
        let Some(peer) = self.peers.least_useful(is_named, Instant::now()) else { return };
        tracing::debug!(%peer, "no room for a peer");
        self.counters.refused.inc();
        let _was_connected = self.swarm.disconnect_peer_id(peer);
    }

    pub(super) fn on_closed(&mut self, peer: PeerId, connection: ConnectionId) {
        let is_stranger = |it: &mut Connected| it.stranger_since.is_some();
        let was_stranger = self.peers.get_mut(&peer).is_some_and(is_stranger);
        if self.peers.closed(&peer, connection) {
            if was_stranger {
                self.block(peer);
            }
            self.targets.lost(&peer, Instant::now());
            self.book.left(&peer, Instant::now());
            tracing::debug!(%peer, "disconnected");
            self.show();
        }
    }

    /// A connection that somebody wanted to open was refused or failed.
    pub(super) fn on_refused(&self, from: &Multiaddr, error: &ListenError) {
        if let ListenError::Denied { cause } = error {
            self.counters.refused.inc();
            tracing::debug!(%from, "a connection is refused: {cause}");
        } else if let ListenError::LocalPeerId { .. } = error {
            self.counters.own.inc();
        } else {
            tracing::debug!(%from, %error, "a connection was not completed");
        }
    }

    pub(super) fn on_dial_failed(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        error: &DialError,
    ) {
        let now = Instant::now();
        if let (Some(peer), DialError::Transport(_) | DialError::WrongPeerId { .. }) = (peer, error)
        {
            self.book.failed(&peer, now);
        }
        if let DialError::Denied { .. } = error {
            self.counters.refused.inc();
        }
        if let DialError::LocalPeerId { address } = error {
            self.counters.own.inc();
            tracing::warn!(%address, "this address leads to this node itself; it is left out");
            self.targets.give_up(connection);
            return;
        }
        if let Some(address) = self.targets.failed(connection, now) {
            tracing::debug!(%address, %error, "a node to stay connected to does not answer");
        }
    }

    pub(super) fn dial_targets(&mut self, now: Instant) {
        let listeners: Vec<Multiaddr> = self.swarm.listeners().cloned().collect();
        for address in self.targets.leave_out(|address| listeners.contains(address)) {
            self.counters.own.inc();
            tracing::warn!(%address, "this address is this node's own; it is left out");
        }
        let peers = &self.peers;
        for options in self.targets.due(now, |peer| peers.has(peer)) {
            let (connection, peer) = (options.connection_id(), options.get_peer_id());
            if let Err(error) = self.swarm.dial(options) {
                self.on_dial_failed(connection, peer, &error);
            }
        }
    }
}
