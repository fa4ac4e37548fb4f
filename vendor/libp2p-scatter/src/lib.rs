use std::fmt;
use std::task::{Context, Poll};

use bytes::Bytes;
use fnv::{FnvHashMap, FnvHashSet};
use libp2p::swarm::derive_prelude::FromSwarm;
use libp2p::swarm::{
    CloseConnection, ConnectionHandler, ConnectionId, NetworkBehaviour, NotifyHandler,
    OneShotHandler, OneShotHandlerConfig, SubstreamProtocol, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};
use prometheus_client::registry::Registry;

use crate::events::Events;

mod events;
mod length_prefixed;
mod metrics;
mod protocol;

pub use metrics::Metrics;
pub use protocol::{Config, Message, Topic};

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    Subscribed(PeerId, Topic),
    Unsubscribed(PeerId, Topic),
    Received(PeerId, Topic, Bytes),
}

type Handler = OneShotHandler<Config, Message, HandlerEvent>;

#[derive(Default)]
pub struct Behaviour {
    config: Config,
    subscriptions: FnvHashSet<Topic>,
    peers: FnvHashMap<PeerId, FnvHashSet<Topic>>,
    topics: FnvHashMap<Topic, FnvHashSet<PeerId>>,
    events: Events,
    metrics: Option<Metrics>,
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Behaviour")
            .field("config", &self.config)
            .field("subscriptions", &self.subscriptions)
            .field("peers", &self.peers)
            .field("topics", &self.topics)
            .finish()
    }
}

