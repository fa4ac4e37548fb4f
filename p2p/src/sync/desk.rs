//! The swarm's end: which questions of peers are let in, and what is expected of peers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use libp2p::request_response::{self, InboundRequestId, OutboundRequestId, ResponseChannel};
use tokio::sync::{mpsc, oneshot};

use super::wire::{self, Question};
use crate::places::{Bounds, Left, Places};
use crate::ports::{Chain, Status};
use crate::service::Service;

/// Questions that may be under way. With the size of an answer this bounds the memory for those who
/// ask and do not read. A status is answered from memory, in a few bytes, and takes no place.
const PLACES: Bounds = Bounds { shared: 16, named: 8, of_peer: 4, first: 2 };
/// Questions that may wait for the reader: all that have a place.
pub(crate) const QUESTIONS_MAX: usize = PLACES.shared + PLACES.named;
/// How often peers are asked how far they are.
pub(crate) const STATUS_INTERVAL: Duration = Duration::from_secs(2);

type Event = request_response::Event<Vec<u8>, Vec<u8>>;
type Message = request_response::Message<Vec<u8>, Vec<u8>>;

/// A question of a peer that has to be read for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: InboundRequestId,
    pub(crate) question: Question,
    pub(crate) channel: ResponseChannel<Vec<u8>>,
}

/// What a peer's answer is for.
#[derive(Debug)]
pub(crate) enum Expected {
    /// Its status.
    Status,
    /// Whatever another task asked; none if there is no answer.
    Other(oneshot::Sender<Option<Vec<u8>>>),
}

/// What the swarm's task keeps about questions of blocks.
pub(crate) struct Desk {
    pub(crate) chain: Arc<dyn Chain>,
    pub(crate) asked: mpsc::Sender<Asked>,
    /// Questions of peers whose answer has not left.
    pub(crate) places: Places,
    /// Own questions.
    pub(crate) expected: BTreeMap<OutboundRequestId, (PeerId, Expected)>,
    pub(crate) next_status: Instant,
}

impl Desk {
    pub(crate) fn new(chain: Arc<dyn Chain>, asked: mpsc::Sender<Asked>, now: Instant) -> Self {
        let (places, expected) = (Places::new(PLACES), BTreeMap::new());
        Self { chain, asked, places, expected, next_status: now + STATUS_INTERVAL }
    }

    fn waits_for_status(&self, peer: &PeerId) -> bool {
        let waits = |(of, expected): &(PeerId, Expected)| {
            of == peer && matches!(expected, Expected::Status)
        };
        self.expected.values().any(waits)
    }
}

impl Service {
    /// Asks a peer how far it is, unless it is being asked.
    pub(crate) fn ask_status(&mut self, peer: PeerId) {
        if self.desk.waits_for_status(&peer) {
            return;
        }
        let question = Question::Status(self.desk.chain.status()).write();
        self.ask_chain(peer, question, Expected::Status);
    }

    /// Asks all peers how far they are.
    pub(crate) fn ask_all_status(&mut self) {
        for peer in self.peers.known() {
            self.ask_status(peer);
        }
    }

    pub(crate) fn ask_chain(&mut self, peer: PeerId, question: Vec<u8>, expected: Expected) {
        let id = self.swarm.behaviour_mut().sync.send_request(&peer, question);
        self.desk.expected.insert(id, (peer, expected));
    }

    pub(crate) fn answer_chain(&mut self, channel: ResponseChannel<Vec<u8>>, answer: Vec<u8>) {
        // Fails if the peer is gone, and then nobody wants the answer.
        drop(self.swarm.behaviour_mut().sync.send_response(channel, answer));
    }

    pub(crate) fn on_sync(&mut self, event: Event) {
        match event {
            Event::Message {
                peer,
                message: Message::Request { request_id, request, channel },
                ..
            } => self.on_sync_question(peer, request_id, &request, channel),
            Event::Message { message: Message::Response { request_id, response }, .. } => {
                self.on_sync_answer(request_id, Some(response));
            }
            Event::OutboundFailure { request_id, peer, error, .. } => {
                tracing::debug!(%peer, %error, "a peer did not answer about its chain");
                self.on_sync_answer(request_id, None);
            }
            Event::InboundFailure { request_id, error, .. } => {
                self.desk.places.left(request_id, Left::by(&error), Instant::now());
            }
            Event::ResponseSent { request_id, .. } => {
                self.desk.places.left(request_id, Left::Taken, Instant::now());
            }
        }
    }

    fn on_sync_question(
        &mut self,
        peer: PeerId,
        id: InboundRequestId,
        question: &[u8],
        channel: ResponseChannel<Vec<u8>>,
    ) {
        // A question that is not passed on is answered by the closing of its stream.
        if !self.may_ask_chain(&peer) {
            self.counters.sync_refused.inc();
            return;
        }
        match Question::read(question) {
            Err(error) if error.is_cut_off() => {}
            Err(error) => self.keep_out(peer, &format!("a question about the chain: {error}")),
            Ok(Question::Status(theirs)) => {
                self.told_status(peer, theirs);
                let status = self.desk.chain.status();
                self.answer_chain(channel, wire::write_status(&status));
            }
            Ok(question) => {
                let is_named = self.targets.names(&peer);
                let has_place = self.desk.places.enter(id, peer, is_named, Instant::now());
                let asked = Asked { id, question, channel };
                if !has_place || self.desk.asked.try_send(asked).is_err() {
                    self.counters.sync_refused.inc();
                }
            }
        }
    }

    fn on_sync_answer(&mut self, id: OutboundRequestId, answer: Option<Vec<u8>>) {
        let Some((peer, expected)) = self.desk.expected.remove(&id) else { return };
        match expected {
            Expected::Other(answered) => drop(answered.send(answer)),
            Expected::Status => match answer.as_deref().map(wire::read_status) {
                Some(Ok(Some(status))) => self.told_status(peer, status),
                Some(Err(error)) if !error.is_cut_off() => {
                    self.keep_out(peer, &format!("a status: {error}"));
                }
                Some(Ok(None) | Err(_)) | None => {}
            },
        }
    }

    fn told_status(&mut self, peer: PeerId, status: Status) {
        let Some(peer) = self.peers.get_mut(&peer) else { return };
        let is_news = peer.status.replace(status) != Some(status);
        peer.height = Some(status.tip);
        if is_news {
            self.show();
        }
    }
}
