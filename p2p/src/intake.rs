//! From gossip to the own pool: a bounded line with a share for each peer, batches, and verdicts back
//! to the swarm.
//!
//! Peers take turns, so a message waits for few of anybody else's. When the line is full, who has
//! most in it loses its latest; so nobody's flood takes the room of those who send less.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use libp2p::PeerId;
use libp2p::gossipsub::{MessageAcceptance, MessageId};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::credit::Worth;
use crate::ports::{Outcome, Pool};
use crate::verdict::{fresh, offence, verdict};
use crate::wire::PACK_MAX;
use crate::{Limits, NetworkFault, SignedTx};

/// Messages that are given to the pool together. With full packs it is 4,096 transactions.
const JOINED_MAX: usize = 32;
/// Transactions of one peer before it is the next one's turn: a full pack, or as many small ones.
const TURN_TXS: usize = PACK_MAX;

/// A message that waits for the pool.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: MessageId,
    pub(crate) from: PeerId,
    pub(crate) txs: Vec<SignedTx>,
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.txs.iter().map(SignedTx::packed_bytes).fold(0, usize::saturating_add)
    }
}

/// What the pool said about a message.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) id: MessageId,
    pub(crate) from: PeerId,
    pub(crate) acceptance: MessageAcceptance,
    pub(crate) worth: Worth,
    /// New ones of a message that is not forwarded because of others in it.
    pub(crate) fresh: Vec<SignedTx>,
}

/// The messages of one peer.
#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Waiting>,
    bytes: usize,
}

/// The messages of all peers.
#[derive(Debug)]
struct Queues {
    count_max: usize,
    bytes_max: usize,
    count: usize,
    bytes: usize,
    of: BTreeMap<PeerId, Queue>,
    /// Whose turn it was.
    last: Option<PeerId>,
}

impl Queues {
    /// Puts a message in line; answers those that have to leave it.
    fn push(&mut self, message: Waiting) -> Vec<Waiting> {
        let (from, bytes) = (message.from, message.bytes());
        let queue = self.of.entry(from).or_default();
        queue.messages.push_back(message);
        queue.bytes = queue.bytes.saturating_add(bytes);
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        let mut out = Vec::new();
        while self.count > self.count_max || self.bytes > self.bytes_max {
            let Some(message) = self.longest(from).and_then(|peer| self.pop_back(peer)) else {
                break;
            };
            out.push(message);
        }
        out
    }

    /// Who takes most of the room; the newcomer, if others have as much.
    fn longest(&self, newcomer: PeerId) -> Option<PeerId> {
        let share = |(peer, queue): (&PeerId, &Queue)| {
            let count = queue.messages.len().saturating_mul(self.bytes_max.max(1));
            let bytes = queue.bytes.saturating_mul(self.count_max.max(1));
            (count.saturating_add(bytes), *peer == newcomer)
        };
        self.of.iter().max_by_key(|it| share(*it)).map(|(peer, _)| *peer)
    }

    fn pop_back(&mut self, peer: PeerId) -> Option<Waiting> {
        let message = self.of.get_mut(&peer)?.messages.pop_back()?;
        self.gone(peer, &message);
        Some(message)
    }

    fn pop_front(&mut self, peer: PeerId) -> Option<Waiting> {
        let message = self.of.get_mut(&peer)?.messages.pop_front()?;
        self.gone(peer, &message);
        Some(message)
    }

    fn gone(&mut self, peer: PeerId, message: &Waiting) {
        let bytes = message.bytes();
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        let Some(queue) = self.of.get_mut(&peer) else { return };
        queue.bytes = queue.bytes.saturating_sub(bytes);
        if queue.messages.is_empty() {
            self.of.remove(&peer);
        }
    }

    /// Takes everything of a peer out of the line.
    fn leave(&mut self, peer: PeerId) -> Vec<Waiting> {
        std::iter::from_fn(|| self.pop_front(peer)).collect()
    }

    /// What goes to the pool next, one peer after the other.
    fn batch(&mut self) -> Vec<Waiting> {
        let mut batch = Vec::new();
        while batch.len() < JOINED_MAX {
            let Some(peer) = self.next_peer() else { break };
            self.last = Some(peer);
            let mut txs = 0_usize;
            while txs < TURN_TXS && batch.len() < JOINED_MAX {
                let Some(message) = self.pop_front(peer) else { break };
                txs = txs.saturating_add(message.txs.len().max(1));
                batch.push(message);
            }
        }
        batch
    }

    fn next_peer(&self) -> Option<PeerId> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.of.range((after, Bound::Unbounded)).next();
        next.or_else(|| self.of.first_key_value()).map(|(peer, _)| *peer)
    }
}

/// The line that both ends share.
#[derive(Debug)]
struct Line {
    queues: Mutex<Queues>,
    arrived: Notify,
}

/// The swarm's end of the line.
#[derive(Debug)]
pub(crate) struct Door {
    line: Arc<Line>,
}

impl Door {
    /// Puts a message in line; answers those that find no room there, of this peer or another.
    pub(crate) fn offer(&self, message: Waiting) -> Vec<Waiting> {
        let out = self.line.queues.lock().push(message);
        self.line.arrived.notify_one();
        out
    }
}

impl Door {
    /// Takes everything of a peer out of the line; answers it.
    pub(crate) fn dismiss(&self, peer: PeerId) -> Vec<Waiting> {
        self.line.queues.lock().leave(peer)
    }
}

/// The task behind the door.
pub(crate) struct Intake {
    line: Arc<Line>,
    pool: Arc<dyn Pool>,
    judged: mpsc::Sender<Judged>,
}

/// The door and the task behind it.
pub(crate) fn open(
    limits: &Limits,
    pool: Arc<dyn Pool>,
    judged: mpsc::Sender<Judged>,
) -> (Door, Intake) {
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let queues = Queues {
        count_max: size(limits.waiting_max).max(1),
        bytes_max: size(limits.waiting_bytes_max),
        count: 0,
        bytes: 0,
        of: BTreeMap::new(),
        last: None,
    };
    let line = Arc::new(Line { queues: Mutex::new(queues), arrived: Notify::new() });
    (Door { line: Arc::clone(&line) }, Intake { line, pool, judged })
}

impl Intake {
    /// Gives messages to the pool until asked to stop.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), NetworkFault> {
        stop.run_until_cancelled(self.work()).await;
        Ok(())
    }

    async fn work(&self) {
        loop {
            let batch = self.next().await;
            // Copies share their text.
            let txs = batch.iter().flat_map(|message| message.txs.iter().cloned()).collect();
            let mut outcomes = self.pool.submit(txs).await.into_iter();
            for Waiting { id, from, txs } in batch {
                let part: Vec<Outcome> = outcomes.by_ref().take(txs.len()).collect();
                if let Some(code) = offence(&part) {
                    tracing::debug!(peer = %from, %code, "a peer sent an invalid transaction");
                }
                let judged = Judged {
                    id,
                    from,
                    acceptance: verdict(&part),
                    worth: Worth::of(&part),
                    fresh: fresh(txs, &part),
                };
                if self.judged.send(judged).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Waits for messages.
    async fn next(&self) -> Vec<Waiting> {
        loop {
            let batch = self.line.queues.lock().batch();
            if !batch.is_empty() {
                return batch;
            }
            // One that arrived since then has left a permit.
            self.line.arrived.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
