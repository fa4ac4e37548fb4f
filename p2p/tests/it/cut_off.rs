//! Streams that end before what they carry: a peer that gave up is no peer that lies.

use std::io;

use async_trait::async_trait;
use futures::{AsyncReadExt as _, AsyncWriteExt as _, StreamExt as _};
use libp2p::futures::{AsyncRead, AsyncWrite};
use libp2p::request_response::{self, Event, Message, ProtocolSupport};
use libp2p::swarm::{NetworkBehaviour, SwarmEvent};
use libp2p::{PeerId, StreamProtocol, Swarm, identify};
use types::Hash;

use crate::support::rogue::dialling;
use crate::support::{DoubleChain, Node, config, eventually};

/// All bytes of a stream, whatever they are.
#[derive(Clone, Default)]
struct Raw;

#[async_trait]
impl request_response::Codec for Raw {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut bytes = Vec::new();
        io.read_to_end(&mut bytes).await.map(|_| bytes)
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut bytes = Vec::new();
        io.read_to_end(&mut bytes).await.map(|_| bytes)
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&bytes).await
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&bytes).await
    }
}

#[derive(NetworkBehaviour)]
struct Behaviour {
    identify: identify::Behaviour,
    questions: request_response::Behaviour<Raw>,
}

/// A node that says that it is of the network, asks and answers as it is told.
pub(crate) struct Double {
    swarm: Swarm<Behaviour>,
    node: PeerId,
    /// What the node asked.
    asked: Vec<Vec<u8>>,
}

impl Double {
    /// One that speaks this protocol of the network, connected to the node.
    pub(crate) async fn of(kind: &str, node: &Node) -> Self {
        let genesis = Hash::digest(b"genesis").to_string();
        let name = format!("/ombra/town/{}/{kind}/1", &genesis[..8]);
        let protocol = StreamProtocol::try_from_owned(name).expect("a protocol");
        let questions = request_response::Behaviour::with_codec(
            Raw,
            [(protocol, ProtocolSupport::Full)],
            request_response::Config::default(),
        );
        let mut swarm = dialling(node, |identify| Behaviour { identify, questions });
        let node = loop {
            if let SwarmEvent::ConnectionEstablished { peer_id, .. } =
                swarm.select_next_some().await
            {
                break peer_id;
            }
        };
        Self { swarm, node, asked: Vec::new() }
    }

    /// Keeps the connection and answers nothing, for ever.
    pub(crate) async fn stays_silent(mut self) {
        let mut unanswered = Vec::new();
        loop {
            let event = self.swarm.select_next_some().await;
            let SwarmEvent::Behaviour(BehaviourEvent::Questions(event)) = event else { continue };
            if let Event::Message { message: Message::Request { channel, .. }, .. } = event {
                unanswered.push(channel);
            }
        }
    }

    /// Asks this and waits until there is an answer, or will be none. What the node asks meanwhile
    /// is answered with `answer`.
    async fn ask(&mut self, question: &[u8], answer: &[u8]) -> Option<Vec<u8>> {
        let questions = &mut self.swarm.behaviour_mut().questions;
        let asked = questions.send_request(&self.node, question.to_vec());
        loop {
            let event = self.swarm.select_next_some().await;
            if matches!(event, SwarmEvent::ConnectionClosed { .. }) {
                return None;
            }
            let SwarmEvent::Behaviour(BehaviourEvent::Questions(event)) = event else { continue };
            match event {
                Event::Message { message: Message::Request { channel, request, .. }, .. } => {
                    self.asked.push(request);
                    let questions = &mut self.swarm.behaviour_mut().questions;
                    drop(questions.send_response(channel, answer.to_vec()));
                }
                Event::Message { message: Message::Response { request_id, response }, .. }
                    if request_id == asked =>
                {
                    return Some(response);
                }
                Event::OutboundFailure { request_id, .. } if request_id == asked => return None,
                Event::Message { .. }
                | Event::OutboundFailure { .. }
                | Event::InboundFailure { .. }
                | Event::ResponseSent { .. } => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_ends_too_early_is_not_answered_and_no_offence() {
    let node = Node::start(config()).await;
    let bans = || node.handle.counters().bans.get();
    // Of a status, of blocks, of a piece of a snapshot; of a list and of transactions.
    let cut: [(&str, &[&[u8]]); 2] =
        [("sync", &[&[], &[0, 1], &[1; 5], &[3; 20]]), ("pool", &[&[], &[7; 4], &[7; 8]])];
    for (kind, questions) in cut {
        let mut double = Double::of(kind, &node).await;
        for question in questions {
            double.ask(question, &[]).await;
            assert_eq!(0, bans(), "{kind} {question:?}");
        }
    }
    let mut double = Double::of("sync", &node).await;
    double.ask(&[9], &[]).await;
    eventually("a question of no kind is an offence", || bans() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_ends_too_early_is_none_and_no_offence() {
    let node = Node::start(config()).await;
    let bans = || node.handle.counters().bans.get();
    let mut double = Double::of("sync", &node).await;
    // While it asks, the node asks for its status; half of one is the answer.
    for _ in 0..3 {
        double.ask(&[2], &[1, 0, 0, 0]).await;
    }
    assert_eq!(0, bans());
    let asks = tokio::spawn(async move {
        loop {
            double.ask(&[2], &[7]).await;
            tokio::task::yield_now().await;
        }
    });
    eventually("an answer of no kind is an offence", || bans() == 1).await;
    asks.abort();
}

/// What [`Double`] speaks is the first version of the protocol, as nodes did whose snapshots were of the
/// first format.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_build_hears_of_no_snapshot_and_is_not_asked_for_one() {
    let node = Node::with_chain(DoubleChain::up_to(70, 10)).await;
    let bans = || node.handle.counters().bans.get();
    let mut double = Double::of("sync", &node).await;
    let status = [1, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(Some(vec![1]), double.ask(&[2], &status).await, "granted, and none");
    eventually("the double is known", || !node.handle.peers().is_empty()).await;
    let peer = node.handle.peers()[0].key;
    let handle = node.handle.clone();
    let time = std::time::Duration::from_secs(20);
    let asked = tokio::spawn(async move { handle.snapshots(peer, 2, time).await });
    while !asked.is_finished() {
        double.ask(&[2], &status).await;
    }
    assert_eq!(Err(p2p::AskError::Silent), asked.await.expect("an answer"));
    assert!(double.asked.iter().all(|question| question.first() != Some(&4)), "{:?}", double.asked);
    assert_eq!(0, bans());
    // The blocks that it has go both ways as before.
    let handle = node.handle.clone();
    let asked = tokio::spawn(async move { handle.blocks(peer, (1, 1), time).await });
    while !asked.is_finished() {
        double.ask(&[2], &[1]).await;
    }
    assert_eq!(Ok(Vec::new()), asked.await.expect("an answer"));
}
