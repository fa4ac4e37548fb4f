//! What peers bring, counted against their credit and that of their address groups.

use std::time::Instant;

use libp2p::PeerId;

use crate::connections::Connections;
use crate::credit::{Groups, Worth};

/// The accounts that outlast a connection; those of connected peers are with the peers.
#[derive(Debug, Default)]
pub(crate) struct Accounting {
    /// What the peers of an address group may still waste together.
    groups: Groups,
}

impl Accounting {
    /// Whether what this peer brings is looked at. Who shares its addresses with somebody that
    /// wasted much has none either, but peers that an operator named do not suffer for that.
    pub(crate) fn has_credit(&mut self, peer: &PeerId, connections: &mut Connections) -> bool {
        let now = Instant::now();
        let is_named = connections.names(peer);
        let Some(connected) = connections.peer_mut(peer) else { return true };
        connected.credit.has_some(now) && (is_named || self.groups.has_some(connected.group(), now))
    }

    /// Counts what a peer brought against its credit.
    pub(crate) fn settle(&mut self, peer: PeerId, worth: Worth, connections: &mut Connections) {
        let now = Instant::now();
        let is_named = connections.names(&peer);
        let Some(connected) = connections.peer_mut(&peer) else { return };
        connected.credit.settle(worth, now);
        if worth.new > 0 {
            connected.useful = Some(now);
        }
        if !is_named {
            self.groups.settle(connected.group(), worth, now);
        }
    }
}

/// Has the times without credit of all who had some count in their scores.
pub(crate) fn score_overdrawn(now: Instant, connections: &mut Connections) {
    for peer in connections.peers().overdrawn() {
        score_credit(peer, now, connections);
    }
}

/// Has the times without credit count in a peer's score. Whom an operator named stays: its
/// messages are left unread, and that is all.
pub(crate) fn score_credit(peer: PeerId, now: Instant, connections: &mut Connections) {
    let is_named = connections.names(&peer);
    let Some(connected) = connections.peer_mut(&peer) else { return };
    let score = if is_named { 0.0 } else { connected.credit.score(now) };
    // False if gossip knows no such peer.
    let _is_known: bool = connections.behaviour().gossip.set_application_score(&peer, score);
}
