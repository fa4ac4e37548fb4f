//! The parts of libp2p that this network is made of, and how they are set.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use libp2p::allow_block_list::{self, BlockedPeers};
use libp2p::gossipsub::{
    self, MessageAuthenticity, MessageId, PeerScoreParams, PeerScoreThresholds, TopicHash,
    TopicScoreParams, ValidationMode, WhitelistSubscriptionFilter,
};
use libp2p::identity::Keypair;
use libp2p::request_response::{self, ProtocolSupport};
use libp2p::swarm::NetworkBehaviour;
use libp2p::{StreamProtocol, identify, ping};
use types::Hash;

use crate::limits;
use crate::sync::wire as sync_wire;
use crate::wire::{
    ANSWER_BYTES_WANTED, LIST_MAX, QUESTION_BYTES_MAX, RECORD_BYTES_MAX, RECORDS_MAX,
};
use crate::{Limits, NetworkId, StartError};

/// Below this score a peer is cut off: three invalid messages, or many small offences.
pub(crate) const SCORE_MIN: f64 = -80.0;

/// How long a peer may take to answer.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// How long blocks may take: they are larger, and whoever asks may give up earlier.
const BLOCKS_TIME_MAX: Duration = Duration::from_secs(20);

/// Questions under way with one peer, in both directions.
const STREAMS_MAX: usize = 16;

/// What is written is written in pieces of so many bytes, each of which the other has to take within
/// this time: so small a part is what a node with a slow line asks for, and so long it waits.
const PIECE_BYTES: usize = 64 * 1024;
const PIECE_TIME_MAX: Duration = Duration::from_secs(8);

/// How often the round trip to a peer is measured.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// How long an invalid message counts against its sender.
const INVALID_DECAY: Duration = Duration::from_secs(600);

/// How long gossip remembers what it saw, so that a duplicate costs a look-up.
const SEEN_TIME: Duration = Duration::from_secs(120);

type Gossip = gossipsub::Behaviour<gossipsub::IdentityTransform, WhitelistSubscriptionFilter>;

/// Everything that runs over one connection, and what decides whether there is one.
#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    // The first ones may refuse a connection before the others hear of it.
    pub(crate) blocked: allow_block_list::Behaviour<BlockedPeers>,
    pub(crate) limits: limits::Behaviour,
    pub(crate) identify: identify::Behaviour,
    pub(crate) ping: ping::Behaviour,
    pub(crate) gossip: Gossip,
    pub(crate) pool: request_response::Behaviour<Frames>,
    pub(crate) exchange: request_response::Behaviour<Frames>,
    pub(crate) sync: request_response::Behaviour<Frames>,
}

/// What the behaviour is made of.
pub(crate) struct Parts<'a> {
    pub(crate) network: &'a NetworkId,
    pub(crate) limits: &'a Limits,
    pub(crate) message_bytes_max: usize,
    /// The largest block.
    pub(crate) block_bytes_max: usize,
    /// Whether the listen addresses are told to others; else only external ones.
    pub(crate) tells_listen_addresses: bool,
}

impl Behaviour {
    pub(crate) fn new(key: &Keypair, parts: &Parts<'_>) -> Result<Self, StartError> {
        let Parts { network, limits, message_bytes_max, block_bytes_max, tells_listen_addresses } =
            parts;
        let identify = identify::Config::new_with_signed_peer_record(network.version(), key)
            .with_agent_version(concat!("ombra/", env!("CARGO_PKG_VERSION")).to_owned())
            .with_push_listen_addr_updates(true)
            .with_hide_listen_addrs(!tells_listen_addresses);
        Ok(Self {
            blocked: allow_block_list::Behaviour::default(),
            limits: limits::Behaviour::new((*limits).clone()),
            identify: identify::Behaviour::new(identify),
            ping: ping::Behaviour::new(ping::Config::new().with_interval(PING_INTERVAL)),
            gossip: gossip(network, *message_bytes_max)?,
            pool: questions(
                [network.pool_protocol()],
                QUESTION_BYTES_MAX,
                answer_bytes_max(*message_bytes_max),
                ANSWER_TIME_MAX,
            ),
            exchange: questions(
                [network.peers_protocol()],
                0,
                records_bytes_max(),
                ANSWER_TIME_MAX,
            ),
            sync: questions(
                network.sync_protocols(),
                sync_wire::QUESTION_BYTES_MAX,
                sync_wire::answer_bytes_max(*block_bytes_max),
                BLOCKS_TIME_MAX,
            ),
        })
    }
}

/// Gossip without libp2p's own authorship. A message is named by the hash of its bytes: signatures
/// included, because a name that left them out would let anybody put a broken copy in front of a
/// good transaction, and have those blamed who bring the good one. So neither a sequence number
/// nor an author is needed, and none is wanted: the transactions in it are signed themselves, a
/// second signature would be one more to check at every hop, and an author would say at which node
/// a transaction came in.
fn gossip(network: &NetworkId, message_bytes_max: usize) -> Result<Gossip, StartError> {
    let failed = |error: String| StartError::Behaviour(error);
    let config = gossipsub::ConfigBuilder::default()
        .validation_mode(ValidationMode::Anonymous)
        .validate_messages()
        // What a node published comes back to it from a peer that had it from a third one first;
        // that is a duplicate like any other, and would else count as an invalid message.
        .allow_self_origin(true)
        .message_id_fn(|message| MessageId::new(Hash::digest(&message.data).as_bytes()))
        .max_transmit_size(message_bytes_max)
        .heartbeat_initial_delay(Duration::from_secs(1))
        .mesh_n_low(4)
        .flood_publish(true)
        .duplicate_cache_time(SEEN_TIME)
        .build()
        .map_err(|error| failed(error.to_string()))?;
    let topic = network.topic();
    let filter = WhitelistSubscriptionFilter(std::iter::once(topic.hash()).collect());
    let author = MessageAuthenticity::Anonymous;
    let mut gossip = Gossip::new_with_subscription_filter(author, config, filter)
        .map_err(|error| failed(error.to_owned()))?;
    gossip.with_peer_score(scores(topic.hash()), thresholds()).map_err(failed)?;
    gossip.subscribe(&topic).map_err(|error| failed(error.to_string()))?;
    Ok(gossip)
}

