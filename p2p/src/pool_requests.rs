//! The swarm's end of questions about pools: those of peers about the own pool, which are let in or
//! not, and those of other tasks about the pools of peers.

use std::collections::BTreeMap;
use std::time::Instant;

use libp2p::PeerId;
use libp2p::request_response::{self, InboundRequestId, OutboundRequestId, ResponseChannel};
use tokio::sync::{mpsc, oneshot};

use crate::Counters;
use crate::connections::Connections;
use crate::places::{Left, Places};
use crate::serve::{PLACES, PoolQuestion};

type Event = request_response::Event<Vec<u8>, Vec<u8>>;
type Message = request_response::Message<Vec<u8>, Vec<u8>>;

/// What the swarm's task keeps about questions of pools.
pub(crate) struct PoolRequests {
    /// Own questions.
    answers: BTreeMap<OutboundRequestId, oneshot::Sender<Option<Vec<u8>>>>,
    asked: mpsc::Sender<PoolQuestion>,
    /// Questions of peers whose answer has not left.
    places: Places,
    counters: Counters,
}

impl PoolRequests {
    pub(crate) const fn new(asked: mpsc::Sender<PoolQuestion>, counters: Counters) -> Self {
        Self { answers: BTreeMap::new(), asked, places: Places::new(PLACES), counters }
    }

    /// Asks a peer's pool.
    pub(crate) fn ask(
        &mut self,
        peer: &PeerId,
        question: Vec<u8>,
        answer: oneshot::Sender<Option<Vec<u8>>>,
        connections: &mut Connections,
    ) {
        if connections.peers().has(peer) {
            let id = connections.behaviour().pool.send_request(peer, question);
            self.answers.insert(id, answer);
        } else {
            drop(answer.send(None));
        }
    }

    /// Answers a peer's question.
    pub(crate) fn answer(
        &mut self,
        id: &InboundRequestId,
        channel: ResponseChannel<Vec<u8>>,
        answer: Vec<u8>,
        connections: &mut Connections,
    ) {
        self.places.answered(id, Instant::now());
        // Fails if the peer is gone, and then nobody wants the answer.
        drop(connections.behaviour().pool.send_response(channel, answer));
    }

    pub(crate) fn on_event(&mut self, event: Event, connections: &mut Connections) {
        match event {
            Event::Message {
                peer,
                message: Message::Request { request_id, request, channel },
                ..
            } => {
                let asked = PoolQuestion { peer, id: request_id, question: request, channel };
                let has_place = connections.may_ask(&peer)
                    && self.places.enter(request_id, connections.asker(peer), Instant::now());
                // A question that is not passed on is answered by the closing of its stream.
                if !has_place || self.asked.try_send(asked).is_err() {
                    self.counters.unanswered.inc();
                }
            }
            Event::Message { message: Message::Response { request_id, response }, .. } => {
                if let Some(answer) = self.answers.remove(&request_id) {
                    drop(answer.send(Some(response)));
                }
            }
            Event::OutboundFailure { request_id, peer, error, .. } => {
                tracing::debug!(%peer, %error, "a peer did not answer");
                if let Some(answer) = self.answers.remove(&request_id) {
                    drop(answer.send(None));
                }
            }
            Event::InboundFailure { request_id, error, .. } => {
                self.places.left(request_id, Left::by(&error), Instant::now());
            }
            Event::ResponseSent { request_id, .. } => {
                self.places.left(request_id, Left::Taken, Instant::now());
            }
        }
    }
}
