//! A peer that speaks the nodes' protocols and sends whatever bytes a test wants it to.

mod raw;
mod relay;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::breakpoint::lock;
use crate::net::{Member, Network};
use anyhow::Context as _;
use futures::StreamExt as _;
use libp2p::gossipsub::{self, IdentTopic, MessageAuthenticity, MessageId, ValidationMode};
use libp2p::identity::Keypair;
use libp2p::request_response::{self, Message, OutboundFailure, ProtocolSupport, ResponseChannel};
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::{NetworkBehaviour, SwarmEvent};
use libp2p::{Multiaddr, PeerId, StreamProtocol, Swarm, SwarmBuilder, identify, noise, tcp, yamux};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use types::{Hash, Signature, Transaction};

pub use raw::Question;
use raw::Raw;

/// Orders that may wait.
const ORDERS_MAX: usize = 256;
/// Messages of others that are kept.
const HEARD_MAX: usize = 256;
/// Answers of others that are kept.
const ANSWERS_MAX: usize = 16;
/// How often one who is not connected dials.
const BEAT: Duration = Duration::from_millis(500);
/// On this the engine's nodes tell each other how far they are. Who does not speak it is cut off
/// as soon as a node has told it that it wants to hear of that, which it does first of all.
pub const BROADCAST: &str = "/ax/broadcast/1.0.0";
/// The end of the name of the protocol on which validators say who they are.
pub const PROOF: &str = "validator-proof";
/// Largest message that it lets itself send.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a rogue is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it says first: the network that it is of. None if it never says who it is, and does not speak
    /// the Identify protocol.
    pub version: Option<String>,
    /// The seed of its key; a new one if there is none.
    pub key: Option<[u8; 32]>,
    /// What it publishes on.
    pub topics: Vec<String>,
    /// What it is asked; it asks the first.
    pub protocols: Vec<String>,
    /// Whether its messages carry its name and signature.
    pub is_signed: bool,
    /// Whether it leaves the answers to its questions unread.
    pub is_deaf: bool,
    /// The address that it comes from, such as `127.0.5.1`; whichever the system gives if there is
    /// none.
    pub from: Option<String>,
}

impl Plan {
    /// A stranger on a node's network for transactions that speaks one of its protocols.
    pub fn gossip(node: &Member, protocol: &str) -> anyhow::Result<Self> {
        let (chain, genesis) = chain(node)?;
        let short = genesis.get(..8).context("a genesis hash")?;
        Ok(Self {
            version: Some(format!("/ombra/{chain}/{genesis}")),
            key: None,
            topics: vec![format!("/ombra/{chain}/{short}/txs/1")],
            protocols: vec![format!("/ombra/{chain}/{short}/{protocol}/1")],
            is_signed: false,
            is_deaf: false,
            from: None,
        })
    }

    /// One whom nodes take for the node with this key, on the engine's network. It asks on
    /// `protocol`, which is [`BROADCAST`], `sync` or [`PROOF`].
    pub fn consensus(node: &Member, key: [u8; 32], protocol: &str) -> anyhow::Result<Self> {
        let (chain, genesis) = chain(node)?;
        let genesis = Hash::parse(&genesis).ok().context("a genesis hash")?;
        let digest = Hash::digest_parts(&[genesis.as_bytes(), chain.as_bytes()]).to_string();
        let short = digest.get(..16).context("a hash")?;
        let name = |protocol: &str| match protocol {
            BROADCAST => BROADCAST.to_owned(),
            "consensus" => format!("/ombra/{short}/consensus/2"),
            protocol => format!("/ombra/{short}/{protocol}/1"),
        };
        let others = [BROADCAST, "sync", PROOF].into_iter().filter(|other| *other != protocol);
        Ok(Self {
            version: Some(name("consensus")),
            key: Some(key),
            topics: ["/consensus", "/proposal_parts", "/liveness"].map(str::to_owned).to_vec(),
            protocols: std::iter::once(protocol).chain(others).map(name).collect(),
            is_signed: true,
            is_deaf: false,
            from: None,
        })
    }

    /// The same, but it leaves the answers to its questions unread.
    #[must_use]
    pub fn deaf(self) -> Self {
        Self { is_deaf: true, ..self }
    }