impl Behaviour {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            ..Default::default()
        }
    }

    pub fn new_with_metrics(config: Config, registry: &mut Registry) -> Self {
        Self {
            config,
            metrics: Some(Metrics::new(registry)),
            ..Default::default()
        }
    }

    pub fn subscribed(&self) -> impl Iterator<Item = &Topic> + '_ {
        self.subscriptions.iter()
    }

    pub fn peers(&self, topic: &Topic) -> Option<impl Iterator<Item = &PeerId> + '_> {
        self.topics.get(topic).map(|peers| peers.iter())
    }

    pub fn topics(&self, peer: &PeerId) -> Option<impl Iterator<Item = &Topic> + '_> {
        self.peers.get(peer).map(|topics| topics.iter())
    }

    pub fn subscribe(&mut self, topic: Topic) {
        self.subscriptions.insert(topic);
        let msg = Message::Subscribe(topic);
        for peer in self.peers.keys() {
            self.events.push(ToSwarm::NotifyHandler {
                peer_id: *peer,
                event: msg.clone(),
                handler: NotifyHandler::Any,
            });
        }

        if let Some(metrics) = &mut self.metrics {
            metrics.subscribe(&topic);
        }
    }

    pub fn unsubscribe(&mut self, topic: &Topic) {
        self.subscriptions.remove(topic);
        let msg = Message::Unsubscribe(*topic);
        if let Some(peers) = self.topics.get(topic) {
            for peer in peers {
                self.events.push(ToSwarm::NotifyHandler {
                    peer_id: *peer,
                    event: msg.clone(),
                    handler: NotifyHandler::Any,
                });
            }
        }

        if let Some(metrics) = &mut self.metrics {
            metrics.unsubscribe(topic);
        }
    }

    pub fn broadcast(&mut self, topic: &Topic, msg: Bytes) {
        let msg = Message::Broadcast(*topic, msg);
        if let Some(peers) = self.topics.get(topic) {
            for peer in peers {
                self.events.push(ToSwarm::NotifyHandler {
                    peer_id: *peer,
                    event: msg.clone(),
                    handler: NotifyHandler::Any,
                });
            }
        }

        if let Some(metrics) = &mut self.metrics {
            metrics.msg_sent(topic, msg.len());
            metrics.register_published_message(topic);
        }
    }

    /// A handler that takes no message longer than the configuration says.
    fn handler(&self) -> Handler {
        Handler::new(
            SubstreamProtocol::new(self.config.clone(), ()),
            OneShotHandlerConfig::default(),
        )
    }

    fn inject_connected(&mut self, peer: &PeerId) {
        self.peers.insert(*peer, FnvHashSet::default());
        for topic in &self.subscriptions {
            self.events.push(ToSwarm::NotifyHandler {
                peer_id: *peer,
                event: Message::Subscribe(*topic),
                handler: NotifyHandler::Any,
            });
        }
    }

    fn inject_disconnected(&mut self, peer: &PeerId) {
        if let Some(topics) = self.peers.remove(peer) {
            for topic in topics {
                if let Some(peers) = self.topics.get_mut(&topic) {
                    peers.remove(peer);
                }
            }
        }
    }
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = Handler;
    type ToSwarm = Event;

    fn handle_established_inbound_connection(
        &mut self,
        _connection_id: ConnectionId,
        _peer: PeerId,
        _local_addr: &Multiaddr,
        _remote_addr: &Multiaddr,
    ) -> Result<libp2p::swarm::THandler<Self>, libp2p::swarm::ConnectionDenied> {
        Ok(self.handler())
    }

    fn handle_established_outbound_connection(
        &mut self,
        _connection_id: ConnectionId,
        _peer: PeerId,
        _addr: &Multiaddr,
        _role_override: libp2p::core::Endpoint,
        _port_use: libp2p::core::transport::PortUse,
    ) -> Result<libp2p::swarm::THandler<Self>, libp2p::swarm::ConnectionDenied> {
        Ok(self.handler())
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(c) => {
                if c.other_established == 0 {
                    self.inject_connected(&c.peer_id);
                }
            }
            FromSwarm::ConnectionClosed(c) => {
                if c.remaining_established == 0 {
                    self.inject_disconnected(&c.peer_id);
                }
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection_id: ConnectionId,
        msg: <Self::ConnectionHandler as ConnectionHandler>::ToBehaviour,
    ) {
        use HandlerEvent::*;
        use Message::*;
        let ev = match msg {
            // What this node does not want to hear of is not kept: anybody may name topics without
            // end.
            Ok(Rx(Subscribe(topic) | Unsubscribe(topic) | Broadcast(topic, _)))
                if !self.subscriptions.contains(&topic) =>
            {
                return;
            }

            Ok(Rx(Subscribe(topic))) => {
                let peers = self.topics.entry(topic).or_default();
                self.peers.entry(peer).or_default().insert(topic);
                peers.insert(peer);
                if let Some(metrics) = self.metrics.as_mut() {
                    metrics.inc_topic_peers(&topic);
                }
                Event::Subscribed(peer, topic)
            }

            Ok(Rx(Broadcast(topic, msg))) => {
                if let Some(metrics) = self.metrics.as_mut() {
                    metrics.msg_received(&topic, msg.len());
                }
                Event::Received(peer, topic, msg)
            }

            Ok(Rx(Unsubscribe(topic))) => {
                self.peers.entry(peer).or_default().remove(&topic);
                if let Some(peers) = self.topics.get_mut(&topic) {
                    peers.remove(&peer);
                }
                if let Some(metrics) = self.metrics.as_mut() {
                    metrics.dec_topic_peers(&topic);
                }
                Event::Unsubscribed(peer, topic)
            }

            Ok(Tx) => {
                return;
            }

            Err(e) => {
                tracing::debug!("Failed to broadcast message: {e}");

                self.events.push(ToSwarm::CloseConnection {
                    peer_id: peer,
                    connection: CloseConnection::One(connection_id),
                });

                return;
            }
        };
        self.events.push(ToSwarm::GenerateEvent(ev));
    }

    fn poll(&mut self, _: &mut Context) -> Poll<ToSwarm<Event, Message>> {
        if let Some(event) = self.events.pop() {
            Poll::Ready(event)
        } else {
            Poll::Pending
        }
    }
}

/// Transmission between the `OneShotHandler` and the `BroadcastHandler`.
#[derive(Debug)]
pub enum HandlerEvent {
    /// We received a `Message` from a remote.
    Rx(Message),
    /// We successfully sent a `Message`.
    Tx,
}

impl From<Message> for HandlerEvent {
    fn from(message: Message) -> Self {
        Self::Rx(message)
    }
}

impl From<()> for HandlerEvent {
    fn from(_: ()) -> Self {
        Self::Tx
    }
}
