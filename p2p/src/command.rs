//! What the other tasks ask of the task that owns the swarm.

use std::time::Duration;

use libp2p::request_response::{InboundRequestId, ResponseChannel};
use libp2p::{Multiaddr, PeerId};
use tokio::sync::oneshot;

use crate::credit::Worth;

/// Requests that may wait. Each is short work.
pub(crate) const COMMANDS_MAX: usize = 256;

/// Whom an operator means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whom {
    /// By its id.
    Peer(PeerId),
    /// By its address.
    At(Multiaddr),
}

/// What to do with the swarm.
#[derive(Debug)]
pub(crate) enum Command {
    /// Stay connected to a node.
    Add(Multiaddr),
    /// Disconnect from a node and no longer stay connected.
    Remove(Whom),
    /// Keep a peer out for so long.
    Ban(PeerId, Duration),
    /// Forgive a peer.
    Unban(PeerId),
    /// Ask a peer's pool; the answer is none if there is none in time.
    Ask { peer: PeerId, question: Vec<u8>, answer: oneshot::Sender<Option<Vec<u8>>> },
    /// Answer a peer's question.
    Answer { id: InboundRequestId, channel: ResponseChannel<Vec<u8>>, answer: Vec<u8> },
    /// Ask a peer about its chain; the answer is none if there is none in time.
    AskSync { peer: PeerId, question: Vec<u8>, answer: oneshot::Sender<Option<Vec<u8>>> },
    /// Answer a peer's question about the chain.
    AnswerSync { id: InboundRequestId, channel: ResponseChannel<Vec<u8>>, answer: Vec<u8> },
    /// A peer broke a rule that it could check.
    Offence { peer: PeerId, what: String },
    /// What a peer brought was worth so much.
    Settle { peer: PeerId, worth: Worth },
    /// A peer said how far its chain is.
    Height { peer: PeerId, height: u64 },
}
