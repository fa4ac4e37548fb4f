//! The ingest service: the one way of transactions into the pool while the node runs.
//!
//! ```text
//! clients ─▶ adapters::submit ─┐             ┌── Verifier: parse, verify signatures
//!                              ├─▶ queue ─▶ IngestService ── Pool: admit
//! peers ──▶ adapters::gossip ──┘             └── journal, then the answers
//! ```
//!
//! One thread carries submissions out, and whatever came in meanwhile is its next batch: so batches
//! are as large as the load, and parsing and signatures are shared out to the threads of the verifier.
//! The pool takes a batch a few transactions at a time, so that nobody waits for a whole batch.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use txpool::ports::AdmitError;
use txpool::verifier::Verifier;
use txpool::{Accepted, JournalError, Pool, TxStanding};
use types::{Code, Rejection};

use crate::chain::NodeChain;
use crate::clock::now_ms;
use crate::fault::NodeFault;
use crate::journal::JournalPatience;
use crate::supervisor::answer_of;
use crate::sync::SyncState;

/// Submissions that wait; beyond, whoever brings one is told to come back. With 50 texts each it is
/// 50,000 transactions, about two seconds of work.
const QUEUE_MAX: usize = 1_024;
/// Submissions that are joined into one batch.
const BATCH_MAX: usize = 128;
/// Texts of one submission. Whoever brings more has them carried out part by part, so that others
/// come in between.
const SUBMISSION_TEXTS_MAX: usize = 1_000;
/// What whoever is turned away is told.
const RETRY_AFTER_MS: u64 = 250;

/// A signed transaction, exactly as its signer wrote it.
pub(crate) type Text = Box<[u8]>;

/// What became of one transaction.
pub(crate) type Answer = Result<Accepted, IngestError>;

/// Who brought a submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A client, who gets the first rejection in the order of docs/protocol.md section 9, and whose
    /// submissions come first in a batch.
    Client,
    /// A peer: what the state refuses anyhow is refused for that, whatever its signature is worth.
    Peer,
}

/// Why a transaction was not taken.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum IngestError {
    /// The chain or the pool refuses it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The node is catching up, so the pool cannot follow the chain.
    #[error("the node is catching up with the chain")]
    Syncing,
    /// The node is stopping.
    #[error("the node is shutting down")]
    ShuttingDown,
    /// Too many submissions wait already.
    #[error("too many submissions at the same time")]
    Busy {
        /// When to try again, in milliseconds.
        retry_after_ms: u64,
    },
    /// A fault of this node.
    #[error(transparent)]
    Fault(#[from] IngestFault),
}

/// A fault of this node that one transaction met, or all of a batch.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum IngestFault {
    /// The pool has the transaction, and the journal could not be written. Sending it again is safe.
    #[error(transparent)]
    Journal(Arc<JournalError>),
    /// The ledger could not be read, so the pool does not have the transaction.
    #[error(transparent)]
    Ledger(Arc<txpool::PoolFault>),
}

struct Submission {
    texts: Vec<Text>,
    origin: Origin,
    answer: oneshot::Sender<Vec<Answer>>,
}

/// Where submissions are handed in. Copies lead to the same service.
#[derive(Clone)]
pub(crate) struct IngestHandle {
    queue: mpsc::Sender<Submission>,
    sync: Arc<SyncState>,
}

impl IngestHandle {
    /// Parses, checks and keeps signed transactions. The answers are in the order of the texts and
    /// as many; one bad text never affects another. A transaction that is known already is answered
    /// like one that is new, with [`Accepted::is_new`] unset. Success is told after the journal has
    /// the transaction.
    pub(crate) async fn submit(&self, mut texts: Vec<Text>, origin: Origin) -> Vec<Answer> {
        if texts.len() <= SUBMISSION_TEXTS_MAX {
            return self.submit_part(texts, origin).await;
        }
        let mut answers = Vec::with_capacity(texts.len());
        while !texts.is_empty() {
            let rest = texts.split_off(texts.len().min(SUBMISSION_TEXTS_MAX));
            let part = std::mem::replace(&mut texts, rest);
            answers.extend(self.submit_part(part, origin).await);
        }
        answers
    }

    async fn submit_part(&self, texts: Vec<Text>, origin: Origin) -> Vec<Answer> {
        let count = texts.len();
        let all = |error: IngestError| vec![Err(error); count];
        if count == 0 {
            return Vec::new();
        }
        if self.sync.is_catching_up() {
            return all(IngestError::Syncing);
        }
        let (answer, answered) = oneshot::channel();
        match self.queue.try_send(Submission { texts, origin, answer }) {
            Ok(()) => answered.await.unwrap_or_else(|_gone| all(IngestError::ShuttingDown)),
            Err(mpsc::error::TrySendError::Full(_)) => {
                all(IngestError::Busy { retry_after_ms: RETRY_AFTER_MS })
            }
            Err(mpsc::error::TrySendError::Closed(_)) => all(IngestError::ShuttingDown),
        }
    }
}

/// What carries submissions out.
pub(crate) struct IngestService {
    queue: mpsc::Receiver<Submission>,
    parts: Parts,
    /// Since when every write of the journal has failed.
    patience: JournalPatience,
}

