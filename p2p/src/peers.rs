//! Who is connected, over what, and what is known about them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use libp2p::core::ConnectedPoint;
use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, PeerId};

use crate::Direction;
use crate::credit::Credit;
use crate::group::Group;
use crate::ports::Status;
use crate::rate::{Bucket, QUESTIONS};

/// How long a peer may take to say which network it is of.
const IDENTIFY_TIME_MAX: Duration = Duration::from_secs(15);

/// How long a node of another network stays connected, so that it gets to know the reason too.
const STRANGER_TIME: Duration = Duration::from_millis(500);

/// Who has not brought anything for so long goes first when there is no room.
const TRIAL: Duration = Duration::from_secs(600);

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) address: Multiaddr,
    pub(crate) direction: Direction,
}

/// A connected peer.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) links: BTreeMap<ConnectionId, Link>,
    pub(crate) since: Instant,
    /// Whether it said that it is of this network.
    pub(crate) is_known: bool,
    /// When it said that it is of another network.
    pub(crate) stranger_since: Option<Instant>,
    pub(crate) latency: Option<Duration>,
    pub(crate) height: Option<u64>,
    /// How far it said last that its chain goes.
    pub(crate) status: Option<Status>,
    pub(crate) allowance: Bucket,
    /// For questions about the chain.
    pub(crate) chain_allowance: Bucket,
    /// What it may still waste.
    pub(crate) credit: Credit,
    /// When it last brought a transaction that was new.
    pub(crate) useful: Option<Instant>,
}

/// How much a connection is worth to this node, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Usefulness {
    /// It has been there for a while and has brought nothing.
    Idle,
    /// It may still show what it is worth.
    Fresh,
    /// It is of this network, and may still show it.
    Known,
    /// It has brought transactions that were new.
    Useful,
}

impl Connected {
    /// Whether the peer opened all its connections itself.
    fn is_inbound(&self) -> bool {
        self.links.values().all(|link| link.direction == Direction::Inbound)
    }

    fn worth(&self, now: Instant) -> Usefulness {
        let within = |since: Instant| now.saturating_duration_since(since) < TRIAL;
        if self.useful.is_some_and(within) {
            Usefulness::Useful
        } else if !within(self.since) {
            Usefulness::Idle
        } else if self.is_known {
            Usefulness::Known
        } else {
            Usefulness::Fresh
        }
    }

    /// The group of its address.
    pub(crate) fn group(&self) -> Group {
        let link = self.links.values().next();
        link.map_or(Group::NONE, |link| Group::of(&link.address))
    }
}

/// The connected peers.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    list: BTreeMap<PeerId, Connected>,
    /// The peer that was picked last.
    picked: Option<PeerId>,
}

impl Peers {
    pub(crate) fn opened(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        endpoint: &ConnectedPoint,
        now: Instant,
    ) {
        let direction = if endpoint.is_dialer() { Direction::Outbound } else { Direction::Inbound };
        let link = Link { address: endpoint.get_remote_address().clone(), direction };
        let connected = self.list.entry(peer).or_insert_with(|| Connected {
            links: BTreeMap::new(),
            since: now,
            is_known: false,
            stranger_since: None,
            latency: None,
            height: None,
            status: None,
            allowance: Bucket::full(QUESTIONS, now),
            chain_allowance: Bucket::full(QUESTIONS, now),
            credit: Credit::of_peer(now),
            useful: None,
        });
        connected.links.insert(connection, link);
    }

    /// A connection is gone; answers whether the peer is.
    pub(crate) fn closed(&mut self, peer: &PeerId, connection: ConnectionId) -> bool {
        let Some(connected) = self.list.get_mut(peer) else { return false };
        connected.links.remove(&connection);
        let is_gone = connected.links.is_empty();
        if is_gone {
            self.list.remove(peer);
        }
        is_gone
    }

    pub(crate) fn get_mut(&mut self, peer: &PeerId) -> Option<&mut Connected> {
        self.list.get_mut(peer)
    }

    /// Any connection of the peer.
    pub(crate) fn link(&self, peer: &PeerId) -> Option<&Link> {
        self.list.get(peer)?.links.values().next()
    }

    /// Any address of the peer.
    pub(crate) fn address(&self, peer: &PeerId) -> Option<&Multiaddr> {
        self.link(peer).map(|link| &link.address)
    }

    /// Whether this node has opened a connection to the peer.
    pub(crate) fn is_dialled(&self, peer: &PeerId) -> bool {
        self.list.get(peer).is_some_and(|it| !it.is_inbound())
    }

    /// Connections that others opened, but for those of named peers.
    pub(crate) fn inbound(&self, is_named: impl Fn(&PeerId) -> bool) -> usize {
        let others = self.list.iter().filter(|(peer, _)| !is_named(peer));
        let inbound = |link: &&Link| link.direction == Direction::Inbound;
        others.map(|(_, it)| it.links.values().filter(inbound).count()).sum()
    }

