//! Chunks from several peers at once.
//!
//! An answer is a MiB or the rest, so one that is shorter is the last, and what there is then is judged:
//! whoever sent crumbs or too little sent something wrong. Each answer has its time. One that is too
//! slow is asked no more, and what it was asked for comes from others. All chunks together have to come
//! at a least rate, else the fetch ends: chunks that only liars have may come one in twenty seconds.
//!
//! How long a chunk is, is only said by whoever made the manifest. Bytes that have the right hash are
//! right, and if they are not as many as the manifest says, those lied who made it. More than it says is
//! not fetched, because the memory for all answers has a bound.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::{AskError, Handle, PeerKey};
use parking_lot::Mutex;
use store::snapshots::{CHUNK_BYTES_MAX, ImportError, Intake, OfferError, Want};
use tokio::sync::{AcquireError, Notify, Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use types::Hash;

use super::error::SyncError;
use crate::supervisor::answer_of;

/// Chunks that one peer is asked for at the same time: less than it answers.
const PER_PEER: usize = 2;
/// After so many failures in a row a peer is asked no more.
const FAILURES_MAX: u32 = 3;
/// How long to wait before a peer that has no time is asked again.
const BUSY_WAIT: Duration = Duration::from_millis(200);
/// How often such a peer is asked again.
const BUSY_MAX: u32 = 50;
/// The least rate of all chunks together, in bytes per second: what one peer makes that is as slow as
/// it may be, with the chunks that it is asked for at the same time.
const RATE_MIN: u64 = 64 << 10;
/// How long no chunk may come, beside the time that the largest takes at the least rate.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of chunks that are under way, from however many peers.
const UNDER_WAY_BYTES_MAX: u32 = 128 << 20;
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
    /// It sent more bytes than were asked for, so that the hash could not be found.
    Excess,
}

/// What came of something that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    /// Whether the last answer was the rest, so that these are all the bytes that the peer has.
    pub(super) is_end: bool,
}

/// What all workers share.
struct Work {
    intake: Arc<Intake>,
    queue: Mutex<Queue>,
    /// Told when the queue has changed.
    changed: Notify,
    /// Peers that are asked no more.
    slow: Mutex<BTreeSet<PeerKey>>,
    /// What the manifest says that is not so.
    lie: Mutex<Option<OfferError>>,
    /// Room for answers, in bytes.
    room: Semaphore,
    patience: Mutex<Patience>,
    /// Cancelled when nothing is to be fetched any more.
    over: CancellationToken,
    figures: Mutex<Figures>,
}

/// How long chunks are waited for: what came pays for the time that it took at the least rate.
#[derive(Debug)]
struct Patience {
    max: Duration,
    left: Duration,
    since: Instant,
}

impl Patience {
    fn new(patience: Duration, largest: u64, now: Instant) -> Self {
        let max = patience.saturating_add(time_of(largest));
        Self { max, left: max, since: now }
    }

    fn gained(&mut self, bytes: u64, now: Instant) {
        let left = self.left.saturating_sub(now.saturating_duration_since(self.since));
        self.left = left.saturating_add(time_of(bytes)).min(self.max);
        self.since = now;
    }

    /// When it ends, if nothing more comes.
    fn end(&self) -> Instant {
        self.since + self.left
    }
}

/// The time that so many bytes take at the least rate.
fn time_of(bytes: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1_000) / RATE_MIN)
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
    /// Whether all together were too slow.
    pub(super) was_slow: bool,
    /// Peers that were too slow, or did not send what they were asked for.
    pub(super) slow: BTreeSet<PeerKey>,
    /// What the manifest says that is not so.
    pub(super) lie: Option<OfferError>,
}

/// Fetches what is missing, and ends when no chunk comes for so long. What came stays.
pub(super) async fn fetch_chunks(
    sources: Vec<Source>,
    intake: &Arc<Intake>,
    patience: Duration,
) -> Result<Fetched, SyncError> {
    let missing = intake.missing();
    let all = missing.iter().map(|want| want.bytes).fold(0, u64::saturating_add);
    let largest = missing.iter().map(|want| want.bytes).max().unwrap_or(0);
    let now = Instant::now();
    let work = Arc::new(Work {
        intake: Arc::clone(intake),
        queue: Mutex::new(Queue { open: missing.into(), under_way: 0 }),
        changed: Notify::new(),
        slow: Mutex::default(),
        lie: Mutex::default(),
        room: Semaphore::new(usize::try_from(UNDER_WAY_BYTES_MAX).unwrap_or(usize::MAX)),
        patience: Mutex::new(Patience::new(patience, largest, now)),
        over: CancellationToken::new(),
        figures: Mutex::new(Figures { started: now, told: now, done: 0, all }),
    });
    let mut workers = JoinSet::new();
    for source in &sources {
        for _ in 0..PER_PEER {
            workers.spawn(worker(source.clone(), Arc::clone(&work)));
        }
    }
    let mut was_slow = false;
    loop {
        let end = work.patience.lock().end();
        let ended = tokio::time::timeout_at(end.into(), workers.join_next()).await;
        match ended {
            Ok(None) => break,
            Ok(Some(ended)) => answer_of(ended).ok_or(SyncError::Thread)??,
            // Chunks may have come meanwhile.
            Err(_elapsed) if work.patience.lock().end() > Instant::now() => {}
            Err(_elapsed) if was_slow => break,
            Err(_elapsed) => {
                was_slow = true;
                work.end();
            }
        }
    }
    let (slow, lie) = (work.slow.lock().clone(), work.lie.lock().take());
    Ok(Fetched { is_all: intake.missing().is_empty(), was_slow, slow, lie })
}