/// What the service works with.
pub(crate) struct Parts {
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) verifier: Verifier,
    pub(crate) sync: Arc<SyncState>,
}

/// The service, which is to be run, and the handle on it.
pub(crate) fn service(parts: Parts) -> (IngestHandle, IngestService) {
    let (sender, queue) = mpsc::channel(QUEUE_MAX);
    let handle = IngestHandle { queue: sender, sync: Arc::clone(&parts.sync) };
    (handle, IngestService { queue, parts, patience: JournalPatience::default() })
}

impl IngestService {
    /// Carries submissions out until asked to stop; those that wait then are answered as shutting
    /// down.
    ///
    /// # Errors
    /// [`NodeFault::Journal`] when the journal fails for long.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), NodeFault> {
        let runtime = Handle::current();
        let carried_out = tokio::task::spawn_blocking(move || -> Result<(), NodeFault> {
            while let Some(batch) = runtime.block_on(self.next(&stop)) {
                // Clients wait for their answers; nobody waits for those of peers.
                let (clients, peers): (Vec<_>, Vec<_>) =
                    batch.into_iter().partition(|it| it.origin == Origin::Client);
                self.carry_out(clients, Origin::Client)?;
                self.carry_out(peers, Origin::Peer)?;
            }
            Ok(())
        });
        answer_of(carried_out.await).unwrap_or(Ok(()))
    }

    /// Everything that waits, once something does; none if it is time to stop.
    async fn next(&mut self, stop: &CancellationToken) -> Option<Vec<Submission>> {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let received = tokio::select! {
            biased;
            () = stop.cancelled() => 0,
            received = self.queue.recv_many(&mut batch, BATCH_MAX) => received,
        };
        (received > 0).then_some(batch)
    }

    /// Takes the transactions of a batch in and answers everybody. The fault is for the supervisor.
    fn carry_out(&mut self, batch: Vec<Submission>, origin: Origin) -> Result<(), NodeFault> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut texts = Vec::with_capacity(batch.iter().map(|it| it.texts.len()).sum());
        let mut waiting = Vec::with_capacity(batch.len());
        for submission in batch {
            waiting.push((submission.texts.len(), submission.answer));
            texts.extend(submission.texts);
        }
        let (answers, fault) = self.take_in(texts, origin);
        let mut answers = answers.into_iter();
        for (count, answer) in waiting {
            let part = answers.by_ref().take(count).collect();
            // Whoever went away does not need the answer.
            drop(answer.send(part));
        }
        fault.map_or(Ok(()), Err)
    }

    fn take_in(&mut self, texts: Vec<Text>, origin: Origin) -> (Vec<Answer>, Option<NodeFault>) {
        let Parts { chain, pool, verifier, sync } = &self.parts;
        if sync.is_catching_up() {
            return (vec![Err(IngestError::Syncing); texts.len()], None);
        }
        let height = chain.tip().height.saturating_add(1);
        let checked = match origin {
            Origin::Client => verifier.check(texts, height),
            Origin::Peer => verifier.check_after_glance(texts, height, pool),
        };
        let mut txs = Vec::with_capacity(checked.len());
        let rejections: Vec<Option<Rejection>> =
            checked.into_iter().map(|tx| tx.map(|tx| txs.push(tx)).err()).collect();
        let mut admitted = pool.submit(&txs, now_ms()).into_iter();
        let (unwritten, fault) = self.write_journal();
        let answers = rejections.into_iter().map(|rejection| {
            if let Some(reason) = rejection {
                return Err(IngestError::Rejected(reason));
            }
            let accepted = admitted.next().unwrap_or_else(unanswered).map_err(not_admitted)?;
            match &unwritten {
                Some(error) if accepted.standing != TxStanding::Included => Err(error.clone()),
                _ => Ok(accepted),
            }
        });
        (answers.collect(), fault)
    }

    /// Writes the journal, without which nobody is told success. If it fails: what is answered
    /// instead, and after some time the fault that stops the node. The pool keeps what it could not
    /// write, so who sends again later gets the answer that is true then.
    fn write_journal(&mut self) -> (Option<IngestError>, Option<NodeFault>) {
        let error = match self.parts.pool.write_journal() {
            Ok(count) => {
                self.patience.written(count);
                return (None, None);
            }
            Err(error) => error,
        };
        if self.patience.has_ended(&error) {
            return (Some(IngestError::ShuttingDown), Some(NodeFault::Journal(error)));
        }
        (Some(IngestFault::Journal(Arc::new(error)).into()), None)
    }
}

/// The pool answers every transaction; if it did not, nobody may be told success.
fn unanswered() -> Result<Accepted, AdmitError> {
    Err(Rejection::new(Code::PoolFull, "pool", "no answer", "an answer").into())
}

/// A fault that a check meets is for whoever sent what was checked: it says nothing about the chain.
fn not_admitted(error: AdmitError) -> IngestError {
    match error {
        AdmitError::Rejected(reason) => IngestError::Rejected(reason),
        AdmitError::Fault(fault) => {
            tracing::error!(%fault, "a transaction could not be checked");
            IngestFault::Ledger(Arc::new(fault)).into()
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
