//! Addresses of nodes that were learned from others, each signed by the node that it leads to.
//!
//! Only what a node says about itself is believed, and only IP addresses are dialled: a name would
//! have this node ask a resolver for whatever a stranger wrote. Loopback addresses mean something
//! only to a node that met the teller over loopback.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use libp2p::core::{PeerRecord, SignedEnvelope};
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, PeerId};

use crate::ip_limit::ip_of;
use crate::wire::{RECORD_BYTES_MAX, RECORDS_MAX};

/// Nodes that are remembered.
const KNOWN_MAX: usize = 256;
/// Addresses of one node that are dialled.
const ADDRESSES_MAX: usize = 8;
/// How long a node that did not answer is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// How far the addresses of a record can be meant to reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// It came over loopback, so loopback addresses are the same machine's.
    SameMachine,
    /// It came from elsewhere.
    Elsewhere,
}

impl Reach {
    /// By the address of the connection that a record came over.
    pub(crate) fn of(address: &Multiaddr) -> Self {
        let is_loopback = ip_of(address).is_some_and(|ip| ip.is_loopback());
        if is_loopback { Self::SameMachine } else { Self::Elsewhere }
    }
}

#[derive(Debug)]
struct Known {
    record: Vec<u8>,
    sequence: u64,
    addresses: Vec<Multiaddr>,
    next: Instant,
}

/// The learned addresses.
#[derive(Debug)]
pub(crate) struct Book {
    own: PeerId,
    known: BTreeMap<PeerId, Known>,
}

impl Book {
    pub(crate) const fn new(own: PeerId) -> Self {
        Self { own, known: BTreeMap::new() }
    }

    /// Takes in a record in its written form; answers false if it is not a signed record.
    pub(crate) fn read(&mut self, bytes: &[u8], reach: Reach, now: Instant) -> bool {
        if bytes.len() > RECORD_BYTES_MAX {
            return false;
        }
        match SignedEnvelope::from_protobuf_encoding(bytes) {
            Ok(envelope) => self.learn(envelope, reach, now),
            Err(_) => false,
        }
    }

    /// Takes in a record; answers false if its signature is wrong.
    pub(crate) fn learn(&mut self, envelope: SignedEnvelope, reach: Reach, now: Instant) -> bool {
        let Ok(record) = PeerRecord::from_signed_envelope(envelope) else { return false };
        let (peer, sequence) = (record.peer_id(), record.seq());
        let is_newer = self.known.get(&peer).is_none_or(|known| known.sequence < sequence);
        let has_room = self.known.len() < KNOWN_MAX || self.known.contains_key(&peer);
        if peer == self.own || !is_newer || !has_room {
            return true;
        }
        let addresses: Vec<Multiaddr> = record
            .addresses()
            .iter()
            .filter(|address| is_reachable(address, reach))
            .take(ADDRESSES_MAX)
            .cloned()
            .collect();
        let record = record.into_signed_envelope().into_protobuf_encoding();
        if !addresses.is_empty() && record.len() <= RECORD_BYTES_MAX {
            self.known.insert(peer, Known { record, sequence, addresses, next: now });
        }
        true
    }

    /// Records of others for `asker`, in their written form.
    pub(crate) fn tell(&self, asker: &PeerId) -> Vec<Vec<u8>> {
        let others = self.known.iter().filter(|(peer, _)| *peer != asker);
        others.map(|(_, known)| known.record.clone()).take(RECORDS_MAX).collect()
    }

    /// At most `count` nodes to dial now.
    pub(crate) fn due(
        &mut self,
        count: usize,
        now: Instant,
        is_connected: impl Fn(&PeerId) -> bool,
    ) -> Vec<DialOpts> {
        let open = self.known.iter_mut();
        open.filter(|(peer, known)| known.next <= now && !is_connected(peer))
            .take(count)
            .map(|(peer, known)| {
                known.next = now + RETRY_AFTER;
                DialOpts::peer_id(*peer)
                    .condition(PeerCondition::DisconnectedAndNotDialing)
                    .addresses(known.addresses.clone())
                    .allocate_new_port()
                    .build()
            })
            .collect()
    }

    /// A node is of another network, or was kept out.
    pub(crate) fn forget(&mut self, peer: &PeerId) {
        self.known.remove(peer);
    }
}

/// An IP address that could lead somewhere from here.
fn is_reachable(address: &Multiaddr, reach: Reach) -> bool {
    let Some(ip) = ip_of(address) else { return false };
    let is_everybody = ip.is_unspecified() || ip.is_multicast();
    let is_link = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !is_everybody && !is_link && (reach == Reach::SameMachine || !ip.is_loopback())
}

#[cfg(test)]
mod tests;