    /// A stranger on the engine's network that never says who it is, and asks for blocks.
    pub fn nameless(node: &Member) -> anyhow::Result<Self> {
        let named = Self::consensus(node, [0; 32], "sync")?;
        Ok(Self { key: None, version: None, ..named })
    }

    /// The same from this address.
    #[must_use]
    pub fn coming_from(self, address: &str) -> Self {
        Self { from: Some(address.to_owned()), ..self }
    }

    /// The same, but it neither publishes nor hears anything.
    pub fn without_topics(self) -> Self {
        Self { topics: Vec::new(), ..self }
    }
}

/// Name and genesis hash of a node's chain.
pub fn chain(node: &Member) -> anyhow::Result<(String, String)> {
    let info = node.call("ombra_chainInfo", &serde_json::json!([]))?;
    let text = |key: &str| info.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
    text("chainId").zip(text("genesisHash")).context("what chain it is")
}

#[derive(NetworkBehaviour)]
struct Behaviour {
    identify: Toggle<identify::Behaviour>,
    gossip: gossipsub::Behaviour,
    ask: request_response::Behaviour<Raw>,
}

enum Order {
    /// Told whether it goes out.
    Publish(String, Vec<u8>, oneshot::Sender<bool>),
    /// Told how many are asked.
    Ask(Vec<u8>, oneshot::Sender<usize>),
    HangUp,
}

/// What it answers to a question of another; none if it does not.
pub type Answer = Box<dyn FnMut(&Question) -> Option<Vec<u8>> + Send>;

#[derive(Debug, Default)]
struct Facts {
    connected: AtomicUsize,
    /// Connections so far.
    dialled: AtomicUsize,
    published: AtomicUsize,
    answered: AtomicUsize,
    failed: AtomicUsize,
    undelivered: AtomicUsize,
    /// Questions of others by protocol.
    asked: Mutex<BTreeMap<String, usize>>,
    answers: Mutex<VecDeque<Vec<u8>>>,
    heard: Mutex<VecDeque<Vec<u8>>>,
    /// What went wrong last: why it was disconnected, or a message did not go out.
    trouble: Mutex<String>,
}

/// A running rogue.
#[derive(Debug)]
pub struct Rogue {
    facts: Arc<Facts>,
    orders: mpsc::Sender<Order>,
    _runtime: Runtime,
}

impl Rogue {
    /// Starts it and has it dial these addresses. It answers nothing.
    pub fn start(plan: Plan, dial: &[String]) -> anyhow::Result<Self> {
        Self::start_with(plan, dial, Box::new(|_| None))
    }

