//! A peer that speaks the nodes' protocols and sends whatever bytes a test wants it to.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, StreamExt as _};
use libp2p::gossipsub::{self, IdentTopic, MessageAuthenticity, MessageId, ValidationMode};
use libp2p::identity::Keypair;
use libp2p::request_response::{self, Message, ProtocolSupport};
use libp2p::swarm::{NetworkBehaviour, SwarmEvent};
use libp2p::{Multiaddr, PeerId, StreamProtocol, Swarm, SwarmBuilder, identify, noise, tcp, yamux};
use tests::net::Member;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use types::Hash;

/// Orders that may wait.
const ORDERS_MAX: usize = 256;
/// Messages of others that are kept.
const HEARD_MAX: usize = 256;
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// How often one who is not connected dials.
const BEAT: Duration = Duration::from_millis(500);
/// Largest message that it lets itself send.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a rogue is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// What it says first: the network that it is of.
    pub(crate) version: String,
    /// The seed of its key; a new one if there is none.
    pub(crate) key: Option<[u8; 32]>,
    /// What it publishes on.
    pub(crate) topics: Vec<String>,
    /// What it is asked; it asks the first.
    pub(crate) protocols: Vec<String>,
    /// Whether its messages carry its name and signature.
    pub(crate) is_signed: bool,
}

impl Plan {
    /// A stranger on a node's network for transactions that speaks one of its protocols.
    pub(crate) fn gossip(node: &Member, protocol: &str) -> anyhow::Result<Self> {
        let (chain, genesis) = chain(node)?;
        let short = genesis.get(..8).context("a genesis hash")?;
        Ok(Self {
            version: format!("/ombra/{chain}/{genesis}"),
            key: None,
            topics: vec![format!("/ombra/{chain}/{short}/txs/1")],
            protocols: vec![format!("/ombra/{chain}/{short}/{protocol}/1")],
            is_signed: false,
        })
    }

    /// One whom nodes take for the validator with this key, on the engine's network.
    pub(crate) fn consensus(node: &Member, key: [u8; 32], protocol: &str) -> anyhow::Result<Self> {
        let (chain, genesis) = chain(node)?;
        let genesis = Hash::parse(&genesis).ok().context("a genesis hash")?;
        let digest = Hash::digest_parts(&[genesis.as_bytes(), chain.as_bytes()]).to_string();
        let short = digest.get(..16).context("a hash")?;
        Ok(Self {
            version: format!("/ombra/{short}/consensus/1"),
            key: Some(key),
            topics: ["/consensus", "/proposal_parts", "/liveness"].map(str::to_owned).to_vec(),
            // Who takes no proof of being a validator is cut off at once.
            protocols: [protocol, "validator-proof"]
                .map(|protocol| format!("/ombra/{short}/{protocol}/1"))
                .to_vec(),
            is_signed: true,
        })
    }
}

/// Name and genesis hash of a node's chain.
pub(crate) fn chain(node: &Member) -> anyhow::Result<(String, String)> {
    let info = node.call("ombra_chainInfo", &serde_json::json!([]))?;
    let text = |key: &str| info.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
    text("chainId").zip(text("genesisHash")).context("what chain it is")
}

#[derive(NetworkBehaviour)]
struct Behaviour {
    identify: identify::Behaviour,
    gossip: gossipsub::Behaviour,
    ask: request_response::Behaviour<Raw>,
}

enum Order {
    Publish(String, Vec<u8>),
    Ask(Vec<u8>),
}

#[derive(Debug, Default)]
struct Facts {
    connected: AtomicUsize,
    published: AtomicUsize,
    answered: AtomicUsize,
    failed: AtomicUsize,
    asked: AtomicUsize,
    heard: Mutex<VecDeque<Vec<u8>>>,
    /// Why it was disconnected last.
    trouble: Mutex<String>,
}

