//! Chunks from several peers at once.
//!
//! An answer is a MiB or the rest, so one that is shorter is the last, and what there is then is judged:
//! whoever sent crumbs or too little sent something wrong. Each answer has its time, which makes a least
//! rate. One that is too slow is asked no more, and what it was asked for comes from others.
//!
//! How long a chunk is, is only said by whoever made the manifest. So it is never held against the peer
//! that sends the chunk: bytes that have the right hash are right.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::{AskError, Handle, PeerKey};
use parking_lot::Mutex;
use state::store::offers::{CHUNK_BYTES_MAX, ImportError, Intake, Want};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use types::Hash;

use super::SyncError;
use crate::supervisor::answer_of;

/// Chunks that one peer is asked for at the same time: less than it answers.
const PER_PEER: usize = 2;
/// After so many failures in a row a peer is asked no more.
const FAILURES_MAX: u32 = 3;
/// How long to wait before a peer that has no time is asked again.
const BUSY_WAIT: Duration = Duration::from_millis(200);
/// How often such a peer is asked again.
const BUSY_MAX: u32 = 50;
/// How often progress is logged.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
/// What nodes send in one answer, if there is as much.
const PIECE_BYTES: u64 = 1 << 20;

/// A peer to fetch from.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) handle: Handle,
    pub(super) peer: PeerKey,
    /// How long it may take for an answer.
    pub(super) answer_time: Duration,
}

/// Why a peer did not give something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lack {
    /// It has no such thing, no time, or is gone.
    Absent,
    /// It took longer than an honest peer may.
    Slow,
}

/// What all workers share.
struct Work {
    intake: Arc<Intake>,
    queue: Mutex<Queue>,
    /// Told when the queue has changed.
    changed: Notify,
    /// Peers that are asked no more.
    slow: Mutex<BTreeSet<PeerKey>>,
    figures: Mutex<Figures>,
}

/// What is still to be fetched.
struct Queue {
    open: VecDeque<Want>,
    /// Chunks that somebody is being asked for.
    under_way: usize,
}

/// What a worker is to do.
enum Next {
    Fetch(Want),
    /// All are under way; one may come back.
    Wait,
    Nothing,
}

struct Figures {
    started: Instant,
    told: Instant,
    done: u64,
    all: u64,
}

/// How a fetch ended.
#[derive(Debug)]
pub(super) struct Fetched {
    /// Whether everything is there.
    pub(super) is_all: bool,
    /// Peers that were too slow.
    pub(super) slow: BTreeSet<PeerKey>,
}

/// Fetches what is missing. What came stays.
pub(super) async fn fetch_chunks(
    sources: Vec<Source>,
    intake: &Arc<Intake>,
) -> Result<Fetched, SyncError> {
    let missing = intake.missing();
    let all = missing.iter().map(|want| want.bytes).fold(0, u64::saturating_add);
    let now = Instant::now();
    let work = Arc::new(Work {
        intake: Arc::clone(intake),
        queue: Mutex::new(Queue { open: missing.into(), under_way: 0 }),
        changed: Notify::new(),
        slow: Mutex::default(),
        figures: Mutex::new(Figures { started: now, told: now, done: 0, all }),
    });
    let mut workers = JoinSet::new();
    for source in &sources {
        for _ in 0..PER_PEER {
            workers.spawn(worker(source.clone(), Arc::clone(&work)));
        }
    }
    while let Some(ended) = workers.join_next().await {
        answer_of(ended).ok_or(SyncError::Thread)??;
    }
    let slow = work.slow.lock().clone();
    Ok(Fetched { is_all: intake.missing().is_empty(), slow })
}

impl Work {
    fn next(&self) -> Next {
        let mut queue = self.queue.lock();
        match queue.open.pop_front() {
            Some(want) => {
                queue.under_way = queue.under_way.saturating_add(1);
                Next::Fetch(want)
            }
            None if queue.under_way > 0 => Next::Wait,
            None => Next::Nothing,
        }
    }

    /// The next chunk to ask a peer for; none if it is asked no more. Whoever has nothing to do waits
    /// for what others may not get.
    async fn take(&self, peer: PeerKey) -> Option<Want> {
        loop {
            // Before the look, so that no change is missed.
            let changed = self.changed.notified();
            if self.slow.lock().contains(&peer) {
                return None;
            }
            match self.next() {
                Next::Fetch(want) => return Some(want),
                Next::Wait => changed.await,
                Next::Nothing => return None,
            }
        }
    }

