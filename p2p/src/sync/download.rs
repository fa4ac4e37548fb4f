//! Getting blocks from several peers at once, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::schedule::{Ask, Claim, Outlook, Range, Schedule};
use super::standing::{PeerStandings, bytes_of};
use crate::ports::EncodedBlock;
use crate::{AskError, Handle, Peer, PeerKey};

/// How long a peer may take for a part.
const PART_TIME_MAX: Duration = Duration::from_secs(8);
/// How often is looked who is connected and what time has brought.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// So long is waited for somebody who has the next block, when others have more.
const STUCK_TIME_MAX: Duration = Duration::from_secs(3);

/// How downloads go, and what peers were worth in them. Clones share it; a further download with the
/// same figures does not ask those who failed in one before, and begins with those who proved good.
#[derive(Clone, Debug, Default)]
pub struct DownloadFigures(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    target: AtomicU64,
    peers: AtomicU64,
    bytes: AtomicU64,
    standing: PeerStandings,
}

impl DownloadFigures {
    /// The height up to which blocks are fetched: what is wanted, or less if nobody claims so much.
    #[must_use]
    pub fn target(&self) -> u64 {
        self.0.target.load(Ordering::Relaxed)
    }

    /// Peers that are asked.
    #[must_use]
    pub fn peers(&self) -> u64 {
        self.0.peers.load(Ordering::Relaxed)
    }

    /// Bytes of the blocks that came.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Whether a peer did not deliver what it claimed, so that nothing is to be had from it.
    #[must_use]
    pub fn has_given_up(&self, peer: PeerKey) -> bool {
        self.0.standing.has_given_up(peer)
    }

    /// Whether a block of this peer was good.
    #[must_use]
    pub fn is_proved(&self, peer: PeerKey) -> bool {
        self.0.standing.is_proved(peer)
    }

    /// To be told when a block of this peer was verified.
    pub fn proved(&self, peer: PeerKey) {
        self.0.standing.proved(peer);
    }

    /// To be told when a block of this peer is wrong: nothing more is asked of it.
    pub fn wrong(&self, peer: PeerKey) {
        self.0.standing.give_up(peer);
    }

    fn show(&self, schedule: &Schedule) {
        self.0.target.store(schedule.target(), Ordering::Relaxed);
        let peers = u64::try_from(schedule.sources()).unwrap_or(u64::MAX);
        self.0.peers.store(peers, Ordering::Relaxed);
    }

    fn count(&self, answer: &Result<Vec<EncodedBlock>, AskError>) {
        let bytes = bytes_of(answer.as_deref().unwrap_or_default());
        self.0.bytes.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Handle {
    /// Gets the blocks from height `first` on from all peers that have them, and hands them out in
    /// order. `goal` answers the height up to which they are wanted; it is asked again and again, and
    /// may rise and fall. Ends when no peer claims more that is wanted, when nobody delivers what
    /// comes next, or when the other end of `out` is gone. The memory is bounded; nothing about the
    /// blocks is checked.
    pub async fn download(
        &self,
        first: u64,
        goal: &(dyn Fn() -> u64 + Send + Sync),
        out: mpsc::Sender<Range>,
        figures: DownloadFigures,
    ) {
        let mut schedule = Schedule::new(first, figures.0.standing.clone());
        let mut asks = JoinSet::new();
        let mut stuck_since: Option<Instant> = None;
        loop {
            let now = Instant::now();
            schedule.update(&self.claims(), goal());
            figures.show(&schedule);
            while let Some(ask) = schedule.next_ask(now) {
                asks.spawn(ask_one(self.clone(), ask));
            }
            match schedule.outlook() {
                Outlook::More => stuck_since = None,
                Outlook::Done => break,
                Outlook::Stuck => {
                    let since = *stuck_since.get_or_insert(now);
                    if now.saturating_duration_since(since) > STUCK_TIME_MAX {
                        break;
                    }
                }
            }
            tokio::select! {
                Some(answered) = asks.join_next() => {
                    // The task has no way to panic; its part would be asked of a second peer.
                    let Ok((ask, answer)) = answered else { continue };
                    figures.count(&answer);
                    schedule.answered(ask, answer, Instant::now());
                }
                room = out.reserve(), if schedule.has_range() => match (room, schedule.take()) {
                    (Ok(room), Some(range)) => room.send(range),
                    (Ok(_), None) => {}
                    (Err(_), _) => return,
                },
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
        }
        figures.show(&schedule);
    }

    /// What the connected peers claim.
    fn claims(&self) -> Vec<Claim> {
        let claim = |Peer { key, status, is_named, .. }: Peer| {
            Some(Claim { peer: key, status: status?, is_named })
        };
        self.peers().into_iter().filter_map(claim).collect()
    }
}

async fn ask_one(handle: Handle, ask: Ask) -> (Ask, Result<Vec<EncodedBlock>, AskError>) {
    let Ask { peer, first, count, .. } = ask;
    (ask, handle.blocks(peer, (first, count), PART_TIME_MAX).await)
}
