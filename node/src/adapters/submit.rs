//! Taking transactions in. One thread carries submissions out, and whatever came in meanwhile is
//! its next batch: so batches are as large as the load, parsing and signatures are shared out to the
//! threads of the lane, and the pool's lock is taken once a batch.

use std::sync::Arc;

use async_trait::async_trait;
use rpc::ports::{Fault as RpcFault, Submit, SubmitError};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use txpool::lanes::Lane;
use txpool::ports::AdmitError;
use txpool::{Accepted, Pool, Standing};
use types::{CheckedTx, Hash, Rejection};

use crate::chain::Chain;
use crate::clock::now_ms;
use crate::fault::Fault;
use crate::journal::Patience;
use crate::supervisor::answer_of;
use crate::sync::SyncState;

/// Submissions that wait; beyond, clients are told to come back. With arrays of 50 it is 50,000
/// transactions, about two seconds of work.
const WAITING_MAX: usize = 1_024;
/// Submissions that are joined into one batch.
const JOINED_MAX: usize = 128;
/// What a client that is turned away is told.
const RETRY_AFTER_MS: u64 = 250;
type Answer = Vec<Result<Hash, SubmitError>>;

/// Who brought a submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// A client, who gets the first refusal in the order of docs/protocol.md section 9.
    Client,
    /// A peer, for whom nobody looks at a signature that would be for nothing.
    Peer,
}

struct Submission {
    texts: Vec<Box<RawValue>>,
    origin: Origin,
    answer: oneshot::Sender<Answer>,
}

/// The door of the pool: clients put submissions in, [`Ingest`] takes them out.
pub(crate) struct Door {
    waiting: mpsc::Sender<Submission>,
    sync: Arc<SyncState>,
}

/// The task behind the door.
pub(crate) struct Ingest {
    waiting: mpsc::Receiver<Submission>,
    worker: Worker,
    /// Since when every write of the journal has failed.
    patience: Patience,
}

/// What a batch is carried out with.
pub(crate) struct Worker {
    pub(crate) chain: Arc<Chain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) lane: Lane,
    pub(crate) sync: Arc<SyncState>,
}

/// The door and the task behind it.
pub(crate) fn open(worker: Worker) -> (Door, Ingest) {
    let (sender, waiting) = mpsc::channel(WAITING_MAX);
    let door = Door { waiting: sender, sync: Arc::clone(&worker.sync) };
    (door, Ingest { waiting, worker, patience: Patience::default() })
}

#[async_trait]
impl Submit for Door {
    async fn submit(&self, texts: Vec<Box<RawValue>>) -> Answer {
        self.bring(texts, Origin::Client).await
    }
}

impl Door {
    /// Takes in what peers bring, as [`Submit::submit`] does; but what the state refuses anyhow is
    /// refused for that, whatever its signature is worth.
    pub(crate) async fn submit_of_peers(&self, texts: Vec<Box<RawValue>>) -> Answer {
        self.bring(texts, Origin::Peer).await
    }

    async fn bring(&self, texts: Vec<Box<RawValue>>, origin: Origin) -> Answer {
        let count = texts.len();
        let all = |error: SubmitError| std::iter::repeat_n(Err(error), count).collect();
        if self.sync.is_catching_up() {
            return all(SubmitError::Syncing);
        }
        let (answer, answered) = oneshot::channel();
        match self.waiting.try_send(Submission { texts, origin, answer }) {
            Ok(()) => answered.await.unwrap_or_else(|_gone| all(SubmitError::ShuttingDown)),
            Err(mpsc::error::TrySendError::Full(_)) => {
                all(SubmitError::Busy { retry_after_ms: RETRY_AFTER_MS })
            }
            Err(mpsc::error::TrySendError::Closed(_)) => all(SubmitError::ShuttingDown),
        }
    }
}

