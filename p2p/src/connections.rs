//! The swarm and who is connected: whom to stay connected to, whom to dial, whom to keep out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use libp2p::core::ConnectedPoint;
use libp2p::swarm::{ConnectionId, DialError, ListenError, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Swarm, identify, ping};
use parking_lot::Mutex;

use crate::address_book::Book;
use crate::bans::Bans;
use crate::behaviour::{Behaviour, BehaviourEvent, SCORE_MIN};
use crate::command::Whom;
use crate::dial::{Targets, peer_of};
use crate::group::ip_of;
use crate::handle::View;
use crate::peers::{Connected, Peers};
use crate::places::{self, Asker};
use crate::reachability::{Reach, are_private};
use crate::{Counters, Limits, NetworkFault, Peer, PeerKey};

/// The swarm and everything that is known about peers.
pub(crate) struct Connections {
    swarm: Swarm<Behaviour>,
    version: String,
    /// Places for peers that come by themselves and that nobody named.
    inbound_max: usize,
    peers: Peers,
    targets: Targets,
    book: Book,
    bans: Bans,
    view: Arc<Mutex<View>>,
    counters: Counters,
}

impl Connections {
    /// Nobody is connected yet. `version` is that of this network.
    pub(crate) fn new(
        swarm: Swarm<Behaviour>,
        version: String,
        limits: &Limits,
        (view, counters): (Arc<Mutex<View>>, Counters),
    ) -> Self {
        let own = *swarm.local_peer_id();
        Self {
            swarm,
            version,
            inbound_max: usize::try_from(limits.inbound_max).unwrap_or(usize::MAX),
            peers: Peers::default(),
            targets: Targets::new(own),
            book: Book::new(own),
            bans: Bans::new(limits.ban()),
            view,
            counters,
        }
    }

    /// What happens next on the network.
    pub(crate) fn next_event(&mut self) -> impl Future<Output = SwarmEvent<BehaviourEvent>> {
        self.swarm.select_next_some()
    }

    /// What runs over the connections.
    pub(crate) fn behaviour(&mut self) -> &mut Behaviour {
        self.swarm.behaviour_mut()
    }

    /// The connected peers.
    pub(crate) const fn peers(&self) -> &Peers {
        &self.peers
    }

    /// A connected peer.
    pub(crate) fn peer_mut(&mut self, peer: &PeerId) -> Option<&mut Connected> {
        self.peers.get_mut(peer)
    }

    /// One peer of this network after the other.
    pub(crate) fn next_known(&mut self) -> Option<PeerId> {
        self.peers.next_known()
    }

    /// Whether an operator named a peer.
    pub(crate) fn names(&self, peer: &PeerId) -> bool {
        self.targets.names(peer)
    }

    /// A peer, for the places of its questions.
    pub(crate) fn asker(&self, peer: PeerId) -> Asker {
        let group = places::sharing(self.peers.address(&peer));
        Asker { peer, group, is_named: self.names(&peer) }
    }

