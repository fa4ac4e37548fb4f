//! Address exchange: asking peers for further peers while there are too few, and telling those that
//! ask.

use std::time::{Duration, Instant};

use libp2p::{PeerId, request_response};

use crate::Counters;
use crate::connections::Connections;
use crate::places::{Bounds, Left, Places};
use crate::wire;

/// How often more peers are looked for.
const EXCHANGE_INTERVAL: Duration = Duration::from_secs(10);
/// Answers with addresses that may be under way: of 64 KiB at most, and asked for once by each peer.
const PLACES: Bounds = Bounds { shared: 16, of_group: 4, named: 8, of_peer: 1, first: 1 };

type Event = request_response::Event<Vec<u8>, Vec<u8>>;
type Message = request_response::Message<Vec<u8>, Vec<u8>>;

/// What this node asks about further peers, and what it is asked.
pub(crate) struct Exchange {
    /// With fewer peers more are looked for; none if there is no exchange.
    peers_wanted: Option<usize>,
    /// Questions of peers whose answer has not left.
    places: Places,
    next: Instant,
    counters: Counters,
}

impl Exchange {
    pub(crate) const fn new(peers_wanted: Option<usize>, now: Instant, counters: Counters) -> Self {
        Self { peers_wanted, places: Places::new(PLACES), next: now, counters }
    }

    /// Asks a peer whom it knows, if there are too few peers.
    pub(crate) fn ask(&self, peer: PeerId, connections: &mut Connections) {
        if self.peers_wanted.is_some_and(|wanted| connections.peers().count() < wanted) {
            let _id = connections.behaviour().exchange.send_request(&peer, Vec::new());
        }
    }

    /// Looks for more peers when it is time.
    pub(crate) fn on_tick(&mut self, now: Instant, connections: &mut Connections) {
        if now >= self.next {
            self.next = now + EXCHANGE_INTERVAL;
            self.look_for_peers(now, connections);
        }
    }

    /// Asks for more peers and dials some of those that are known, if there are too few.
    fn look_for_peers(&self, now: Instant, connections: &mut Connections) {
        let Some(wanted) = self.peers_wanted else { return };
        let missing = wanted.saturating_sub(connections.peers().count());
        if missing == 0 {
            return;
        }
        if let Some(peer) = connections.next_known() {
            self.ask(peer, connections);
        }
        connections.dial_learned(missing, now);
    }

    pub(crate) fn on_event(&mut self, event: Event, connections: &mut Connections) {
        match event {
            Event::Message {
                peer, message: Message::Request { request_id, channel, .. }, ..
            } => {
                let now = Instant::now();
                if !connections.may_ask(&peer)
                    || !self.places.enter(request_id, connections.asker(peer), now)
                {
                    self.counters.unanswered.inc();
                    return;
                }
                let tells = self.peers_wanted.is_some();
                let records = if tells { connections.records_for(&peer, now) } else { Vec::new() };
                let answer = wire::write_records(records);
                self.places.answered(&request_id, now);
                // Fails if the peer is gone, and then there is nobody to tell.
                drop(connections.behaviour().exchange.send_response(channel, answer));
                self.counters.answered.inc();
            }
            Event::Message { peer, message: Message::Response { response, .. }, .. } => {
                self.on_records(peer, &response, connections);
            }
            Event::OutboundFailure { peer, error, .. } => {
                tracing::debug!(%peer, %error, "a peer did not say which peers it knows");
            }
            Event::InboundFailure { request_id, error, .. } => {
                self.places.left(request_id, Left::by(&error), Instant::now());
            }
            Event::ResponseSent { request_id, .. } => {
                self.places.left(request_id, Left::Taken, Instant::now());
            }
        }
    }

    fn on_records(&self, peer: PeerId, bytes: &[u8], connections: &mut Connections) {
        let now = Instant::now();
        let are_signed =
            wire::read_records(bytes).map(|records| connections.learn_all(records, peer, now));
        match are_signed {
            Ok(true) => {}
            Err(error) if error.is_cut_off() => {}
            Ok(false) | Err(_) => {
                connections.keep_out(peer, "it sent addresses that nobody signed");
            }
        }
        let wanted = self.peers_wanted.unwrap_or_default();
        connections.dial_learned(wanted.saturating_sub(connections.peers().count()), now);
    }
}
