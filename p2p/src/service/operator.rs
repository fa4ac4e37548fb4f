//! What other tasks and the operator ask.

use std::time::Instant;

use super::Service;
use crate::command::{Command, Whom};
use crate::dial::peer_of;
use crate::sync::Expected;

impl Service {
    pub(super) fn on_command(&mut self, command: Command) {
        let now = Instant::now();
        match command {
            Command::Add(address) => {
                if let Some(peer) = peer_of(&address) {
                    self.bypass(peer);
                }
                if self.targets.add(address, now) {
                    self.dial_targets(now);
                }
            }
            Command::Remove(whom) => self.remove(&whom),
            Command::Ban(peer, time) => {
                self.bans.ban(peer, time, now);
                tracing::info!(%peer, seconds = time.as_secs(), "an operator keeps a peer out");
                self.block(peer);
            }
            Command::Unban(peer) => {
                self.bans.lift(&peer);
                let _was_blocked = self.swarm.behaviour_mut().blocked.unblock_peer(peer);
            }
            Command::Ask { peer, question, answer } => {
                if self.peers.has(&peer) {
                    let id = self.swarm.behaviour_mut().pool.send_request(&peer, question);
                    self.answers.insert(id, answer);
                } else {
                    drop(answer.send(None));
                }
            }
            Command::Answer { id, channel, answer } => {
                self.pool_places.answered(&id);
                // Fails if the peer is gone, and then nobody wants the answer.
                drop(self.swarm.behaviour_mut().pool.send_response(channel, answer));
            }
            Command::AskSync { peer, question, answer } => {
                if self.peers.has(&peer) {
                    self.ask_chain(peer, question, Expected::Other(answer));
                } else {
                    drop(answer.send(None));
                }
            }
            Command::AnswerSync { id, channel, answer } => {
                self.desk.places.answered(&id);
                self.answer_chain(channel, answer);
            }
            Command::Settle { peer, worth } => self.settle(peer, worth),
            Command::Offence { peer, what } => self.keep_out(peer, &what),
            Command::Height { peer, height } => {
                if let Some(peer) = self.peers.get_mut(&peer) {
                    peer.height = Some(height);
                }
            }
        }
    }

    /// Stays connected to the nodes that the settings name.
    pub(crate) fn stay_with(&mut self, peers: Vec<libp2p::Multiaddr>, now: Instant) {
        for address in peers {
            if let Some(peer) = peer_of(&address) {
                self.bypass(peer);
            }
            let _is_new = self.targets.add(address, now);
        }
        self.show();
    }

    /// Peers that an operator named find room whatever the limits say.
    pub(crate) fn bypass(&mut self, peer: libp2p::PeerId) {
        self.swarm.behaviour_mut().limits.bypass_peer_id(&peer);
        self.swarm.behaviour_mut().addresses.bypass(peer);
    }

    fn remove(&mut self, whom: &Whom) {
        let mut gone = self.targets.remove(|peer, address| match whom {
            Whom::Peer(meant) => peer == Some(meant),
            Whom::At(meant) => address == meant,
        });
        if let Whom::Peer(peer) = whom {
            gone.push(*peer);
        }
        for peer in gone {
            self.book.forget(&peer);
            self.swarm.behaviour_mut().limits.remove_peer_id(&peer);
            self.swarm.behaviour_mut().addresses.count_again(&peer);
            // An error says that it was not connected.
            let _was_connected = self.swarm.disconnect_peer_id(peer);
        }
    }
}
