//! The task that owns the swarm: one loop, nothing in it waits. It passes each event on to the part
//! of the network that it is for.

use std::time::{Duration, Instant};

use libp2p::swarm::SwarmEvent;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::accounting::{Accounting, score_overdrawn};
use crate::behaviour::BehaviourEvent;
use crate::command::Command;
use crate::connections::Connections;
use crate::exchange::Exchange;
use crate::gossip::Gossip;
use crate::intake::Judged;
use crate::pool_requests::PoolRequests;
use crate::pull::Extent;
use crate::pull_queue::PullQueue;
use crate::sync::SyncRequests;
use crate::{NetworkFault, SignedTx};

/// How often is looked what time has brought.
const TICK: Duration = Duration::from_millis(250);
/// Announcements that are published together.
const ANNOUNCED_MAX: usize = 512;

/// What reaches the loop from other tasks.
pub(crate) struct Inbox {
    pub(crate) announcements: mpsc::Receiver<SignedTx>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) judged: mpsc::Receiver<Judged>,
}

/// The parts of the network.
pub(crate) struct Service {
    pub(crate) connections: Connections,
    pub(crate) exchange: Exchange,
    pub(crate) gossip: Gossip,
    pub(crate) accounting: Accounting,
    pub(crate) pulls: PullQueue,
    pub(crate) pool: PoolRequests,
    pub(crate) sync: SyncRequests,
}

impl Service {
    /// Serves until asked to stop.
    pub(crate) async fn run(
        mut self,
        inbox: Inbox,
        stop: CancellationToken,
    ) -> Result<(), NetworkFault> {
        let Inbox { mut announcements, mut commands, mut judged } = inbox;
        let mut announced = Vec::with_capacity(ANNOUNCED_MAX);
        let mut tick = tokio::time::interval(TICK);
        loop {
            let has_announcers = !announcements.is_closed();
            // No order: each source gets its turn however busy the others are.
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                event = self.connections.next_event() => self.on_event(event)?,
                Some(judged) = judged.recv() => {
                    self.gossip.on_judged(judged, &mut self.accounting, &mut self.connections);
                }
                _ = announcements.recv_many(&mut announced, ANNOUNCED_MAX), if has_announcers => {
                    self.gossip.publish(std::mem::take(&mut announced), &mut self.connections);
                }
                Some(command) = commands.recv() => self.on_command(command),
                _ = tick.tick() => self.on_tick(Instant::now()),
            }
        }
    }

    fn on_event(&mut self, event: SwarmEvent<BehaviourEvent>) -> Result<(), NetworkFault> {
        if let SwarmEvent::Behaviour(event) = event {
            self.on_behaviour(event);
            return Ok(());
        }
        self.connections.on_event(event)
    }

    fn on_behaviour(&mut self, event: BehaviourEvent) {
        let Self { connections, exchange, gossip, accounting, pulls, pool, sync } = self;
        match event {
            BehaviourEvent::Identify(event) => {
                let Some(peer) = connections.on_identify(event) else { return };
                sync.ask_status(peer, connections);
                pulls.pull(peer, Extent::Whole, accounting, connections);
                exchange.ask(peer, connections);
                connections.show();
            }
            BehaviourEvent::Ping(event) => connections.on_ping(&event),
            BehaviourEvent::Gossip(event) => gossip.on_event(event, accounting, connections),
            BehaviourEvent::Pool(event) => pool.on_event(event, connections),
            BehaviourEvent::Exchange(event) => exchange.on_event(event, connections),
            BehaviourEvent::Sync(event) => sync.on_event(event, connections),
            BehaviourEvent::Blocked(never) | BehaviourEvent::Limits(never) => match never {},
        }
    }

    fn on_tick(&mut self, now: Instant) {
        let Self { connections, exchange, gossip, accounting, pulls, pool: _, sync } = self;
        connections.expire(now);
        score_overdrawn(now, connections);
        connections.keep_offenders_out();
        connections.dial_targets(now);
        pulls.on_tick(now, accounting, connections);
        if let Some(peer) = gossip.make_up(now, accounting, connections) {
            pulls.pull(peer, Extent::Part, accounting, connections);
        }
        sync.on_tick(now, connections);
        exchange.on_tick(now, connections);
        gossip.age(now);
        connections.show();
    }

    /// What other tasks and the operator ask.
    fn on_command(&mut self, command: Command) {
        let now = Instant::now();
        let Self { connections, accounting, pool, sync, exchange: _, gossip: _, pulls: _ } = self;
        match command {
            Command::Add(address) => connections.add(address, now),
            Command::Remove(whom) => connections.remove(&whom),
            Command::Ban(peer, time) => connections.ban(peer, time, now),
            Command::Unban(peer) => connections.unban(peer),
            Command::Ask { peer, question, answer } => {
                pool.ask(&peer, question, answer, connections);
            }
            Command::Answer { id, channel, answer } => {
                pool.answer(&id, channel, answer, connections);
            }
            Command::AskSync { peer, question, answer } => {
                sync.ask_for_other(peer, question, answer, connections);
            }
            Command::AnswerSync { id, channel, answer } => {
                sync.answer(&id, channel, answer, connections);
            }
            Command::Settle { peer, worth } => accounting.settle(peer, worth, connections),
            Command::Offence { peer, what } => connections.keep_out(peer, &what),
            Command::Height { peer, height } => {
                if let Some(peer) = connections.peer_mut(&peer) {
                    peer.height = Some(height);
                }
            }
        }
    }
}