    /// An event that is of connections.
    pub(crate) fn on_event(
        &mut self,
        event: SwarmEvent<BehaviourEvent>,
    ) -> Result<(), NetworkFault> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the library may get further events")]
        match event {
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                self.on_opened(peer_id, connection_id, &endpoint);
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, .. } => {
                self.on_closed(peer_id, connection_id);
            }
            SwarmEvent::IncomingConnectionError { send_back_addr, error, .. } => {
                self.on_refused(&send_back_addr, &error);
            }
            SwarmEvent::OutgoingConnectionError { connection_id, peer_id, error, .. } => {
                self.on_dial_failed(connection_id, peer_id, &error);
            }
            SwarmEvent::NewListenAddr { address, .. } => {
                self.view.lock().listen_addresses.push(address.to_string());
            }
            SwarmEvent::ExpiredListenAddr { address, .. } => {
                let gone = address.to_string();
                self.view.lock().listen_addresses.retain(|address| *address != gone);
            }
            SwarmEvent::ListenerClosed { reason: Err(error), .. } => {
                return Err(NetworkFault::Listener { reason: error.to_string() });
            }
            SwarmEvent::ListenerError { error, .. } => {
                tracing::warn!(%error, "a connection was not taken");
            }
            _ => {}
        }
        Ok(())
    }

    fn on_opened(&mut self, peer: PeerId, connection: ConnectionId, endpoint: &ConnectedPoint) {
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

    fn on_closed(&mut self, peer: PeerId, connection: ConnectionId) {
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
    fn on_refused(&self, from: &Multiaddr, error: &ListenError) {
        if let ListenError::Denied { cause } = error {
            self.counters.refused.inc();
            tracing::debug!(%from, "a connection is refused: {cause}");
        } else if let ListenError::LocalPeerId { .. } = error {
            self.counters.own.inc();
        } else {
            tracing::debug!(%from, %error, "a connection was not completed");
        }
    }

    fn on_dial_failed(
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
            tracing::warn!(%address, "this address leads to this node itself; skipping it");
            self.targets.give_up(connection);
            return;
        }
        if let Some(address) = self.targets.failed(connection, now) {
            tracing::debug!(%address, %error, "a node to stay connected to does not answer");
        }
    }

    /// Dials the nodes to stay connected to that are due.
    pub(crate) fn dial_targets(&mut self, now: Instant) {
        let listeners: Vec<Multiaddr> = self.swarm.listeners().cloned().collect();
        for address in self.targets.leave_out(|address| listeners.contains(address)) {
            self.counters.own.inc();
            tracing::warn!(%address, "this address is this node's own; skipping it");
        }
        let peers = &self.peers;
        for options in self.targets.due(now, |peer| peers.has(peer)) {
            let (connection, peer) = (options.connection_id(), options.get_peer_id());
            if let Err(error) = self.swarm.dial(options) {
                self.on_dial_failed(connection, peer, &error);
            }
        }
    }

    /// Dials some of the nodes of which others have told.
    pub(crate) fn dial_learned(&mut self, count: usize, now: Instant) {
        let peers = &self.peers;
        for options in self.book.due(count, now, |peer| peers.has(peer)) {
            if let Err(error) = self.swarm.dial(options) {
                tracing::debug!(%error, "a learned address is not dialled");
            }
        }
    }

    /// Records of others for a peer that asks for some.
    pub(crate) fn records_for(&self, asker: &PeerId, now: Instant) -> Vec<Vec<u8>> {
        self.book.tell(asker, now)
    }

    /// Takes in records of which a peer tells; answers whether all were signed.
    pub(crate) fn learn_all(&mut self, records: Vec<&[u8]>, told_by: PeerId, now: Instant) -> bool {
        let reach = self.reach(&told_by);
        records.into_iter().all(|record| self.book.read(record, told_by, reach, now))
    }

    /// Which addresses are taken from a peer.
    fn reach(&self, peer: &PeerId) -> Reach {
        let external = || self.swarm.external_addresses();
        let lives_privately = if external().next().is_some() {
            are_private(external())
        } else {
            are_private(self.swarm.listeners())
        };
        let link = self.peers.link(peer);
        link.map_or(Reach::Public, |it| Reach::of(&it.address, it.direction, lives_privately))
    }

    /// A peer says who it is. Answers the peer if it is one of this network that was not known.
    pub(crate) fn on_identify(&mut self, event: identify::Event) -> Option<PeerId> {
        let identify::Event::Received { peer_id, info, .. } = event else { return None };
        if info.protocol_version != self.version {
            self.refuse_stranger(peer_id, &info.protocol_version);
            return None;
        }
        if let Some(record) = info.signed_peer_record {
            let (now, reach) = (Instant::now(), self.reach(&peer_id));
            // Checked by the library; a wrong one would not be here.
            let _is_signed = self.book.learn(record, peer_id, reach, now);
            let seen = self.peers.address(&peer_id).and_then(ip_of);
            self.book.met(&peer_id, seen, self.peers.is_dialled(&peer_id), now);
        }
        let peer = self.peers.get_mut(&peer_id)?;
        if std::mem::replace(&mut peer.is_known, true) {
            return None;
        }
        tracing::info!(peer = %peer_id, version = info.agent_version, "a peer of this network");
        Some(peer_id)
    }

    fn refuse_stranger(&mut self, peer: PeerId, version: &str) {
        let Some(connected) = self.peers.get_mut(&peer) else { return };
        if connected.stranger_since.is_some() {
            return;
        }
        connected.stranger_since = Some(Instant::now());
        connected.is_known = false;
        let (_, forgotten) = self.bans.offend(peer, Instant::now());
        self.let_in(forgotten);
        self.counters.strangers.inc();
        let address = self.peers.address(&peer).map(ToString::to_string).unwrap_or_default();
        let shown: String = version.chars().filter(|c| !c.is_control()).take(200).collect();
        tracing::warn!(
            %peer, address, theirs = shown, ours = self.version,
            "refusing a node of another network: chain or genesis differ"
        );
    }

    /// A round trip was measured.
    pub(crate) fn on_ping(&mut self, event: &ping::Event) {
        if let (Ok(round_trip), Some(peer)) = (&event.result, self.peers.get_mut(&event.peer)) {
            peer.latency = Some(*round_trip);
        }
    }

    /// Whether a peer may ask now.
    pub(crate) fn may_ask(&mut self, peer: &PeerId) -> bool {
        let peer = self.asking(peer);
        peer.is_some_and(|peer| peer.allowance.take(Instant::now()))
    }

    /// Whether a peer may ask about the chain now.
    pub(crate) fn may_ask_chain(&mut self, peer: &PeerId) -> bool {
        let peer = self.asking(peer);
        peer.is_some_and(|peer| peer.chain_allowance.take(Instant::now()))
    }

    /// A peer that asks, unless it is of another network. It may ask before it was identified: the
    /// protocol's name holds the chain and its genesis.
    fn asking(&mut self, peer: &PeerId) -> Option<&mut Connected> {
        self.peers.get_mut(peer).filter(|peer| peer.stranger_since.is_none())
    }

    /// Lets those in again whose bans are over, and parts with those that have had their time.
    pub(crate) fn expire(&mut self, now: Instant) {
        let over = self.bans.over(now);
        self.let_in(over);
        for peer in self.peers.strangers(now) {
            self.block(peer);
        }
        for peer in self.peers.silent(now) {
            tracing::info!(%peer, "disconnecting from a peer that does not say who it is");
            let _was_connected = self.swarm.disconnect_peer_id(peer);
        }
    }

    /// Keeps peers out whose score fell too far.
    pub(crate) fn keep_offenders_out(&mut self) {
        for (peer, score) in self.offenders() {
            self.keep_out(peer, &format!("its score is {score:.0}"));
        }
    }

    fn offenders(&self) -> Vec<(PeerId, f64)> {
        let gossip = &self.swarm.behaviour().gossip;
        let scored = self.peers.iter().filter_map(|(peer, _)| {
            let score = gossip.peer_score(peer)?;
            (score < SCORE_MIN).then_some((*peer, score))
        });
        scored.collect()
    }

    /// Cuts a peer off for a while, because it broke a rule that it could check.
    pub(crate) fn keep_out(&mut self, peer: PeerId, why: &str) {
        let (time, forgotten) = self.bans.offend(peer, Instant::now());
        self.let_in(forgotten);
        self.counters.bans.inc();
        tracing::warn!(%peer, seconds = time.as_secs(), "keeping a peer out: {why}");
        self.block(peer);
    }

    /// Cuts a banned peer off. Nobody is blocked of whom the list of bans does not know, because
    /// only the list lets peers in again.
    fn block(&mut self, peer: PeerId) {
        if !self.bans.keeps_out(&peer) {
            let _was_connected = self.swarm.disconnect_peer_id(peer);
            return;
        }
        self.book.forget(&peer);
        let _is_new = self.swarm.behaviour_mut().blocked.block_peer(peer);
    }

    /// Lets those in whose bans are over or forgotten.
    fn let_in(&mut self, peers: impl IntoIterator<Item = PeerId>) {
        for peer in peers {
            let _was_blocked = self.swarm.behaviour_mut().blocked.unblock_peer(peer);
        }
    }

    /// Keeps a peer out for so long, because an operator wants it.
    pub(crate) fn ban(&mut self, peer: PeerId, time: Duration, now: Instant) {
        let forgotten = self.bans.ban(peer, time, now);
        self.let_in(forgotten);
        tracing::info!(%peer, seconds = time.as_secs(), "an operator bans a peer");
        self.block(peer);
    }

    /// Forgives a peer.
    pub(crate) fn unban(&mut self, peer: PeerId) {
        self.bans.lift(&peer);
        self.let_in([peer]);
    }

    /// Stays connected to the nodes that the settings name.
    pub(crate) fn stay_with(&mut self, peers: Vec<Multiaddr>, now: Instant) {
        for address in peers {
            let _is_new = self.name(address, now);
        }
        self.show();
    }

    /// Stays connected to one more node.
    pub(crate) fn add(&mut self, address: Multiaddr, now: Instant) {
        if self.name(address, now) {
            self.dial_targets(now);
        }
    }

    /// Takes a node for named; answers whether it is new.
    fn name(&mut self, address: Multiaddr, now: Instant) -> bool {
        if let Some(peer) = peer_of(&address) {
            self.bypass(peer);
        }
        self.targets.add(address, now)
    }

    /// Peers that an operator named find room whatever the limits say.
    fn bypass(&mut self, peer: PeerId) {
        self.swarm.behaviour_mut().limits.bypass(peer);
    }

    /// Disconnects from a node and no longer stays connected to it.
    pub(crate) fn remove(&mut self, whom: &Whom) {
        let mut gone = self.targets.remove(|peer, address| match whom {
            Whom::Peer(meant) => peer == Some(meant),
            Whom::At(meant) => address == meant,
        });
        if let Whom::Peer(peer) = whom {
            gone.push(*peer);
        }
        for peer in gone {
            self.book.forget(&peer);
            self.swarm.behaviour_mut().limits.count_again(&peer);
            // An error says that it was not connected.
            let _was_connected = self.swarm.disconnect_peer_id(peer);
        }
    }

    /// Brings what is shown up to date.
    pub(crate) fn show(&self) {
        let gossip = &self.swarm.behaviour().gossip;
        let known = self.peers.iter().filter(|(_, it)| it.is_known);
        let peers: Vec<Peer> = known
            .filter_map(|(peer, it)| {
                let link = it.links.values().next()?;
                Some(Peer {
                    key: PeerKey(*peer),
                    peer_id: peer.to_string(),
                    address: link.address.to_string(),
                    direction: link.direction,
                    is_named: self.targets.names(peer),
                    latency: it.latency,
                    height: it.height,
                    status: it.status,
                    score: gossip.peer_score(peer).unwrap_or_default(),
                })
            })
            .collect();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.counters.peers.set(number(peers.len()));
        self.counters.banned.set(number(self.bans.count()));
        let mut view = self.view.lock();
        (view.peers, view.named) = (peers, self.targets.count());
    }
}
