//! From gossip to the own pool: a bounded queue, batches, and verdicts back to the swarm.

use std::sync::Arc;

use libp2p::PeerId;
use libp2p::gossipsub::{MessageAcceptance, MessageId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::ports::{Outcome, Pool};
use crate::verdict::{offence, verdict};
use crate::{Fault, Limits, SignedTx};

/// Messages that are given to the pool together. With full packs it is 4,096 transactions.
const JOINED_MAX: usize = 32;

/// A message that waits for the pool.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: MessageId,
    pub(crate) from: PeerId,
    pub(crate) txs: Vec<SignedTx>,
    /// Gives the message's bytes back when it is done with.
    room: OwnedSemaphorePermit,
}

/// What the pool said about a message.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) id: MessageId,
    pub(crate) from: PeerId,
    pub(crate) acceptance: MessageAcceptance,
}

/// The swarm's end of the queue.
#[derive(Debug)]
pub(crate) struct Door {
    waiting: mpsc::Sender<Waiting>,
    bytes: Arc<Semaphore>,
}

impl Door {
    /// Puts a message before the pool; false if there is no room.
    pub(crate) fn offer(&self, id: MessageId, from: PeerId, txs: Vec<SignedTx>) -> bool {
        let bytes: usize = txs.iter().map(SignedTx::packed_bytes).sum();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        match Arc::clone(&self.bytes).try_acquire_many_owned(bytes) {
            Ok(room) => self.waiting.try_send(Waiting { id, from, txs, room }).is_ok(),
            Err(_) => false,
        }
    }
}

/// The task behind the door.
pub(crate) struct Intake {
    waiting: mpsc::Receiver<Waiting>,
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
    let (sender, waiting) = mpsc::channel(size(limits.waiting_max).max(1));
    let bytes = size(limits.waiting_bytes_max).min(Semaphore::MAX_PERMITS);
    let door = Door { waiting: sender, bytes: Arc::new(Semaphore::new(bytes)) };
    (door, Intake { waiting, pool, judged })
}

impl Intake {
    /// Gives messages to the pool until asked to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), Fault> {
        stop.run_until_cancelled(self.work()).await;
        Ok(())
    }

    async fn work(&mut self) {
        let mut joined = Vec::with_capacity(JOINED_MAX);
        while self.waiting.recv_many(&mut joined, JOINED_MAX).await > 0 {
            let mut txs = Vec::new();
            let mut messages = Vec::with_capacity(joined.len());
            for Waiting { id, from, txs: part, room } in joined.drain(..) {
                messages.push((id, from, part.len(), room));
                txs.extend(part);
            }
            let mut outcomes = self.pool.submit(txs).await.into_iter();
            for (id, from, count, _room) in messages {
                let part: Vec<Outcome> = outcomes.by_ref().take(count).collect();
                if let Some(code) = offence(&part) {
                    tracing::debug!(peer = %from, %code, "a peer sent an invalid transaction");
                }
                let judged = Judged { id, from, acceptance: verdict(&part) };
                if self.judged.send(judged).await.is_err() {
                    return;
                }
            }
        }
    }
}