    /// The same with answers to the questions of others.
    pub fn start_with(plan: Plan, dial: &[String], answer: Answer) -> anyhow::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let guard = runtime.enter();
        let swarm = swarm(&plan)?;
        let dial = dial.iter().map(|address| match &plan.from {
            None => Ok(address.parse()?),
            Some(from) => relay::to(address, from),
        });
        let dial: Vec<Multiaddr> = dial.collect::<anyhow::Result<_>>()?;
        drop(guard);
        let (orders, queue) = mpsc::channel(ORDERS_MAX);
        let facts = Arc::<Facts>::default();
        let own = Own { facts: Arc::clone(&facts), answer, unanswered: VecDeque::new() };
        runtime.spawn(run(swarm, dial, queue, own));
        Ok(Self { facts, orders, _runtime: runtime })
    }

    /// One that publishes where a node hears of transactions, and the topic there.
    pub fn publisher(node: &Member) -> anyhow::Result<(Self, String)> {
        let plan = Plan::gossip(node, "pool")?;
        let topic = plan.topics.first().context("a topic")?.clone();
        Ok((Self::start(plan, &[node.p2p_address(Network::Gossip)])?, topic))
    }

    /// Publishes bytes; answers whether they went out, which they do not while nobody listens.
    pub fn publish(&self, topic: &str, bytes: Vec<u8>) -> bool {
        let (told, answer) = oneshot::channel();
        // When it has ended there is nothing to publish, and nothing is told.
        drop(self.orders.blocking_send(Order::Publish(topic.to_owned(), bytes, told)));
        answer.blocking_recv().unwrap_or_default()
    }

    /// Asks every connected peer; answers how many.
    pub fn ask(&self, bytes: Vec<u8>) -> usize {
        let (told, answer) = oneshot::channel();
        drop(self.orders.blocking_send(Order::Ask(bytes, told)));
        answer.blocking_recv().unwrap_or_default()
    }

    /// Closes all connections, and waits until it is connected again.
    pub fn dials_again(&self) -> anyhow::Result<()> {
        let before = self.facts.dialled.load(Ordering::Relaxed);
        drop(self.orders.blocking_send(Order::HangUp));
        let again = crate::node::wait_until("a new connection of the rogue", || {
            Ok(self.facts.dialled.load(Ordering::Relaxed) > before)
        });
        again.with_context(|| self.trouble())
    }

    /// Peers that it is connected to.
    pub fn connected(&self) -> usize {
        self.facts.connected.load(Ordering::Relaxed)
    }

    /// Connections so far.
    pub fn dialled(&self) -> usize {
        self.facts.dialled.load(Ordering::Relaxed)
    }

    /// Waits until it is connected.
    pub fn connects(&self) -> anyhow::Result<()> {
        let connected =
            crate::node::wait_until("a connection of the rogue", || Ok(self.connected() > 0));
        connected.with_context(|| self.trouble())
    }

    /// What went wrong last: why it was disconnected, or a message did not go out.
    pub fn trouble(&self) -> String {
        lock(&self.facts.trouble).clone()
    }

    /// Messages that went out.
    pub fn published(&self) -> usize {
        self.facts.published.load(Ordering::Relaxed)
    }

    /// Own questions that were answered, and those that were not.
    pub fn answers(&self) -> (usize, usize) {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (load(&self.facts.answered), load(&self.facts.failed))
    }

    /// Own questions that never left, because the other does not speak the protocol or is gone.
    pub fn undelivered(&self) -> usize {
        self.facts.undelivered.load(Ordering::Relaxed)
    }

    /// The answers to own questions, the latest last.
    pub fn answer_bytes(&self) -> Vec<Vec<u8>> {
        lock(&self.facts.answers).iter().cloned().collect()
    }

    /// Questions of others on the protocols whose names contain this.
    pub fn asked(&self, protocol: &str) -> usize {
        let asked = lock(&self.facts.asked);
        asked.iter().filter(|(name, _)| name.contains(protocol)).map(|(_, count)| count).sum()
    }

    /// The messages of others that it has heard, the latest last.
    pub fn heard(&self) -> Vec<Vec<u8>> {
        lock(&self.facts.heard).iter().cloned().collect()
    }
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
        // Nobody knows its messages by these names, so whoever were told of one would ask for it in
        // vain, and would keep it out for a promise that it broke.
        .gossip_lazy(0)
        .gossip_factor(0.0)
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
        Raw { is_deaf: plan.is_deaf },
        protocols.collect::<anyhow::Result<Vec<_>>>()?,
        request_response::Config::default().with_request_timeout(Duration::from_secs(20)),
    );
    let version = plan.version.clone();
    let swarm = SwarmBuilder::with_existing_identity(key)
        .with_tokio()
        .with_tcp(tcp::Config::default(), noise::Config::new, yamux::Config::default)?
        .with_behaviour(|key| {
            let identify = version.map(|version| {
                let config = identify::Config::new_with_signed_peer_record(version, key);
                identify::Behaviour::new(config)
            });
            Behaviour { identify: identify.into(), gossip, ask }
        })?
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(600)))
        .build();
    Ok(swarm)
}

/// What the task of a rogue has of its own.
struct Own {
    facts: Arc<Facts>,
    answer: Answer,
    /// Questions of others are kept open and never answered.
    unanswered: VecDeque<ResponseChannel<Vec<u8>>>,
}

async fn run(
    mut swarm: Swarm<Behaviour>,
    dial: Vec<Multiaddr>,
    mut orders: mpsc::Receiver<Order>,
    mut own: Own,
) {
    let mut beat = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => obey(&mut swarm, order, &own.facts),
                None => return,
            },
            _ = beat.tick() => if swarm.connected_peers().next().is_none() {
                for address in &dial {
                    // Who cannot dial now tries again with the next beat.
                    drop(swarm.dial(address.clone()));
                }
            },
            event = swarm.select_next_some() => {
                let facts = &own.facts;
                let connected = swarm.connected_peers().count();
                facts.connected.store(connected, Ordering::Relaxed);
                if let SwarmEvent::ConnectionEstablished { .. } = &event {
                    facts.dialled.fetch_add(1, Ordering::Relaxed);
                }
                if let SwarmEvent::ConnectionClosed { cause, .. } = &event {
                    *lock(&facts.trouble) = format!("closed: {cause:?}");
                }
                if let SwarmEvent::OutgoingConnectionError { error, .. } = &event {
                    *lock(&facts.trouble) = error.to_string();
                }
                if let SwarmEvent::Behaviour(event) = event {
                    own.note(event, &mut swarm);
                }
            }
        }
    }
}