    /// A chunk is there, or has to be asked of somebody else.
    fn put_back(&self, want: Option<Want>) {
        {
            let mut queue = self.queue.lock();
            queue.under_way = queue.under_way.saturating_sub(1);
            queue.open.extend(want);
        }
        self.changed.notify_waiters();
    }
}

/// Fetches one chunk after the other from one peer, until there is none left or the peer is of no
/// use.
async fn worker(source: Source, work: Arc<Work>) -> Result<(), ImportError> {
    let mut failures = 0;
    while failures < FAILURES_MAX {
        let Some(want) = work.take(source.peer).await else { return Ok(()) };
        let kept = match fetch_whole(&source, want.hash, CHUNK_BYTES_MAX).await {
            Ok(bytes) => keep(&source, &work, want, bytes).await?,
            Err(Lack::Absent) => false,
            Err(lack @ Lack::Slow) => {
                if work.slow.lock().insert(source.peer) {
                    tracing::warn!(
                        peer = %source.peer, chunk = %want.hash, bytes = want.bytes, ?lack,
                        "a peer gives a chunk of a snapshot too slowly; others are asked"
                    );
                }
                false
            }
        };
        if kept {
            failures = 0;
            report(&work, want.bytes);
        } else {
            failures = failures.saturating_add(1);
        }
        work.put_back((!kept).then_some(want));
    }
    Ok(())
}

/// Checks a chunk and keeps it. A wrong one is its sender's fault, since it is named by what it
/// contains.
async fn keep(
    source: &Source,
    work: &Arc<Work>,
    want: Want,
    bytes: Vec<u8>,
) -> Result<bool, ImportError> {
    let intake = Arc::clone(&work.intake);
    let kept = tokio::task::spawn_blocking(move || intake.keep(&want, &bytes)).await;
    match answer_of(kept) {
        Some(Ok(())) => Ok(true),
        Some(Err(ImportError::Offer(error))) => {
            source.handle.blame(source.peer, format!("a chunk of a snapshot: {error}")).await;
            Ok(false)
        }
        Some(Err(error)) => Err(error),
        None => Ok(false),
    }
}

/// All bytes of an offer or a chunk, in as many answers as it takes, or at least `bytes_max` of them.
///
/// # Errors
/// [`Lack`] if the peer has no such thing, or an answer does not come in time.
pub(super) async fn fetch_whole(
    source: &Source,
    hash: Hash,
    bytes_max: u64,
) -> Result<Vec<u8>, Lack> {
    let mut whole = Vec::new();
    let mut busy = 0;
    loop {
        let offset = length(&whole);
        let asked = Instant::now();
        let time = source.answer_time;
        match source.handle.piece(source.peer, (hash, offset), time).await {
            Ok(piece) if piece.is_empty() && whole.is_empty() => return Err(Lack::Absent),
            Ok(piece) => {
                let is_last = length(&piece) < PIECE_BYTES;
                whole.extend(piece);
                if is_last || length(&whole) >= bytes_max {
                    return Ok(whole);
                }
            }
            Err(AskError::Busy) if busy < BUSY_MAX => {
                busy = busy.saturating_add(1);
                tokio::time::sleep(BUSY_WAIT).await;
            }
            Err(AskError::Silent) if asked.elapsed() >= time => return Err(Lack::Slow),
            Err(_) => return Err(Lack::Absent),
        }
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn report(work: &Work, bytes: u64) {
    let mut figures = work.figures.lock();
    figures.done = figures.done.saturating_add(bytes);
    let is_last = figures.done >= figures.all;
    if figures.told.elapsed() < REPORT_INTERVAL && !is_last {
        return;
    }
    figures.told = Instant::now();
    let millis = u64::try_from(figures.started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    let bytes_per_second = figures.done.saturating_mul(1_000) / millis;
    let left = figures.all.saturating_sub(figures.done);
    let seconds_left = left.checked_div(bytes_per_second).unwrap_or(0);
    let (done, all) = (figures.done, figures.all);
    tracing::info!(done, all, bytes_per_second, seconds_left, "fetching the snapshot");
}

#[cfg(test)]
mod tests;