    /// Whom to part with when there are too many that came by themselves: the least useful of the
    /// address group that has most. Named peers, and those that this node has dialled, stay.
    pub(crate) fn least_useful(
        &self,
        is_named: impl Fn(&PeerId) -> bool,
        now: Instant,
    ) -> Option<PeerId> {
        let came = self.list.iter().filter(|(peer, it)| it.is_inbound() && !is_named(peer));
        let came: Vec<_> = came.collect();
        let mut groups: BTreeMap<Group, usize> = BTreeMap::new();
        for (_, it) in &came {
            let count = groups.entry(it.group()).or_default();
            *count = count.saturating_add(1);
        }
        let key = |it: &Connected| {
            let crowd = groups.get(&it.group()).copied().unwrap_or_default();
            (std::cmp::Reverse(crowd), it.worth(now), std::cmp::Reverse(it.since))
        };
        came.into_iter().min_by_key(|(_, it)| key(it)).map(|(peer, _)| *peer)
    }

    pub(crate) fn has(&self, peer: &PeerId) -> bool {
        self.list.contains_key(peer)
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PeerId, &Connected)> {
        self.list.iter()
    }

    /// Those that said that they are of this network.
    pub(crate) fn known(&self) -> Vec<PeerId> {
        self.list.iter().filter(|(_, it)| it.is_known).map(|(peer, _)| *peer).collect()
    }

    /// Those that have been without credit as of late.
    pub(crate) fn overdrawn(&self) -> Vec<PeerId> {
        let overdrawn = self.list.iter().filter(|(_, it)| it.credit.is_overdrawn());
        overdrawn.map(|(peer, _)| *peer).collect()
    }

    /// Those that have not said in time which network they are of.
    pub(crate) fn silent(&self, now: Instant) -> Vec<PeerId> {
        let silent = self.list.iter().filter(|(_, it)| {
            !it.is_known && now.saturating_duration_since(it.since) > IDENTIFY_TIME_MAX
        });
        silent.map(|(peer, _)| *peer).collect()
    }

    /// Nodes of another network that have had the time to see that this one is not theirs.
    pub(crate) fn strangers(&self, now: Instant) -> Vec<PeerId> {
        let strangers = self.list.iter().filter(|(_, it)| {
            let since = it.stranger_since;
            since.is_some_and(|since| now.saturating_duration_since(since) > STRANGER_TIME)
        });
        strangers.map(|(peer, _)| *peer).collect()
    }

    /// One peer of this network after the other.
    pub(crate) fn next_known(&mut self) -> Option<PeerId> {
        let known = || self.list.iter().filter(|(_, it)| it.is_known).map(|(peer, _)| *peer);
        let next = known().find(|peer| self.picked.is_none_or(|last| *peer > last));
        self.picked = next.or_else(|| known().next());
        self.picked
    }
}

#[cfg(test)]
mod tests {
    use libp2p::core::Endpoint;
    use libp2p::core::transport::PortUse;

    use super::*;

    fn open(peers: &mut Peers, peer: PeerId, connection: usize, now: Instant) {
        let address = "/ip4/192.0.2.1/tcp/1".parse().unwrap();
        let endpoint = ConnectedPoint::Dialer {
            address,
            role_override: Endpoint::Dialer,
            port_use: PortUse::New,
        };
        peers.opened(peer, ConnectionId::new_unchecked(connection), &endpoint, now);
    }

    #[test]
    fn a_peer_is_gone_with_its_last_connection() {
        let (mut peers, peer, now) = (Peers::default(), PeerId::random(), Instant::now());
        open(&mut peers, peer, 1, now);
        open(&mut peers, peer, 2, now);
        assert!(!peers.closed(&peer, ConnectionId::new_unchecked(1)));
        assert!(peers.closed(&peer, ConnectionId::new_unchecked(2)));
        assert!(!peers.has(&peer));
    }

    #[test]
    fn peers_of_this_network_take_turns() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        let all: Vec<PeerId> = (0..3).map(|_| PeerId::random()).collect();
        for (at, peer) in all.iter().enumerate() {
            open(&mut peers, *peer, at, now);
        }
        assert_eq!(None, peers.next_known());
        for peer in &all {
            peers.get_mut(peer).expect("it is connected").is_known = true;
        }
        let mut picked: Vec<PeerId> = (0..3).filter_map(|_| peers.next_known()).collect();
        assert_eq!(picked.first().copied(), peers.next_known());
        let mut expected = all;
        expected.sort_unstable();
        picked.sort_unstable();
        assert_eq!(expected, picked);
    }

    #[test]
    fn who_does_not_say_its_network_is_named_after_a_while() {
        let (mut peers, peer, now) = (Peers::default(), PeerId::random(), Instant::now());
        open(&mut peers, peer, 1, now);
        let later = now + IDENTIFY_TIME_MAX + Duration::from_secs(1);
        assert_eq!(Vec::<PeerId>::new(), peers.silent(now));
        assert_eq!(vec![peer], peers.silent(later));
    }
}
