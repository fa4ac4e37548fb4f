//! What waits for the swarm, within bounds. While the swarm waits for one peer to take something, it
//! goes on to hear from the others, and what it hears waits here.
//!
//! When there is too much, whoever has most of it is cut off: its events go, and its connections are
//! closed. What others sent, or are to be sent, stays.

use std::collections::VecDeque;

use fnv::FnvHashMap;
use libp2p::swarm::{CloseConnection, ToSwarm};
use libp2p::PeerId;

use crate::protocol::Message;
use crate::Event;

/// The most events. Peers send each other a message a second, so this is a minute of sixty peers.
pub(crate) const EVENTS_MAX: usize = 4_096;
/// The most bytes of messages in them.
pub(crate) const BYTES_MAX: usize = 8 * 1024 * 1024;
/// What an event weighs beside its message, in bytes.
const EVENT_BYTES: usize = BYTES_MAX / EVENTS_MAX;

type Waiting = ToSwarm<Event, Message>;

#[derive(Default)]
pub(crate) struct Events {
    waiting: VecDeque<Waiting>,
    weight: usize,
}

impl Events {
    pub(crate) fn push(&mut self, event: Waiting) {
        self.weight += weight(&event);
        self.waiting.push_back(event);
        while self.weight > BYTES_MAX {
            let Some(peer) = self.heaviest() else { return };
            self.cut_off(peer);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let event = self.waiting.pop_front()?;
        self.weight -= weight(&event);
        Some(event)
    }

    /// Who has most of what waits, among those that are not being cut off already.
    fn heaviest(&self) -> Option<PeerId> {
        let mut peers: FnvHashMap<PeerId, usize> = FnvHashMap::default();
        for event in &self.waiting {
            if let (Some(peer), false) = (peer(event), is_end(event)) {
                *peers.entry(peer).or_default() += weight(event);
            }
        }
        let heaviest = peers.into_iter().max_by_key(|(_, weight)| *weight);
        heaviest.map(|(peer, _)| peer)
    }

    fn cut_off(&mut self, gone: PeerId) {
        tracing::debug!(peer = %gone, "cutting off a peer with too many messages");
        self.waiting.retain(|event| peer(event) != Some(gone));
        self.waiting.push_back(ToSwarm::CloseConnection {
            peer_id: gone,
            connection: CloseConnection::All,
        });
        self.weight = self.waiting.iter().map(weight).sum();
    }
}

fn is_end(event: &Waiting) -> bool {
    matches!(event, ToSwarm::CloseConnection { .. })
}

/// Whom an event is about.
fn peer(event: &Waiting) -> Option<PeerId> {
    match event {
        ToSwarm::GenerateEvent(
            Event::Subscribed(peer, _) | Event::Unsubscribed(peer, _) | Event::Received(peer, _, _),
        ) => Some(*peer),
        ToSwarm::NotifyHandler { peer_id, .. } | ToSwarm::CloseConnection { peer_id, .. } => {
            Some(*peer_id)
        }
        _ => None,
    }
}

fn weight(event: &Waiting) -> usize {
    let bytes = match event {
        ToSwarm::GenerateEvent(Event::Received(_, _, message)) => message.len(),
        ToSwarm::NotifyHandler { event, .. } => event.len(),
        // Closing a connection makes room, and there are few of them.
        ToSwarm::CloseConnection { .. } => return 0,
        _ => 0,
    };
    bytes + EVENT_BYTES
}
