//! Taking transactions in. One thread carries submissions out, and whatever came in meanwhile is
//! its next batch: so batches are as large as the load, parsing and signatures are shared out to the
//! threads of the lane, and the pool's lock is taken once a batch.

use std::sync::Arc;

use async_trait::async_trait;
use rpc::ports::{Fault as RpcFault, Submit, SubmitError};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use txpool::lanes::Lane;
use txpool::{Accepted, Pool};
use types::{CheckedTx, Hash, Rejection};

use crate::chain::Chain;
use crate::clock::now_ms;
use crate::fault::Fault;

/// Submissions that wait; beyond, clients are told to come back. With arrays of 50 it is 50,000
/// transactions, about two seconds of work.
const WAITING_MAX: usize = 1_024;
/// Submissions that are joined into one batch.
const JOINED_MAX: usize = 128;
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
    worker: Worker,
}

/// What a batch is carried out with.
pub(crate) struct Worker {
    pub(crate) chain: Arc<Chain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) lane: Lane,
}

/// The door and the task behind it.
pub(crate) fn open(worker: Worker) -> (Door, Ingest) {
    let (sender, waiting) = mpsc::channel(WAITING_MAX);
    (Door(sender), Ingest { waiting, worker })
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
        let runtime = Handle::current();
        let carried_out = tokio::task::spawn_blocking(move || {
            while let Some(batch) = runtime.block_on(self.next(&stop)) {
                self.worker.carry_out(batch);
            }
        });
        match carried_out.await.map_err(JoinError::try_into_panic) {
            // The supervisor reports it, with its message.
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Ok(()) | Err(Err(_)) => Ok(()),
        }
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
        if let Err(error) = self.pool.write_journal() {
            // The pool keeps what it could not write; the next write tries it again.
            tracing::error!(%error, "the pool's journal cannot be written");
        }
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
