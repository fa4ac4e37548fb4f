//! What comes before the pool: parsing, and the checks that need no state, on several threads.
//!
//! ```text
//! texts ──parse──▶ Transaction ──types::check::verify──▶ CheckedTx ──Pool::submit──▶ in the pool
//!        └──────────── Verifier, in pieces, in parallel ────────────┘   └─ one at a time ─┘
//! ```
//!
//! Nothing skips it: only the second step makes the type that the third one takes.
//!
//! EVIDENCE has two signatures of a validator besides. They are checked here, too, and the transaction
//! keeps the answer; the ledger refuses what is forged, in its order of the rules.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use types::check::{StaticRules, verify, verify_signed, verify_unsigned};
use types::sign_bytes::Domain;
use types::{CheckedTx, Forks, Hash, Params, Rejection, SizeLimits, Transaction};

use crate::Pool;

/// What the chain fixes about transactions at every height.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The chain's name.
    pub chain_id: String,
    /// The chain's parameters.
    pub params: Params,
    /// From which heights on kinds are valid.
    pub forks: Forks,
    /// The hash of its genesis file.
    pub genesis_hash: Hash,
}

impl Rules {
    fn at(&self, height: u64) -> StaticRules<'_> {
        let Self { chain_id, params, forks, genesis_hash: _ } = self;
        StaticRules { chain_id, params, forks: *forks, height }
    }

    /// The domain in which validators sign what evidence is about, which is of heights from v7 on.
    fn domain(&self) -> Domain {
        let Self { chain_id, params: _, forks: _, genesis_hash } = self;
        let (chain_id, genesis_hash) = (chain_id.as_str().into(), *genesis_hash);
        Domain { chain_id, genesis_hash, v7_from: Some(0) }
    }
}

type Answers = Vec<Result<CheckedTx, Rejection>>;
type Job = Box<dyn FnOnce() + Send>;

/// Work is cut into pieces of this many transactions: fewer make batches of signatures slow, more
/// leave threads idle.
const PIECE_MIN: usize = 64;
const PIECE_MAX: usize = 512;

/// Pieces that may wait for a thread. Whoever finds the queue full does the work itself.
const JOBS_WAITING_MAX: usize = 64;

/// Parses and checks transactions on a few threads.
pub struct Verifier {
    rules: Arc<Rules>,
    limits: SizeLimits,
    jobs: Option<SyncSender<Job>>,
    workers: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("workers", &self.workers.len()).finish_non_exhaustive()
    }
}

