//! The swarm's end: which questions of peers are let in, and what is expected of peers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use libp2p::request_response::{self, InboundRequestId, OutboundRequestId, ResponseChannel};
use tokio::sync::{mpsc, oneshot};

use super::wire::{self, Question};
use crate::Counters;
use crate::connections::Connections;
use crate::places::{Bounds, Left, Places};
use crate::ports::{ChainSource, Status};

/// Questions that may be under way. With the size of an answer this bounds the memory for those who
/// ask and do not read. A status is answered from memory, in a few bytes, and takes no place.
const PLACES: Bounds = Bounds { shared: 16, of_group: 4, named: 8, of_peer: 4, first: 2 };
/// Questions that may wait for the reader: all that have a place.
pub(crate) const QUESTIONS_MAX: usize = PLACES.shared + PLACES.named;
/// How often peers are asked how far they are.
const STATUS_INTERVAL: Duration = Duration::from_secs(2);

type Event = request_response::Event<Vec<u8>, Vec<u8>>;
type Message = request_response::Message<Vec<u8>, Vec<u8>>;

/// A question of a peer that has to be read for.
#[derive(Debug)]
pub(crate) struct SyncQuestion {
    pub(crate) id: InboundRequestId,
    pub(crate) question: Question,
    pub(crate) channel: ResponseChannel<Vec<u8>>,
}

/// What a peer's answer is for.
#[derive(Debug)]
enum Expected {
    /// Its status.
    Status,
    /// Whatever another task asked; none if there is no answer.
    Other(oneshot::Sender<Option<Vec<u8>>>),
}

/// What the swarm's task keeps about questions of blocks.
pub(crate) struct SyncRequests {
    chain: Arc<dyn ChainSource>,
    asked: mpsc::Sender<SyncQuestion>,
    /// Questions of peers whose answer has not left.
    places: Places,
    /// Own questions.
    expected: BTreeMap<OutboundRequestId, (PeerId, Expected)>,
    next_status: Instant,
    counters: Counters,
}

impl SyncRequests {
    pub(crate) fn new(
        chain: Arc<dyn ChainSource>,
        asked: mpsc::Sender<SyncQuestion>,
        now: Instant,
        counters: Counters,
    ) -> Self {
        let (places, expected) = (Places::new(PLACES), BTreeMap::new());
        Self { chain, asked, places, expected, next_status: now + STATUS_INTERVAL, counters }
    }

    fn waits_for_status(&self, peer: &PeerId) -> bool {
        let waits = |(of, expected): &(PeerId, Expected)| {
            of == peer && matches!(expected, Expected::Status)
        };
        self.expected.values().any(waits)
    }

    /// Asks a peer how far it is, unless it is being asked.
    pub(crate) fn ask_status(&mut self, peer: PeerId, connections: &mut Connections) {
        if self.waits_for_status(&peer) {
            return;
        }
        let question = Question::Status(self.chain.status()).write();
        self.ask(peer, question, Expected::Status, connections);
    }

    /// Asks all peers how far they are when it is time.
    pub(crate) fn on_tick(&mut self, now: Instant, connections: &mut Connections) {
        if now >= self.next_status {
            self.next_status = now + STATUS_INTERVAL;
            for peer in connections.peers().known() {
                self.ask_status(peer, connections);
            }
        }
    }

    /// Asks a peer about its chain, for another task.
    pub(crate) fn ask_for_other(
        &mut self,
        peer: PeerId,
        question: Vec<u8>,
        answer: oneshot::Sender<Option<Vec<u8>>>,
        connections: &mut Connections,
    ) {
        if connections.peers().has(&peer) {
            self.ask(peer, question, Expected::Other(answer), connections);
        } else {
            drop(answer.send(None));
        }
    }

    fn ask(
        &mut self,
        peer: PeerId,
        question: Vec<u8>,
        expected: Expected,
        connections: &mut Connections,
    ) {
        let id = connections.behaviour().sync.send_request(&peer, question);
        self.expected.insert(id, (peer, expected));
    }

    /// Answers a peer's question that was read for.
    pub(crate) fn answer(
        &mut self,
        id: &InboundRequestId,
        channel: ResponseChannel<Vec<u8>>,
        answer: Vec<u8>,
        connections: &mut Connections,
    ) {
        self.places.answered(id, Instant::now());
        send(channel, answer, connections);
    }

    pub(crate) fn on_event(&mut self, event: Event, connections: &mut Connections) {
        match event {
            Event::Message {
                peer,
                message: Message::Request { request_id, request, channel },
                ..
            } => self.on_question((peer, request_id), &request, channel, connections),
            Event::Message { message: Message::Response { request_id, response }, .. } => {
                self.on_answer(request_id, Some(response), connections);
            }
            Event::OutboundFailure { request_id, peer, error, .. } => {
                tracing::debug!(%peer, %error, "a peer did not answer about its chain");
                self.on_answer(request_id, None, connections);
            }
            Event::InboundFailure { request_id, error, .. } => {
                self.places.left(request_id, Left::by(&error), Instant::now());
            }
            Event::ResponseSent { request_id, .. } => {
                self.places.left(request_id, Left::Taken, Instant::now());
            }
        }
    }