/// Scores for nets of two to fifty nodes with uneven traffic: what counts is invalid messages, and
/// breaking gossip's own rules. Silence is no offence, and nodes may share an address.
fn scores(topic: TopicHash) -> PeerScoreParams {
    let topic_score = TopicScoreParams {
        topic_weight: 1.0,
        // Good conduct is worth something, and less than one invalid message.
        time_in_mesh_weight: 0.01,
        time_in_mesh_quantum: Duration::from_secs(1),
        time_in_mesh_cap: 300.0,
        first_message_deliveries_weight: 0.01,
        first_message_deliveries_decay: 0.9,
        first_message_deliveries_cap: 300.0,
        mesh_message_deliveries_weight: 0.0,
        mesh_failure_penalty_weight: 0.0,
        // The square of the number counts: -10, -40, -90.
        invalid_message_deliveries_weight: -10.0,
        invalid_message_deliveries_decay: gossipsub::score_parameter_decay(INVALID_DECAY),
        ..TopicScoreParams::default()
    };
    PeerScoreParams {
        topics: std::iter::once((topic, topic_score)).collect(),
        topic_score_cap: 5.0,
        app_specific_weight: 1.0,
        ip_colocation_factor_weight: 0.0,
        behaviour_penalty_weight: -5.0,
        behaviour_penalty_threshold: 6.0,
        behaviour_penalty_decay: gossipsub::score_parameter_decay(INVALID_DECAY),
        // A slow peer loses messages and pulls them; that is punishment enough.
        slow_peer_weight: 0.0,
        retain_score: INVALID_DECAY,
        ..PeerScoreParams::default()
    }
}

fn thresholds() -> PeerScoreThresholds {
    PeerScoreThresholds {
        gossip_threshold: -20.0,
        publish_threshold: -40.0,
        graylist_threshold: SCORE_MIN,
        ..PeerScoreThresholds::default()
    }
}

fn questions(
    protocols: impl IntoIterator<Item = StreamProtocol>,
    question_bytes_max: u64,
    answer_bytes_max: u64,
    time_max: Duration,
) -> request_response::Behaviour<Frames> {
    let config = request_response::Config::default()
        .with_request_timeout(time_max)
        .with_max_concurrent_streams(STREAMS_MAX);
    let frames = Frames { question_bytes_max, answer_bytes_max };
    let protocols = protocols.into_iter().map(|protocol| (protocol, ProtocolSupport::Full));
    request_response::Behaviour::with_codec(frames, protocols, config)
}

/// The largest answer: a list, or transactions of which the last one goes over what is wanted.
fn answer_bytes_max(message_bytes_max: usize) -> u64 {
    let list = 64 + LIST_MAX * 32;
    let txs = ANSWER_BYTES_WANTED.saturating_add(message_bytes_max);
    u64::try_from(list.max(txs)).unwrap_or(u64::MAX)
}

fn records_bytes_max() -> u64 {
    u64::try_from(RECORDS_MAX * (4 + RECORD_BYTES_MAX)).unwrap_or(u64::MAX)
}

/// A question or an answer is all bytes of its stream, up to a bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    question_bytes_max: u64,
    answer_bytes_max: u64,
}

async fn read_all<T>(io: &mut T, max: u64) -> io::Result<Vec<u8>>
where
    T: AsyncRead + Unpin + Send,
{
    let mut bytes = Vec::new();
    let read = io.take(max.saturating_add(1)).read_to_end(&mut bytes).await?;
    if u64::try_from(read).is_ok_and(|read| read <= max) {
        Ok(bytes)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("more than {max} bytes")))
    }
}

/// Writes at a least rate, so that nobody who does not read has the bytes held for longer.
async fn write_steadily<T>(io: &mut T, bytes: &[u8]) -> io::Result<()>
where
    T: AsyncWrite + Unpin + Send,
{
    for piece in bytes.chunks(PIECE_BYTES) {
        let written = tokio::time::timeout(PIECE_TIME_MAX, io.write_all(piece)).await;
        written.map_err(|_late| io::Error::from(io::ErrorKind::TimedOut))??;
    }
    Ok(())
}

#[async_trait]
impl request_response::Codec for Frames {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        read_all(io, self.question_bytes_max).await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        read_all(io, self.answer_bytes_max).await
    }

    async fn write_request<T>(
        &mut self,
        protocol: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        if !sync_wire::has_question(protocol.as_ref(), &bytes) {
            // A node of an earlier build would take it for an offence.
            let what = "the peer's version does not support the request";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        write_steadily(io, &bytes).await
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
        write_steadily(io, &bytes).await
    }
}