impl Verifier {
    /// A verifier on `threads` threads; the caller of a check is one of them.
    ///
    /// # Errors
    /// The system's error if it gives no more threads.
    pub fn new(rules: Rules, threads: NonZeroUsize) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel::<Job>(JOBS_WAITING_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let workers = (1..threads.get())
            .map(|number| {
                let receiver = Arc::clone(&receiver);
                let name = format!("tx-check-{number}");
                thread::Builder::new().name(name).spawn(move || work(&receiver))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let limits = SizeLimits::from(&rules.params);
        Ok(Self { rules: Arc::new(rules), limits, jobs: Some(sender), workers })
    }

    /// How much text a transaction may have.
    #[must_use]
    pub const fn limits(&self) -> SizeLimits {
        self.limits
    }

    /// Parses and checks texts for a block of the given height; the answers are in the order of
    /// `texts`, and each is the one that the text would get alone.
    #[must_use]
    pub fn check<T>(&self, texts: Vec<T>, height: u64) -> Answers
    where
        T: AsRef<[u8]> + Send + Sync + 'static,
    {
        self.check_by(texts, height, None)
    }

    /// The same for texts that nobody waits for: those that the pool would refuse for nonce or balance
    /// are refused before anybody looks at their signatures ([`Pool::glance`]). So a rejection by the
    /// state may stand where [`Verifier::check`] has one for a bad signature.
    #[must_use]
    pub fn check_after_glance<T>(&self, texts: Vec<T>, height: u64, pool: &Arc<Pool>) -> Answers
    where
        T: AsRef<[u8]> + Send + Sync + 'static,
    {
        self.check_by(texts, height, Some(Arc::clone(pool)))
    }

    fn check_by<T>(&self, texts: Vec<T>, height: u64, pool: Option<Arc<Pool>>) -> Answers
    where
        T: AsRef<[u8]> + Send + Sync + 'static,
    {
        let (rules, limits) = (Arc::clone(&self.rules), self.limits);
        let pieces = self.pieces(texts.len());
        if pieces.len() <= 1 {
            return parse_and_verify(&texts, &limits, (&rules, height), pool.as_deref());
        }
        let texts = Arc::new(texts);
        let tasks = pieces.into_iter().map(|piece| {
            let (texts, rules) = (Arc::clone(&texts), Arc::clone(&rules));
            let pool = pool.clone();
            move || {
                let texts = texts.get(piece).unwrap_or_default();
                parse_and_verify(texts, &limits, (&rules, height), pool.as_deref())
            }
        });
        self.run(tasks.collect())
    }

    /// Checks transactions that were parsed already, as [`types::check::verify`] does.
    #[must_use]
    pub fn verify(&self, mut txs: Vec<Transaction>, height: u64) -> Answers {
        let pieces = self.pieces(txs.len());
        if pieces.len() <= 1 {
            return verify(txs, &self.rules.at(height));
        }
        let mut parts: Vec<Vec<Transaction>> =
            pieces.iter().rev().map(|piece| txs.split_off(piece.start)).collect();
        parts.reverse();
        let tasks = parts.into_iter().map(|part| {
            let rules = Arc::clone(&self.rules);
            move || verify(part, &rules.at(height))
        });
        self.run(tasks.collect())
    }

    fn pieces(&self, count: usize) -> Vec<Range<usize>> {
        let threads = self.workers.len().saturating_add(1);
        let size = count.div_ceil(threads).clamp(PIECE_MIN, PIECE_MAX);
        (0..count).step_by(size).map(|start| start..count.min(start.saturating_add(size))).collect()
    }

    /// Runs the tasks on the workers and on this thread, and puts their answers in a row. A panic
    /// in a task goes on here, as if it had been run here.
    fn run<F>(&self, tasks: Vec<F>) -> Answers
    where
        F: FnOnce() -> Answers + Send + 'static,
    {
        let (results, arrived) = sync_channel(tasks.len().max(1));
        let count = tasks.len();
        for (position, task) in tasks.into_iter().enumerate() {
            let results = results.clone();
            let job: Job = Box::new(move || {
                let result = catch_unwind(AssertUnwindSafe(task));
                // Fails only if the caller is gone, and then nobody wants the answer.
                drop(results.send((position, result)));
            });
            // The last piece is this thread's, as is everything that finds no room.
            let is_last = position.saturating_add(1) == count;
            if let Some(refused) = if is_last { Some(job) } else { self.hand_over(job) } {
                refused();
            }
        }
        drop(results);
        let mut parts: Vec<Answers> = (0..count).map(|_| Vec::new()).collect();
        for (position, result) in arrived {
            let answers = result.unwrap_or_else(|panic| resume_unwind(panic));
            if let Some(part) = parts.get_mut(position) {
                *part = answers;
            }
        }
        parts.into_iter().flatten().collect()
    }

    /// Gives the job to a worker, or back.
    fn hand_over(&self, job: Job) -> Option<Job> {
        let Some(jobs) = self.jobs.as_ref().filter(|_| !self.workers.is_empty()) else {
            return Some(job);
        };
        match jobs.try_send(job) {
            Ok(()) => None,
            Err(mpsc::TrySendError::Full(job) | mpsc::TrySendError::Disconnected(job)) => Some(job),
        }
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        // Without a sender the workers come to an end.
        self.jobs = None;
        for worker in self.workers.drain(..) {
            // Jobs catch their panics, so a worker has none to report.
            drop(worker.join());
        }
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().recv();
        match job {
            Ok(job) => job(),
            Err(mpsc::RecvError) => return,
        }
    }
}

fn parse_and_verify<T: AsRef<[u8]>>(
    texts: &[T],
    limits: &SizeLimits,
    (rules, height): (&Rules, u64),
    pool: Option<&Pool>,
) -> Answers {
    let (at_height, domain) = (rules.at(height), rules.domain());
    let parse = |text: &T| Transaction::parse(text.as_ref(), limits);
    let answers = match pool {
        None => pass_on(texts.iter().map(parse).collect(), |txs| verify(txs, &at_height)),
        Some(pool) => {
            let unsigned = |text| verify_unsigned(parse(text)?, &at_height);
            let wanted = pass_on(texts.iter().map(unsigned).collect(), |txs| glance(txs, pool));
            pass_on(wanted, verify_signed)
        }
    };
    for tx in answers.iter().flatten() {
        // Evidence keeps the answer for the pool, which asks under its lock.
        let _forged = tx.forged_message(&domain);
    }
    answers
}

/// Gives those that were not refused to the next check, all together; the answers are in the order of
/// the input.
fn pass_on<T>(
    answers: Vec<Result<T, Rejection>>,
    check: impl FnOnce(Vec<T>) -> Answers,
) -> Answers {
    let mut passed = Vec::with_capacity(answers.len());
    let refused: Vec<Option<Rejection>> =
        answers.into_iter().map(|answer| answer.map(|it| passed.push(it)).err()).collect();
    let mut checked = check(passed).into_iter();
    refused
        .into_iter()
        .filter_map(|rejection| rejection.map_or_else(|| checked.next(), |it| Some(Err(it))))
        .collect()
}

/// Refuses those that the state refuses as it is, before their signatures are looked at.
fn glance(txs: Vec<CheckedTx>, pool: &Pool) -> Answers {
    let rejections = pool.glance(&txs);
    txs.into_iter().zip(rejections).map(|(tx, rejection)| rejection.map_or(Ok(tx), Err)).collect()
}
