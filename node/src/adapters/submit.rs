//! Taking transactions in: concurrent submissions are joined, so that parsing and signatures are
//! done in batches on the threads of the lane and the pool's lock is taken once a batch.

use std::sync::Arc;

use async_trait::async_trait;
use rpc::ports::{Fault as RpcFault, Submit, SubmitError};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use txpool::lanes::Lane;
use txpool::{Accepted, Pool};
use types::{CheckedTx, Hash, Rejection};

use crate::chain::Chain;
use crate::clock::now_ms;
use crate::fault::Fault;
use crate::pace::Wake;

/// Submissions that wait; beyond, clients are told to come back. With arrays of 50 it is 50,000
/// transactions, about two seconds of work.
const WAITING_MAX: usize = 1_024;
/// Submissions that are joined into one batch.
const JOINED_MAX: usize = 128;
/// Batches under way: one is checked while another is admitted.
const BATCHES_MAX: usize = 2;
/// What a client that is turned away is told.
const RETRY_AFTER_MS: u64 = 250;

type Answer = Vec<Result<Hash, SubmitError>>;

struct Submission {
    texts: Vec<Box<RawValue>>,
    answer: oneshot::Sender<Answer>,
}

/// The door of the pool: clients put submissions in, [`Ingest`] takes them out.
pub(crate) struct Door(mpsc::Sender<Submission>);

/// The task behind the door.
pub(crate) struct Ingest {
    waiting: mpsc::Receiver<Submission>,
    batches: Arc<Semaphore>,
    worker: Arc<Worker>,
}

/// What a batch is carried out with.
pub(crate) struct Worker {
    pub(crate) chain: Arc<Chain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) lane: Lane,
    pub(crate) wake: Arc<Wake>,
}

/// The door and the task behind it.
pub(crate) fn open(worker: Worker) -> (Door, Ingest) {
    let (sender, waiting) = mpsc::channel(WAITING_MAX);
    let batches = Arc::new(Semaphore::new(BATCHES_MAX));
    (Door(sender), Ingest { waiting, batches, worker: Arc::new(worker) })
}

#[async_trait]
impl Submit for Door {
    async fn submit(&self, texts: Vec<Box<RawValue>>) -> Answer {
        let count = texts.len();
        let all = |error: SubmitError| std::iter::repeat_n(Err(error), count).collect();
        let (answer, answered) = oneshot::channel();
        match self.0.try_send(Submission { texts, answer }) {
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
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), Fault> {
        let mut joined = Vec::with_capacity(JOINED_MAX);
        loop {
            // Stopping comes first: what waits then is answered as shutting down.
            let permit = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                permit = Arc::clone(&self.batches).acquire_owned() => permit,
            };
            let Ok(permit) = permit else { return Ok(()) };
            let received = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                received = self.waiting.recv_many(&mut joined, JOINED_MAX) => received,
            };
            if received == 0 {
                return Ok(());
            }
            let batch = std::mem::replace(&mut joined, Vec::with_capacity(JOINED_MAX));
            let worker = Arc::clone(&self.worker);
            drop(tokio::task::spawn_blocking(move || {
                worker.carry_out(batch);
                drop(permit);
            }));
        }
    }
}

impl Worker {
    fn carry_out(&self, batch: Vec<Submission>) {
        let mut texts = Vec::with_capacity(batch.len());
        let mut answers = Vec::with_capacity(batch.len());
        for submission in batch {
            answers.push((submission.texts.len(), submission.answer));
            texts.extend(submission.texts.into_iter().map(Text));
        }
        let mut outcomes = self.submit(texts).into_iter();
        for (size, answer) in answers {
            let part = outcomes.by_ref().take(size).collect();
            // A client that went away does not need its answer.
            drop(answer.send(part));
        }
    }

    fn submit(&self, texts: Vec<Text>) -> Answer {
        let checked = self.lane.check(texts, self.chain.tip().height.saturating_add(1));
        let good: Vec<CheckedTx> =
            checked.iter().filter_map(|tx| tx.as_ref().ok()).cloned().collect();
        let admitted = self.pool.submit(&good, now_ms());
        self.wake.pool_changed();
        match admitted {
            Ok(admitted) => {
                let mut admitted = admitted.into_iter();
                checked
                    .into_iter()
                    .map(|tx| tx.and_then(|_| admitted.next().unwrap_or_else(unanswered)))
                    .map(|outcome: Result<Accepted, Rejection>| Ok(outcome?.hash))
                    .collect()
            }
            Err(fault) => {
                tracing::error!(%fault, "the pool cannot read the ledger");
                let fault = SubmitError::Fault(RpcFault::new("admitting a transaction", fault));
                checked.iter().map(|_| Err(fault.clone())).collect()
            }
        }
    }
}

/// The pool answers every transaction; if it did not, the client must not be told success.
fn unanswered() -> Result<Accepted, Rejection> {
    Err(Rejection::new(types::Code::PoolFull, "pool", "no answer", "an answer"))
}

/// A raw text as bytes.
struct Text(Box<RawValue>);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.get().as_bytes()
    }
}