impl Ingest {
    /// Takes submissions until asked to stop.
    ///
    /// # Errors
    /// [`Fault::Journal`] when the journal fails for long.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), Fault> {
        let runtime = Handle::current();
        let carried_out = tokio::task::spawn_blocking(move || -> Result<(), Fault> {
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

    /// Everything that waits, once something does; none if it is time to stop. What waits then is
    /// answered as shutting down.
    async fn next(&mut self, stop: &CancellationToken) -> Option<Vec<Submission>> {
        let mut joined = Vec::with_capacity(JOINED_MAX);
        let received = tokio::select! {
            biased;
            () = stop.cancelled() => 0,
            received = self.waiting.recv_many(&mut joined, JOINED_MAX) => received,
        };
        (received > 0).then_some(joined)
    }

    /// Answers everybody. The fault is for the supervisor.
    fn carry_out(&mut self, batch: Vec<Submission>, origin: Origin) -> Result<(), Fault> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut texts = Vec::with_capacity(batch.len());
        let mut answers = Vec::with_capacity(batch.len());
        for submission in batch {
            answers.push((submission.texts.len(), submission.answer));
            texts.extend(submission.texts.into_iter().map(Text));
        }
        let (outcomes, fault) = self.submit(texts, origin);
        let mut outcomes = outcomes.into_iter();
        for (size, answer) in answers {
            let part = outcomes.by_ref().take(size).collect();
            // A client that went away does not need its answer.
            drop(answer.send(part));
        }
        fault.map_or(Ok(()), Err)
    }

    fn submit(&mut self, texts: Vec<Text>, origin: Origin) -> (Answer, Option<Fault>) {
        let Worker { chain, pool, lane, sync } = &self.worker;
        if sync.is_catching_up() {
            let answer = texts.iter().map(|_| Err(SubmitError::Syncing)).collect();
            return (answer, None);
        }
        let height = chain.tip().height.saturating_add(1);
        let checked = match origin {
            Origin::Client => lane.check(texts, height),
            Origin::Peer => lane.check_after_glance(texts, height, pool),
        };
        let good: Vec<CheckedTx> =
            checked.iter().filter_map(|tx| tx.as_ref().ok()).cloned().collect();
        let admitted = pool.submit(&good, now_ms());
        let (unwritten, fault) = self.write_journal();
        let mut admitted = admitted.into_iter();
        let answer = checked
            .into_iter()
            .map(|tx| {
                tx.map_err(SubmitError::from)?;
                let outcome = admitted.next().unwrap_or_else(unanswered);
                let Accepted { hash, standing, is_new: _ } = outcome.map_err(not_admitted)?;
                match &unwritten {
                    Some(error) if standing != Standing::Included => Err(error.clone()),
                    _ => Ok(hash),
                }
            })
            .collect();
        (answer, fault)
    }

    /// Writes the journal, without which nobody is told success. If it fails: what the clients are
    /// told, and after some time the fault that stops the node. The pool keeps what it could not
    /// write, so who sends again later gets the answer that is true then.
    fn write_journal(&mut self) -> (Option<SubmitError>, Option<Fault>) {
        let error = match self.worker.pool.write_journal() {
            Ok(count) => {
                self.patience.written(count);
                return (None, None);
            }
            Err(error) => error,
        };
        if self.patience.has_ended(&error) {
            return (Some(SubmitError::ShuttingDown), Some(Fault::Journal(error)));
        }
        let told = RpcFault::new("keeping an accepted transaction; send it again", error);
        (Some(SubmitError::Fault(told)), None)
    }
}

/// The pool answers every transaction; if it did not, the client must not be told success.
fn unanswered() -> Result<Accepted, AdmitError> {
    Err(Rejection::new(types::Code::PoolFull, "pool", "no answer", "an answer").into())
}

/// A fault that a check meets is for whoever sent what was checked: it says nothing about the chain.
fn not_admitted(error: AdmitError) -> SubmitError {
    match error {
        AdmitError::Rejected(reason) => SubmitError::Rejected(reason),
        AdmitError::Fault(fault) => {
            tracing::error!(%fault, "a transaction could not be checked");
            SubmitError::Fault(RpcFault::new("admitting a transaction", fault))
        }
    }
}

/// A raw text as bytes.
struct Text(Box<RawValue>);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.get().as_bytes()
    }
}
