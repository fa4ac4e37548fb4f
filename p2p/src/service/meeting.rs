//! Meeting peers: which network they are of, how far they are, what they ask, whom they know.

use std::time::Instant;

use libp2p::{PeerId, identify, ping, request_response};

use super::Service;
use crate::group::ip_of;
use crate::peers::Connected;
use crate::places::{Bounds, Left};
use crate::pull::Extent;
use crate::reach::{Reach, are_private};
use crate::serve::Asked;
use crate::wire;

/// Answers with addresses that may be under way: of 64 KiB at most, and asked for once by each peer.
pub(crate) const EXCHANGE_PLACES: Bounds = Bounds { shared: 16, named: 8, of_peer: 1, first: 1 };

type Question = request_response::Event<Vec<u8>, Vec<u8>>;
type Message = request_response::Message<Vec<u8>, Vec<u8>>;

impl Service {
    pub(super) fn on_identify(&mut self, event: identify::Event) {
        let identify::Event::Received { peer_id, info, .. } = event else { return };
        if info.protocol_version != self.version {
            return self.refuse_stranger(peer_id, &info.protocol_version);
        }
        if let Some(record) = info.signed_peer_record {
            let (now, reach) = (Instant::now(), self.reach(&peer_id));
            // Checked by the library; a wrong one would not be here.
            let _is_signed = self.book.learn(record, peer_id, reach, now);
            let seen = self.peers.address(&peer_id).and_then(ip_of);
            self.book.met(&peer_id, seen, self.peers.is_dialled(&peer_id), now);
        }
        let Some(peer) = self.peers.get_mut(&peer_id) else { return };
        if std::mem::replace(&mut peer.is_known, true) {
            return;
        }
        tracing::info!(peer = %peer_id, version = info.agent_version, "a peer of this network");
        self.ask_status(peer_id);
        self.pull(peer_id, Extent::Whole);
        self.ask_for_peers(peer_id);
        self.show();
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

    fn refuse_stranger(&mut self, peer: PeerId, version: &str) {
        let Some(connected) = self.peers.get_mut(&peer) else { return };
        if connected.stranger_since.is_some() {
            return;
        }
        connected.stranger_since = Some(Instant::now());
        connected.is_known = false;
        let _time = self.bans.offend(peer, Instant::now());
        self.counters.strangers.inc();
        let address = self.peers.address(&peer).map(ToString::to_string).unwrap_or_default();
        let shown: String = version.chars().filter(|c| !c.is_control()).take(200).collect();
        tracing::warn!(
            %peer, address, theirs = shown, ours = self.version,
            "refusing a node of another network: chain or genesis differ"
        );
    }

    pub(super) fn on_ping(&mut self, event: &ping::Event) {
        if let (Ok(round_trip), Some(peer)) = (&event.result, self.peers.get_mut(&event.peer)) {
            peer.latency = Some(*round_trip);
        }
    }

    /// Whether a peer may ask now.
    fn may_ask(&mut self, peer: &PeerId) -> bool {
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

    pub(super) fn on_pool(&mut self, event: Question) {
        match event {
            Question::Message {
                peer,
                message: Message::Request { request_id, request, channel },
                ..
            } => {
                let asked = Asked { peer, id: request_id, question: request, channel };
                let is_named = self.targets.names(&peer);
                let has_place = self.may_ask(&peer)
                    && self.pool_places.enter(request_id, peer, is_named, Instant::now());
                // A question that is not passed on is answered by the closing of its stream.
                if !has_place || self.asked.try_send(asked).is_err() {
                    self.counters.unanswered.inc();
                }
            }
            Question::Message { message: Message::Response { request_id, response }, .. } => {
                if let Some(answer) = self.answers.remove(&request_id) {
                    drop(answer.send(Some(response)));
                }
            }
            Question::OutboundFailure { request_id, peer, error, .. } => {
                tracing::debug!(%peer, %error, "a peer did not answer");
                if let Some(answer) = self.answers.remove(&request_id) {
                    drop(answer.send(None));
                }
            }
            Question::InboundFailure { request_id, error, .. } => {
                self.pool_places.left(request_id, Left::by(&error), Instant::now());
            }
            Question::ResponseSent { request_id, .. } => {
                self.pool_places.left(request_id, Left::Taken, Instant::now());
            }
        }
    }

    /// Asks a peer whom it knows, if there are too few peers.
    fn ask_for_peers(&mut self, peer: PeerId) {
        if self.peers_wanted.is_some_and(|wanted| self.peers.count() < wanted) {
            let exchange = &mut self.swarm.behaviour_mut().exchange;
            let _id = exchange.send_request(&peer, Vec::new());
        }
    }

    /// Asks for more peers and dials some of those that are known, if there are too few.
    pub(super) fn look_for_peers(&mut self, now: Instant) {
        let Some(wanted) = self.peers_wanted else { return };
        let missing = wanted.saturating_sub(self.peers.count());
        if missing == 0 {
            return;
        }
        if let Some(peer) = self.peers.next_known() {
            self.ask_for_peers(peer);
        }
        self.dial_learned(missing, now);
    }

    fn dial_learned(&mut self, count: usize, now: Instant) {
        let peers = &self.peers;
        for options in self.book.due(count, now, |peer| peers.has(peer)) {
            if let Err(error) = self.swarm.dial(options) {
                tracing::debug!(%error, "a learned address is not dialled");
            }
        }
    }

    pub(super) fn on_exchange(&mut self, event: Question) {
        match event {
            Question::Message {
                peer,
                message: Message::Request { request_id, channel, .. },
                ..
            } => {
                let (now, is_named) = (Instant::now(), self.targets.names(&peer));
                if !self.may_ask(&peer)
                    || !self.exchange_places.enter(request_id, peer, is_named, now)
                {
                    self.counters.unanswered.inc();
                    return;
                }
                let tells = self.peers_wanted.is_some();
                let records = if tells { self.book.tell(&peer, now) } else { Vec::new() };
                let answer = wire::write_records(records);
                self.exchange_places.answered(&request_id);
                let exchange = &mut self.swarm.behaviour_mut().exchange;
                // Fails if the peer is gone, and then there is nobody to tell.
                drop(exchange.send_response(channel, answer));
                self.counters.answered.inc();
            }
            Question::Message { peer, message: Message::Response { response, .. }, .. } => {
                self.on_records(peer, &response);
            }
            Question::OutboundFailure { peer, error, .. } => {
                tracing::debug!(%peer, %error, "a peer did not tell whom it knows");
            }
            Question::InboundFailure { request_id, error, .. } => {
                self.exchange_places.left(request_id, Left::by(&error), Instant::now());
            }
            Question::ResponseSent { request_id, .. } => {
                self.exchange_places.left(request_id, Left::Taken, Instant::now());
            }
        }
    }

    fn on_records(&mut self, peer: PeerId, bytes: &[u8]) {
        let now = Instant::now();
        let reach = self.reach(&peer);
        let are_signed = wire::read_records(bytes).map(|records| {
            records.into_iter().all(|record| self.book.read(record, peer, reach, now))
        });
        match are_signed {
            Ok(true) => {}
            Err(error) if error.is_cut_off() => {}
            Ok(false) | Err(_) => self.keep_out(peer, "it told addresses that nobody signed"),
        }
        let wanted = self.peers_wanted.unwrap_or_default();
        self.dial_learned(wanted.saturating_sub(self.peers.count()), now);
    }
}
