//! Chunks from several peers at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::{AskError, Handle, PeerKey};
use parking_lot::Mutex;
use state::store::offers::{ImportError, Intake, Want};
use tokio::task::JoinSet;
use types::Hash;

use super::SyncError;

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

/// A peer to fetch from.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) handle: Handle,
    pub(super) peer: PeerKey,
}

/// What all workers share.
struct Work {
    intake: Arc<Intake>,
    open: Mutex<VecDeque<Want>>,
    figures: Mutex<Figures>,
}

struct Figures {
    started: Instant,
    told: Instant,
    done: u64,
    all: u64,
}

/// Fetches what is missing, and answers whether everything is there. What came stays.
pub(super) async fn fetch_chunks(
    sources: Vec<Source>,
    intake: &Arc<Intake>,
) -> Result<bool, SyncError> {
    let missing = intake.missing();
    let all = missing.iter().map(|want| want.bytes).fold(0, u64::saturating_add);
    let now = Instant::now();
    let work = Arc::new(Work {
        intake: Arc::clone(intake),
        open: Mutex::new(missing.into()),
        figures: Mutex::new(Figures { started: now, told: now, done: 0, all }),
    });
    let mut workers = JoinSet::new();
    for source in &sources {
        for _ in 0..PER_PEER {
            workers.spawn(worker(source.clone(), Arc::clone(&work)));
        }
    }
    while let Some(ended) = workers.join_next().await {
        ended.map_err(|_ended| SyncError::Thread)??;
    }
    Ok(intake.missing().is_empty())
}

/// Fetches one chunk after the other from one peer, until there is none left or the peer is of no
/// use.
async fn worker(source: Source, work: Arc<Work>) -> Result<(), ImportError> {
    let mut failures = 0;
    while failures < FAILURES_MAX {
        let Some(want) = work.open.lock().pop_front() else { return Ok(()) };
        let kept = match fetch_whole(&source, want.hash, want.bytes).await {
            Some(bytes) => keep(&source, &work, want, bytes).await?,
            None => false,
        };
        if kept {
            failures = 0;
            report(&work, want.bytes);
        } else {
            failures = failures.saturating_add(1);
            work.open.lock().push_back(want);
        }
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
    match kept {
        Ok(Ok(())) => Ok(true),
        Ok(Err(ImportError::Offer(error))) => {
            source.handle.blame(source.peer, format!("a chunk of a snapshot: {error}")).await;
            Ok(false)
        }
        Ok(Err(error)) => Err(error),
        Err(_ended) => Ok(false),
    }
}

/// All bytes of an offer or a chunk, in as many answers as it takes; none if the peer does not give
/// them.
pub(super) async fn fetch_whole(source: &Source, hash: Hash, bytes: u64) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    let mut busy = 0;
    loop {
        let offset = u64::try_from(whole.len()).ok()?;
        if offset >= bytes {
            return (offset == bytes).then_some(whole);
        }
        let piece = source.handle.piece(source.peer, (hash, offset), super::ANSWER_TIME_MAX).await;
        match piece {
            Ok(piece) if piece.is_empty() => return None,
            Ok(piece) => whole.extend(piece),
            Err(AskError::Busy) if busy < BUSY_MAX => {
                busy = busy.saturating_add(1);
                tokio::time::sleep(BUSY_WAIT).await;
            }
            Err(_) => return None,
        }
    }
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