/// A running rogue.
#[derive(Debug)]
pub(crate) struct Rogue {
    facts: Arc<Facts>,
    orders: mpsc::Sender<Order>,
    _runtime: Runtime,
}

impl Rogue {
    /// Starts it and has it dial these addresses.
    pub(crate) fn start(plan: Plan, dial: &[String]) -> anyhow::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let guard = runtime.enter();
        let swarm = swarm(&plan)?;
        let dial = dial.iter().map(|address| Ok(address.parse()?));
        let dial: Vec<Multiaddr> = dial.collect::<anyhow::Result<_>>()?;
        drop(guard);
        let (orders, queue) = mpsc::channel(ORDERS_MAX);
        let facts = Arc::<Facts>::default();
        runtime.spawn(run(swarm, dial, queue, Arc::clone(&facts)));
        Ok(Self { facts, orders, _runtime: runtime })
    }

    /// Publishes bytes, which fails quietly while nobody listens.
    pub(crate) fn publish(&self, topic: &str, bytes: Vec<u8>) {
        // When it has ended there is nothing to publish.
        drop(self.orders.blocking_send(Order::Publish(topic.to_owned(), bytes)));
    }

    /// Asks every connected peer.
    pub(crate) fn ask(&self, bytes: Vec<u8>) {
        drop(self.orders.blocking_send(Order::Ask(bytes)));
    }

    /// Peers that it is connected to.
    pub(crate) fn connected(&self) -> usize {
        self.facts.connected.load(Ordering::Relaxed)
    }

    /// Waits until it is connected.
    pub(crate) fn connects(&self) -> anyhow::Result<()> {
        let connected = tests::node::wait_for("a connection of the rogue", || {
            Ok((self.connected() > 0).then_some(()))
        });
        connected.with_context(|| self.trouble())
    }

    /// Why it was disconnected last.
    pub(crate) fn trouble(&self) -> String {
        lock(&self.facts.trouble).clone()
    }

    /// Messages that went out.
    pub(crate) fn published(&self) -> usize {
        self.facts.published.load(Ordering::Relaxed)
    }

    /// Own questions that were answered, and those that were not.
    pub(crate) fn answers(&self) -> (usize, usize) {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (load(&self.facts.answered), load(&self.facts.failed))
    }

    /// Questions of others, which it never answers.
    pub(crate) fn asked(&self) -> usize {
        self.facts.asked.load(Ordering::Relaxed)
    }

    /// The messages of others that it has heard, the latest last.
    pub(crate) fn heard(&self) -> Vec<Vec<u8>> {
        lock(&self.facts.heard).iter().cloned().collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn swarm(plan: &Plan) -> anyhow::Result<Swarm<Behaviour>> {
    let key = match plan.key {
        Some(seed) => Keypair::ed25519_from_bytes(seed)?,
        None => Keypair::generate_ed25519(),
    };
    // A new name for each message, or it would not send one twice.
    let count = AtomicU64::new(0);
    let validation = if plan.is_signed { ValidationMode::None } else { ValidationMode::Anonymous };
    let settings = gossipsub::ConfigBuilder::default()
        .validation_mode(validation)
        .max_transmit_size(MESSAGE_BYTES_MAX)
        .flood_publish(true)
        .message_id_fn(move |_| {
            MessageId::from(count.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec())
        })
        .build()?;
    let author = if plan.is_signed {
        MessageAuthenticity::Signed(key.clone())
    } else {
        MessageAuthenticity::Anonymous
    };
    let mut gossip = gossipsub::Behaviour::new(author, settings).map_err(anyhow::Error::msg)?;
    for topic in &plan.topics {
        gossip.subscribe(&IdentTopic::new(topic.as_str()))?;
    }
    let protocols = plan
        .protocols
        .iter()
        .map(|name| Ok((StreamProtocol::try_from_owned(name.clone())?, ProtocolSupport::Full)));
    let ask = request_response::Behaviour::with_codec(
        Raw,
        protocols.collect::<anyhow::Result<Vec<_>>>()?,
        request_response::Config::default().with_request_timeout(Duration::from_secs(20)),
    );
    let version = plan.version.clone();
    let swarm = SwarmBuilder::with_existing_identity(key)
        .with_tokio()
        .with_tcp(tcp::Config::default(), noise::Config::new, yamux::Config::default)?
        .with_behaviour(|key| {
            let identify = identify::Config::new_with_signed_peer_record(version, key);
            Behaviour { identify: identify::Behaviour::new(identify), gossip, ask }
        })?
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(600)))
        .build();
    Ok(swarm)
}