type Room<'a> = Result<SemaphorePermit<'a>, AcquireError>;

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
            if self.over.is_cancelled() || self.slow.lock().contains(&peer) {
                return None;
            }
            match self.next() {
                Next::Fetch(want) => return Some(want),
                Next::Wait => changed.await,
                Next::Nothing => return None,
            }
        }
    }

    /// Has all workers end. What is being checked is still kept.
    fn end(&self) {
        self.over.cancel();
        self.changed.notify_waiters();
    }

    /// Asks a peer for a chunk when there is room for it; none if the fetch is over. The room is to be
    /// held as long as the chunk is.
    async fn ask(&self, source: &Source, want: &Want) -> Option<(Room<'_>, Result<Whole, Lack>)> {
        // The last answer may have a MiB where the manifest says less.
        let bytes = want.bytes.min(CHUNK_BYTES_MAX).saturating_add(PIECE_BYTES);
        let bytes = u32::try_from(bytes).unwrap_or(UNDER_WAY_BYTES_MAX).min(UNDER_WAY_BYTES_MAX);
        let asked = async {
            // The semaphore is never closed.
            let room = self.room.acquire_many(bytes).await;
            (room, fetch_whole(source, want.hash, want.bytes).await)
        };
        self.over.run_until_cancelled(asked).await
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
        let kept = match work.ask(&source, &want).await {
            None => Ok(false),
            Some((_room, Ok(whole))) => keep(&source, &work, want, whole).await?,
            Some((_room, Err(lack))) => Err(lack),
        };
        if let Err(lack @ (Lack::Slow | Lack::Excess)) = kept
            && work.slow.lock().insert(source.peer)
        {
            tracing::warn!(
                peer = %source.peer, chunk = %want.hash, bytes = want.bytes, ?lack,
                "a peer does not deliver a chunk of a snapshot as it should; asking others"
            );
        }
        let is_kept = kept == Ok(true);
        if is_kept {
            failures = 0;
            work.patience.lock().gained(want.bytes, Instant::now());
            report(&work, want.bytes);
        } else {
            failures = failures.saturating_add(1);
        }
        work.put_back((!is_kept).then_some(want));
    }
    Ok(())
}

/// Checks a chunk and keeps it. A wrong one is its sender's fault, since it is named by what it
/// contains. If it is right and not what the manifest says of it, nobody needs the rest.
async fn keep(
    source: &Source,
    work: &Arc<Work>,
    want: Want,
    Whole { bytes, is_end }: Whole,
) -> Result<Result<bool, Lack>, ImportError> {
    let intake = Arc::clone(&work.intake);
    let kept = tokio::task::spawn_blocking(move || intake.keep(&want, &bytes)).await;
    match answer_of(kept) {
        Some(Ok(())) => Ok(Ok(true)),
        // The chunk may be longer than the manifest says.
        Some(Err(ImportError::Offer(_))) if !is_end => Ok(Err(Lack::Excess)),
        Some(Err(ImportError::Offer(error))) => {
            source.handle.blame(source.peer, format!("a chunk of a snapshot: {error}")).await;
            Ok(Ok(false))
        }
        Some(Err(ImportError::Manifest(error))) => {
            work.lie.lock().get_or_insert(error);
            work.end();
            Ok(Ok(false))
        }
        Some(Err(error)) => Err(error),
        None => Ok(Ok(false)),
    }
}

/// All bytes of an offer or a chunk, in as many answers as it takes, or those of the answers until there
/// are `bytes_max`: at most a MiB more.
///
/// # Errors
/// [`Lack`] if the peer has no such thing, or an answer does not come in time.
pub(super) async fn fetch_whole(
    source: &Source,
    hash: Hash,
    bytes_max: u64,
) -> Result<Whole, Lack> {
    let mut bytes = Vec::new();
    let mut busy = 0;
    loop {
        let offset = length(&bytes);
        let asked = Instant::now();
        let time = source.answer_time;
        match source.handle.piece(source.peer, (hash, offset), time).await {
            Ok(piece) if piece.is_empty() && bytes.is_empty() => return Err(Lack::Absent),
            Ok(piece) => {
                let is_end = length(&piece) < PIECE_BYTES;
                bytes.extend(piece);
                if is_end || length(&bytes) >= bytes_max {
                    return Ok(Whole { bytes, is_end });
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
