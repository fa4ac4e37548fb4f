//! The task that owns the swarm: one loop, nothing in it waits.

mod connections;
pub(crate) mod meeting;
mod operator;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use libp2p::gossipsub::TopicHash;
use libp2p::request_response::OutboundRequestId;
use libp2p::swarm::SwarmEvent;
use libp2p::{PeerId, Swarm};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::bans::Bans;
use crate::behaviour::{Behaviour, BehaviourEvent, SCORE_MIN};
use crate::book::Book;
use crate::command::Command;
use crate::credit::Groups;
use crate::dial::Targets;
use crate::gossip::Missed;
use crate::handle::View;
use crate::intake::{Door, Judged};
use crate::peers::Peers;
use crate::places::Places;
use crate::pull::{Extent, PULL_INTERVAL};
use crate::recent::Recent;
use crate::serve::Asked;
use crate::sync::{Desk, STATUS_INTERVAL};
use crate::{Counters, Fault, Peer, PeerKey, SignedTx};

/// How often is looked what time has brought.
const TICK: Duration = Duration::from_millis(250);
/// How often more peers are looked for.
const EXCHANGE_INTERVAL: Duration = Duration::from_secs(10);
/// Announcements that are published together.
const ANNOUNCED_MAX: usize = 512;

/// What reaches the loop from other tasks.
pub(crate) struct Inbox {
    pub(crate) announcements: mpsc::Receiver<SignedTx>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) judged: mpsc::Receiver<Judged>,
}

/// The swarm and everything that is known about peers.
pub(crate) struct Service {
    pub(crate) swarm: Swarm<Behaviour>,
    pub(crate) version: String,
    pub(crate) topic: TopicHash,
    /// With fewer peers more are looked for; none if there is no exchange.
    pub(crate) peers_wanted: Option<usize>,
    /// Places for peers that come by themselves and that nobody named.
    pub(crate) inbound_max: usize,
    pub(crate) peers: Peers,
    pub(crate) targets: Targets,
    pub(crate) book: Book,
    pub(crate) bans: Bans,
    pub(crate) answers: BTreeMap<OutboundRequestId, oneshot::Sender<Option<Vec<u8>>>>,
    pub(crate) door: Door,
    pub(crate) asked: mpsc::Sender<Asked>,
    /// Questions about the pool whose answer has not left.
    pub(crate) pool_places: Places,
    /// Questions about peers whose answer has not left.
    pub(crate) exchange_places: Places,
    /// What the peers of an address group may still waste together.
    pub(crate) groups: Groups,
    pub(crate) desk: Desk,
    /// To the puller: named peers, and others.
    pub(crate) named_pulls: mpsc::Sender<(PeerId, Extent)>,
    pub(crate) pulls: mpsc::Sender<(PeerId, Extent)>,
    pub(crate) recent: Arc<Recent>,
    pub(crate) view: Arc<Mutex<View>>,
    pub(crate) counters: Counters,
    pub(crate) next_pull: Instant,
    /// Messages that were left unread.
    pub(crate) missed: Missed,
    pub(crate) next_exchange: Instant,
}

impl Service {
    /// Serves until asked to stop.
    pub(crate) async fn run(mut self, inbox: Inbox, stop: CancellationToken) -> Result<(), Fault> {
        let Inbox { mut announcements, mut commands, mut judged } = inbox;
        let mut announced = Vec::with_capacity(ANNOUNCED_MAX);
        let mut tick = tokio::time::interval(TICK);
        loop {
            let has_announcers = !announcements.is_closed();
            // No order: each source gets its turn however busy the others are.
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                event = self.swarm.select_next_some() => self.on_event(event)?,
                Some(judged) = judged.recv() => self.on_judged(judged),
                _ = announcements.recv_many(&mut announced, ANNOUNCED_MAX), if has_announcers => {
                    self.publish(std::mem::take(&mut announced));
                }
                Some(command) = commands.recv() => self.on_command(command),
                _ = tick.tick() => self.on_tick(Instant::now()),
            }
        }
    }

    fn on_event(&mut self, event: SwarmEvent<BehaviourEvent>) -> Result<(), Fault> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the library may get further events")]
        match event {
            SwarmEvent::Behaviour(event) => self.on_behaviour(event),
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
                return Err(Fault::Listener { reason: error.to_string() });
            }
            SwarmEvent::ListenerError { error, .. } => {
                tracing::warn!(%error, "a connection was not taken");
            }
            _ => {}
        }
        Ok(())
    }

    fn on_behaviour(&mut self, event: BehaviourEvent) {
        match event {
            BehaviourEvent::Identify(event) => self.on_identify(event),
            BehaviourEvent::Ping(event) => self.on_ping(&event),
            BehaviourEvent::Gossip(event) => self.on_gossip(event),
            BehaviourEvent::Pool(event) => self.on_pool(event),
            BehaviourEvent::Exchange(event) => self.on_exchange(event),
            BehaviourEvent::Sync(event) => self.on_sync(event),
            BehaviourEvent::Blocked(never)
            | BehaviourEvent::Limits(never)
            | BehaviourEvent::Addresses(never) => match never {},
        }
    }

    fn on_tick(&mut self, now: Instant) {
        for peer in self.bans.over(now) {
            self.swarm.behaviour_mut().blocked.unblock_peer(peer);
        }
        for peer in self.peers.strangers(now) {
            self.block(peer);
        }
        for peer in self.peers.silent(now) {
            tracing::info!(%peer, "disconnecting from a peer that does not say who it is");
            let _was_connected = self.swarm.disconnect_peer_id(peer);
        }
        for peer in self.peers.overdrawn() {
            self.score_credit(peer, now);
        }
        for (peer, score) in self.offenders() {
            self.keep_out(peer, &format!("its score is {score:.0}"));
        }
        self.dial_targets(now);
        if now >= self.next_pull {
            self.next_pull = now + PULL_INTERVAL;
            if let Some(peer) = self.peers.next_known() {
                self.pull(peer, Extent::Part);
            }
        }
        self.make_up(now);
        if now >= self.desk.next_status {
            self.desk.next_status = now + STATUS_INTERVAL;
            self.ask_all_status();
        }
        if now >= self.next_exchange {
            self.next_exchange = now + EXCHANGE_INTERVAL;
            self.look_for_peers(now);
        }
        self.recent.age(now);
        self.show();
    }

    /// Peers whose score fell too far.
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
        let time = self.bans.offend(peer, Instant::now());
        self.counters.bans.inc();
        tracing::warn!(%peer, seconds = time.as_secs(), "keeping a peer out: {why}");
        self.block(peer);
    }

    pub(crate) fn block(&mut self, peer: PeerId) {
        self.book.forget(&peer);
        let _is_new = self.swarm.behaviour_mut().blocked.block_peer(peer);
    }

    /// Has the puller pull from a peer, unless all that it brings is for nothing.
    pub(crate) fn pull(&mut self, peer: PeerId, extent: Extent) {
        if !self.has_credit(&peer) {
            return;
        }
        let is_named = self.targets.names(&peer);
        let pulls = if is_named { &self.named_pulls } else { &self.pulls };
        // Without room others are being pulled from, and the next turn comes.
        let _queued = pulls.try_send((peer, extent));
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