async fn run(
    mut swarm: Swarm<Behaviour>,
    dial: Vec<Multiaddr>,
    mut orders: mpsc::Receiver<Order>,
    facts: Arc<Facts>,
) {
    let mut beat = tokio::time::interval(BEAT);
    // Questions of others are kept open and never answered.
    let mut unanswered = VecDeque::new();
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => obey(&mut swarm, order, &facts),
                None => return,
            },
            _ = beat.tick() => if swarm.connected_peers().next().is_none() {
                for address in &dial {
                    // Who cannot dial now tries again with the next beat.
                    drop(swarm.dial(address.clone()));
                }
            },
            event = swarm.select_next_some() => {
                let connected = swarm.connected_peers().count();
                facts.connected.store(connected, Ordering::Relaxed);
                if let SwarmEvent::ConnectionClosed { cause, .. } = &event {
                    *lock(&facts.trouble) = format!("closed: {cause:?}");
                }
                if let SwarmEvent::OutgoingConnectionError { error, .. } = &event {
                    *lock(&facts.trouble) = error.to_string();
                }
                if let SwarmEvent::Behaviour(event) = event {
                    unanswered.extend(note(event, &facts));
                }
                unanswered.truncate(HEARD_MAX);
            }
        }
    }
}

fn obey(swarm: &mut Swarm<Behaviour>, order: Order, facts: &Facts) {
    match order {
        Order::Publish(topic, bytes) => {
            let sent = swarm.behaviour_mut().gossip.publish(IdentTopic::new(topic), bytes);
            facts.published.fetch_add(usize::from(sent.is_ok()), Ordering::Relaxed);
        }
        Order::Ask(bytes) => {
            let peers: Vec<PeerId> = swarm.connected_peers().copied().collect();
            for peer in peers {
                swarm.behaviour_mut().ask.send_request(&peer, bytes.clone());
            }
        }
    }
}

/// Notes what happened; answers the door of a question that somebody asks.
fn note(
    event: BehaviourEvent,
    facts: &Facts,
) -> Option<request_response::ResponseChannel<Vec<u8>>> {
    match event {
        BehaviourEvent::Gossip(gossipsub::Event::Message { message, .. }) => {
            let mut heard = lock(&facts.heard);
            if heard.len() >= HEARD_MAX {
                heard.pop_front();
            }
            heard.push_back(message.data);
        }
        BehaviourEvent::Ask(request_response::Event::Message { message, .. }) => match message {
            Message::Request { channel, .. } => {
                facts.asked.fetch_add(1, Ordering::Relaxed);
                return Some(channel);
            }
            Message::Response { .. } => {
                facts.answered.fetch_add(1, Ordering::Relaxed);
            }
        },
        BehaviourEvent::Ask(request_response::Event::OutboundFailure { .. }) => {
            facts.failed.fetch_add(1, Ordering::Relaxed);
        }
        BehaviourEvent::Gossip(_) | BehaviourEvent::Ask(_) | BehaviourEvent::Identify(_) => {}
    }
    None
}

/// Any bytes.
#[derive(Clone, Copy, Debug)]
struct Raw;

async fn read<T: AsyncRead + Unpin + Send>(io: &mut T) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[async_trait]
impl request_response::Codec for Raw {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        read(io).await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        read(io).await
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