fn obey(swarm: &mut Swarm<Behaviour>, order: Order, facts: &Facts) {
    match order {
        Order::Publish(topic, bytes, told) => {
            let sent = swarm.behaviour_mut().gossip.publish(IdentTopic::new(topic), bytes);
            facts.published.fetch_add(usize::from(sent.is_ok()), Ordering::Relaxed);
            if let Err(error) = &sent {
                *lock(&facts.trouble) = format!("not published: {error}");
            }
            // Whoever ordered it may be gone.
            let _told = told.send(sent.is_ok());
        }
        Order::Ask(bytes, told) => {
            let peers: Vec<PeerId> = swarm.connected_peers().copied().collect();
            for peer in &peers {
                let question = Question { protocol: String::new(), bytes: bytes.clone() };
                swarm.behaviour_mut().ask.send_request(peer, question);
            }
            let _told = told.send(peers.len());
        }
        Order::HangUp => {
            let peers: Vec<PeerId> = swarm.connected_peers().copied().collect();
            for peer in peers {
                // Fails if it is gone already.
                let _closed = swarm.disconnect_peer_id(peer);
            }
        }
    }
}

impl Own {
    fn note(&mut self, event: BehaviourEvent, swarm: &mut Swarm<Behaviour>) {
        let facts = &self.facts;
        match event {
            BehaviourEvent::Gossip(gossipsub::Event::Message { message, .. }) => {
                keep(&facts.heard, message.data, HEARD_MAX);
            }
            BehaviourEvent::Ask(request_response::Event::Message { message, .. }) => {
                match message {
                    Message::Request { request, channel, .. } => {
                        self.answer(&request, channel, swarm);
                    }
                    Message::Response { response, .. } => {
                        facts.answered.fetch_add(1, Ordering::Relaxed);
                        keep(&facts.answers, response, ANSWERS_MAX);
                    }
                }
            }
            BehaviourEvent::Ask(request_response::Event::OutboundFailure { error, .. }) => {
                let count = match error {
                    OutboundFailure::UnsupportedProtocols | OutboundFailure::DialFailure => {
                        &facts.undelivered
                    }
                    OutboundFailure::Timeout
                    | OutboundFailure::ConnectionClosed
                    | OutboundFailure::Io(_) => &facts.failed,
                };
                count.fetch_add(1, Ordering::Relaxed);
            }
            BehaviourEvent::Gossip(_) | BehaviourEvent::Ask(_) | BehaviourEvent::Identify(_) => {}
        }
    }

    fn answer(
        &mut self,
        question: &Question,
        channel: ResponseChannel<Vec<u8>>,
        swarm: &mut Swarm<Behaviour>,
    ) {
        *lock(&self.facts.asked).entry(question.protocol.clone()).or_default() += 1;
        // To these no answer is expected.
        let is_told = question.protocol == BROADCAST || question.protocol.contains(PROOF);
        match (self.answer)(question).or_else(|| is_told.then(Vec::new)) {
            // Fails if the other is gone, and then nobody wants it.
            Some(answer) => drop(swarm.behaviour_mut().ask.send_response(channel, answer)),
            None => self.unanswered.push_back(channel),
        }
        if self.unanswered.len() > HEARD_MAX {
            self.unanswered.pop_front();
        }
    }
}

fn keep(list: &Mutex<VecDeque<Vec<u8>>>, bytes: Vec<u8>, max: usize) {
    let mut list = lock(list);
    if list.len() >= max {
        list.pop_front();
    }
    list.push_back(bytes);
}

/// A transaction with this signature, as it travels between nodes.
#[must_use]
pub fn packed(tx: &Transaction, signature: &Signature) -> Vec<u8> {
    let payload = tx.payload().as_bytes();
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&length[..], payload, signature.as_bytes()].concat()
}
