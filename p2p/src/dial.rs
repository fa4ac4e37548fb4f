//! Nodes to stay connected to: dialled again for ever, ever more seldom, never all at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, PeerId};

/// The wait after a first failure.
const WAIT_MIN: Duration = Duration::from_millis(500);
/// The longest wait. A node that comes back is met again within this time.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Settings and operators give at most so many.
const TARGETS_MAX: usize = 256;

/// The peer id at the end of a multiaddress.
pub(crate) fn peer_of(address: &Multiaddr) -> Option<PeerId> {
    address.iter().find_map(|part| if let Protocol::P2p(peer) = part { Some(peer) } else { None })
}

/// A node to stay connected to.
#[derive(Debug)]
struct Target {
    address: Multiaddr,
    /// Who answered there, or who the address says it is.
    peer: Option<PeerId>,
    failures: u32,
    next: Instant,
    dialling: Option<ConnectionId>,
}

/// The nodes to stay connected to.
#[derive(Debug)]
pub(crate) struct Targets {
    list: Vec<Target>,
    own: PeerId,
}

impl Targets {
    pub(crate) const fn new(own: PeerId) -> Self {
        Self { list: Vec::new(), own }
    }

    /// Adds a node; answers whether it was new. The own address is left out.
    pub(crate) fn add(&mut self, address: Multiaddr, now: Instant) -> bool {
        let peer = peer_of(&address);
        let is_known = self.list.iter().any(|target| target.address == address);
        if is_known || peer == Some(self.own) || self.list.len() >= TARGETS_MAX {
            return false;
        }
        self.list.push(Target { address, peer, failures: 0, next: now, dialling: None });
        true
    }

    /// Removes a node by its peer id or its address; answers the peers that were meant.
    pub(crate) fn remove(
        &mut self,
        is_meant: impl Fn(Option<&PeerId>, &Multiaddr) -> bool,
    ) -> Vec<PeerId> {
        let (gone, kept) = std::mem::take(&mut self.list)
            .into_iter()
            .partition(|target| is_meant(target.peer.as_ref(), &target.address));
        self.list = kept;
        let gone: Vec<Target> = gone;
        gone.into_iter().filter_map(|target| target.peer).collect()
    }

    /// Whether a peer is one of these nodes.
    pub(crate) fn names(&self, peer: &PeerId) -> bool {
        self.list.iter().any(|target| target.peer.as_ref() == Some(peer))
    }

    /// How many nodes there are; those of which several addresses are known count once.
    pub(crate) fn count(&self) -> usize {
        let known: BTreeSet<&PeerId> = self.list.iter().filter_map(|it| it.peer.as_ref()).collect();
        let unknown = self.list.iter().filter(|target| target.peer.is_none()).count();
        known.len().saturating_add(unknown)
    }

    /// Those to dial now.
    pub(crate) fn due(
        &mut self,
        now: Instant,
        is_connected: impl Fn(&PeerId) -> bool,
    ) -> Vec<DialOpts> {
        let mut dials = Vec::new();
        for target in &mut self.list {
            if target.peer.as_ref().is_some_and(&is_connected) {
                target.failures = 0;
                continue;
            }
            if target.dialling.is_some() || now < target.next {
                continue;
            }
            // From a new port: from the listening one, two nodes that dial each other at the same
            // moment would share one connection, on which both think that they opened it.
            let options = match peer_of(&target.address) {
                Some(peer) => DialOpts::peer_id(peer)
                    .condition(PeerCondition::DisconnectedAndNotDialing)
                    .addresses(vec![target.address.clone()])
                    .allocate_new_port()
                    .build(),
                None => DialOpts::unknown_peer_id()
                    .address(target.address.clone())
                    .allocate_new_port()
                    .build(),
            };
            target.dialling = Some(options.connection_id());
            dials.push(options);
        }
        dials
    }

    /// An attempt led to this peer; answers whether it is one of these nodes.
    pub(crate) fn connected(&mut self, connection: ConnectionId, peer: PeerId) -> bool {
        for target in self.list.iter_mut().filter(|it| it.dialling == Some(connection)) {
            target.dialling = None;
            target.peer = Some(peer);
        }
        self.names(&peer)
    }

    /// An attempt failed; answers the address, if it was one of these nodes.
    pub(crate) fn failed(&mut self, connection: ConnectionId, now: Instant) -> Option<&Multiaddr> {
        let target = self.list.iter_mut().find(|it| it.dialling == Some(connection))?;
        target.dialling = None;
        target.next = now + wait(target.failures, jitter());
        target.failures = target.failures.saturating_add(1);
        Some(&target.address)
    }

    /// Leaves out addresses of this node; answers them.
    pub(crate) fn leave_out(&mut self, is_own: impl Fn(&Multiaddr) -> bool) -> Vec<Multiaddr> {
        let own = self.list.iter().map(|target| &target.address).filter(|it| is_own(it));
        let own: Vec<Multiaddr> = own.cloned().collect();
        self.list.retain(|target| !own.contains(&target.address));
        own
    }

    /// An attempt led to this node itself.
    pub(crate) fn give_up(&mut self, connection: ConnectionId) {
        self.list.retain(|target| target.dialling != Some(connection));
    }

    /// A peer went away, or was refused: not at once again.
    pub(crate) fn lost(&mut self, peer: &PeerId, now: Instant) {
        for target in self.list.iter_mut().filter(|it| it.peer.as_ref() == Some(peer)) {
            target.next = now + wait(target.failures, jitter());
            target.failures = target.failures.saturating_add(1);
        }
    }
}

/// The wait after so many failures, a quarter longer or shorter by chance.
fn wait(failures: u32, jitter: u8) -> Duration {
    let full = WAIT_MIN.saturating_mul(1 << failures.min(10)).min(WAIT_MAX);
    full * 3 / 4 + full * u32::from(jitter) / 512
}

/// So that nodes that lost each other at the same moment do not dial at the same moment.
fn jitter() -> u8 {
    let mut byte = [128];
    // Without randomness the wait is its middle; nothing worse.
    let _filled = getrandom::fill(&mut byte);
    let [byte] = byte;
    byte
}

#[cfg(test)]
mod tests;