    fn on_question(
        &mut self,
        (peer, id): (PeerId, InboundRequestId),
        question: &[u8],
        channel: ResponseChannel<Vec<u8>>,
        connections: &mut Connections,
    ) {
        // A question that is not passed on is answered by the closing of its stream.
        if !connections.may_ask_chain(&peer) {
            self.counters.sync_refused.inc();
            return;
        }
        match Question::read(question) {
            Err(error) if error.is_cut_off() => {}
            Err(error) => {
                connections.keep_out(peer, &format!("a question about the chain: {error}"));
            }
            Ok(Question::Status(theirs)) => {
                told_status(peer, theirs, connections);
                let status = self.chain.status();
                send(channel, wire::write_status(&status), connections);
            }
            Ok(question) => {
                let has_place = self.places.enter(id, connections.asker(peer), Instant::now());
                let asked = SyncQuestion { id, question, channel };
                if !has_place || self.asked.try_send(asked).is_err() {
                    self.counters.sync_refused.inc();
                }
            }
        }
    }

    fn on_answer(
        &mut self,
        id: OutboundRequestId,
        answer: Option<Vec<u8>>,
        connections: &mut Connections,
    ) {
        let Some((peer, expected)) = self.expected.remove(&id) else { return };
        match expected {
            Expected::Other(answered) => drop(answered.send(answer)),
            Expected::Status => match answer.as_deref().map(wire::read_status) {
                Some(Ok(Some(status))) => told_status(peer, status, connections),
                Some(Err(error)) if !error.is_cut_off() => {
                    connections.keep_out(peer, &format!("a status: {error}"));
                }
                Some(Ok(None) | Err(_)) | None => {}
            },
        }
    }
}

fn send(channel: ResponseChannel<Vec<u8>>, answer: Vec<u8>, connections: &mut Connections) {
    // Fails if the peer is gone, and then nobody wants the answer.
    drop(connections.behaviour().sync.send_response(channel, answer));
}

/// Shown at the next tick: showing costs a look at all peers, and each may have news often.
fn told_status(peer: PeerId, status: Status, connections: &mut Connections) {
    let Some(peer) = connections.peer_mut(&peer) else { return };
    peer.status = Some(status);
    peer.height = Some(status.tip);
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use libp2p::core::ConnectedPoint;
    use libp2p::identity::Keypair;
    use libp2p::swarm::{ConnectionId, SwarmEvent};
    use parking_lot::Mutex;
    use types::Hash;

    use super::*;
    use crate::behaviour::Parts;
    use crate::handle::View;
    use crate::{Limits, NetworkId, start};

    /// Connections, with one peer of the network.
    fn connections(view: &Arc<Mutex<View>>) -> (Connections, PeerId) {
        let network = NetworkId::new("town".to_owned(), Hash::digest(b"genesis"));
        let limits = Limits::default();
        let parts = Parts {
            network: &network,
            limits: &limits,
            message_bytes_max: 1_024,
            block_bytes_max: 1_024,
            tells_listen_addresses: true,
        };
        let swarm = start::swarm(Keypair::generate_ed25519(), &parts).unwrap();
        let shown = (Arc::clone(view), Counters::default());
        let mut connections = Connections::new(swarm, network.version(), &limits, shown);
        let (peer, address) = (PeerId::random(), "/ip4/192.0.2.1/tcp/1".parse().unwrap());
        let opened = SwarmEvent::ConnectionEstablished {
            peer_id: peer,
            connection_id: ConnectionId::new_unchecked(1),
            endpoint: ConnectedPoint::Listener {
                local_addr: "/ip4/192.0.2.2/tcp/1".parse().unwrap(),
                send_back_addr: address,
            },
            num_established: NonZeroU32::MIN,
            concurrent_dial_errors: None,
            established_in: Duration::ZERO,
        };
        connections.on_event(opened).unwrap();
        connections.peer_mut(&peer).expect("it is connected").is_known = true;
        (connections, peer)
    }

    #[tokio::test]
    async fn a_peer_that_has_news_again_and_again_is_shown_at_the_tick() {
        let view = Arc::default();
        let (mut connections, peer) = connections(&view);
        let shown = || view.lock().peers.iter().find_map(|peer| peer.height);
        for tip in 1..=100 {
            told_status(peer, Status { earliest: 1, tip }, &mut connections);
            assert_eq!(None, shown(), "at {tip}");
        }
        connections.show();
        assert_eq!(Some(100), shown());
    }
}
