//! Before consensus starts: blocks from peers in batches, checked ahead on all threads, executed and
//! committed one after the other.
//!
//! What a peer says of itself is a claim. Nothing waits long for a claim, and nothing is written
//! before the certificate of its block was verified with the validators that the own state has for
//! its height.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::{DownloadFigures, Handle, PeerKey, Range};
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use state::store::Tip;
use state::store::tools::{EncodedBlock, follow};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use txpool::Pool;

use super::progress::{End, Progress};
use super::{BLOCKS_NEAR, Phase, SyncState, gauge};
use crate::adapters::events::EventBus;
use crate::chain::Chain;
use crate::clock::now_ms;
use crate::fault::Fault;
use crate::replay::ChainReplay;
use crate::supervisor::answer_of;

/// Ranges that wait between the download and the threads that check: each has about 1 MiB.
const RANGES_WAITING: usize = 2;
/// How often is looked whether enough peers have said how far they are.
const MEETING_INTERVAL: Duration = Duration::from_millis(50);
/// So many downloads in a row may bring nothing; then consensus has a try.
const VAIN_MAX: u32 = 8;

/// The stage before consensus.
pub(crate) struct CatchUp {
    pub(crate) chain: Arc<Chain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) bus: Arc<EventBus>,
    pub(crate) state: Arc<SyncState>,
    pub(crate) replay: ChainReplay,
    pub(crate) network: Handle,
    /// The height that is shown of the chain.
    pub(crate) height: Gauge,
    /// Peers that the settings name.
    pub(crate) peers_named: usize,
    /// How long peers are waited for.
    pub(crate) wait: Duration,
}

/// How a download ended.
enum Ended {
    /// Nobody has, or nobody gives, more.
    NoMore,
    /// A block was wrong; this peer sent it.
    Wrong { from: Option<PeerKey>, what: String },
}

impl CatchUp {
    /// Brings the chain up to what peers have, if they are ahead. Afterwards consensus may start.
    ///
    /// # Errors
    /// [`Fault`] for trouble of our own; a peer's trouble is the peer's.
    pub(crate) async fn run(self: Arc<Self>, stop: &CancellationToken) -> Result<(), Fault> {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = self.meet() => {}
        }
        if self.ahead(&DownloadFigures::default()).is_some() && !stop.is_cancelled() {
            self.state.enter(Phase::CatchingUp);
            let outcome = self.all_rounds(stop).await;
            let settled = Arc::clone(&self);
            let settled = tokio::task::spawn_blocking(move || settled.settle()).await;
            outcome?;
            answer_of(settled).unwrap_or(Ok(()))?;
        }
        let own = self.chain.tip().height;
        self.state.set_behind(self.state.heard(&[]) > own.saturating_add(BLOCKS_NEAR), own);
        self.state.enter(Phase::Running);
        Ok(())
    }

    /// Waits until half of the named peers have said how far they are, for a while.
    async fn meet(&self) {
        let deadline = Instant::now() + self.wait;
        let enough = self.peers_named.div_ceil(2).max(1);
        while self.tips().count() < enough && Instant::now() < deadline {
            tokio::time::sleep(MEETING_INTERVAL).await;
        }
    }

    /// How far the peers say to be.
    fn tips(&self) -> impl Iterator<Item = (PeerKey, u64)> {
        self.network.peers().into_iter().filter_map(|peer| Some((peer.key, peer.status?.tip)))
    }

    /// The highest tip that is claimed, if it is ahead, by somebody who has not failed.
    fn ahead(&self, figures: &DownloadFigures) -> Option<u64> {
        let own = self.chain.tip().height;
        let claims = self.tips().filter(|(peer, _)| !figures.has_given_up(*peer));
        let highest = claims.map(|(_, tip)| tip).max();
        highest.filter(|tip| *tip > own.saturating_add(BLOCKS_NEAR))
    }

    async fn all_rounds(self: &Arc<Self>, stop: &CancellationToken) -> Result<(), Fault> {
        let progress = Arc::new(Progress::new(self.chain.tip().height));
        let figures = DownloadFigures::default();
        let mut vain = 0;
        while let Some(target) = self.ahead(&figures)
            && vain < VAIN_MAX
            && !stop.is_cancelled()
        {
            let before = self.chain.tip().height;
            self.hear();
            tracing::info!(height = before, target, "catching up with peers");
            match self.round(&progress, &figures, stop).await? {
                Ended::NoMore if self.chain.tip().height == before => break,
                Ended::NoMore => {}
                Ended::Wrong { from, what } => {
                    tracing::warn!(from = ?from.map(|it| it.to_string()), what, "a peer sent a wrong block");
                    if let Some(peer) = from {
                        self.network.blame(peer, what).await;
                    }
                }
            }
            let moved = self.chain.tip().height > before;
            vain = if moved { 0 } else { vain + 1 };
        }
        let common = self.hear();
        let is_there = common <= self.chain.tip().height.saturating_add(BLOCKS_NEAR);
        progress.tell_end(if is_there {
            End::Reached
        } else if stop.is_cancelled() {
            End::Stopped
        } else {
            End::Short { peers: common }
        });
        Ok(())
    }

    /// One download, until it ends or brings something wrong.
    async fn round(
        self: &Arc<Self>,
        progress: &Arc<Progress>,
        figures: &DownloadFigures,
        stop: &CancellationToken,
    ) -> Result<Ended, Fault> {
        let (out, ranges) = mpsc::channel(RANGES_WAITING);
        let executing = tokio::task::spawn_blocking({
            let (this, progress, stop) = (Arc::clone(self), Arc::clone(progress), stop.clone());
            move || this.execute(ranges, &progress, stop)
        });
        let first = self.chain.tip().height.saturating_add(1);
        let download = self.network.download(first, out, figures.clone());
        let all = async {
            // The sending end goes with the download, and the execution comes to its end.
            stop.run_until_cancelled(download).await;
            executing.await
        };
        let target = || self.show(figures);
        tokio::select! {
            executed = all => answer_of(executed).unwrap_or(Ok(Ended::NoMore)),
            never = progress.show(target) => match never {},
        }
    }

    /// The height that most peers have.
    fn hear(&self) -> u64 {
        let mut tips: Vec<u64> = self.tips().map(|(_, tip)| tip).collect();
        tips.sort_unstable();
        self.state.heard(&tips)
    }

    /// Answers the height that is wanted. While no peer is there, it is what the last ones had.
    fn show(&self, figures: &DownloadFigures) -> u64 {
        let target = figures.target().max(self.hear());
        let metrics = &self.state.figures;
        metrics.target.set(gauge(target));
        metrics.peers.set(gauge(figures.peers()));
        metrics.bytes.set(gauge(figures.bytes()));
        target
    }

    /// Executes what comes, on a thread that may block.
    fn execute(
        &self,
        ranges: mpsc::Receiver<Range>,
        progress: &Progress,
        stop: CancellationToken,
    ) -> Result<Ended, Fault> {
        let senders = Senders::default();
        let incoming = Incoming { ranges, range: None, senders: &senders, stop };
        let replay = self.replay.replay();
        let outcome = follow(self.chain.store(), &replay, incoming, |tip, transactions| {
            self.committed(tip, transactions);
            progress.committed(tip.height, transactions);
            senders.forget_below(tip.height);
        });
        match outcome {
            Ok(_) => Ok(Ended::NoMore),
            Err(error) => match error.wrong_block() {
                Some(height) => {
                    // By rules that this program does not know it may be right.
                    self.chain.store().require_known_fork()?;
                    Ok(Ended::Wrong { from: senders.of(height), what: error.to_string() })
                }
                None => Err(Fault::CatchUp(Box::new(error))),
            },
        }
    }

    fn committed(&self, tip: &Tip, transactions: u64) {
        self.chain.moved(*tip);
        self.bus.block_committed(tip.height);
        self.state.figures.blocks.inc();
        self.state.figures.transactions.inc_by(transactions);
        self.height.set(gauge(tip.height));
    }

    /// Brings up to the chain what does not follow block by block.
    fn settle(&self) -> Result<(), Fault> {
        self.chain.settle()?;
        self.pool.chain_moved(now_ms()).map_err(Fault::Pool)
    }
}

/// Who sent what is not executed yet: last heights of ranges in ascending order.
#[derive(Default)]
struct Senders(Mutex<VecDeque<(u64, PeerKey)>>);

impl Senders {
    fn forget_below(&self, height: u64) {
        let mut list = self.0.lock();
        while list.front().is_some_and(|(last, _)| *last < height) {
            list.pop_front();
        }
    }

    fn of(&self, height: u64) -> Option<PeerKey> {
        let list = self.0.lock();
        list.iter().find(|(last, _)| *last >= height).map(|(_, from)| *from)
    }
}

/// The blocks of the ranges, one after the other.
struct Incoming<'a> {
    ranges: mpsc::Receiver<Range>,
    range: Option<(u64, std::vec::IntoIter<p2p::ports::EncodedBlock>)>,
    senders: &'a Senders,
    stop: CancellationToken,
}

impl Iterator for Incoming<'_> {
    type Item = EncodedBlock;

    fn next(&mut self) -> Option<EncodedBlock> {
        loop {
            if self.stop.is_cancelled() {
                return None;
            }
            if let Some((height, blocks)) = &mut self.range
                && let Some(p2p::ports::EncodedBlock { bytes, certificate }) = blocks.next()
            {
                let block = EncodedBlock { height: *height, bytes, certificate, stated_hash: None };
                *height = height.saturating_add(1);
                return Some(block);
            }
            let Range { first, blocks, from } = self.ranges.blocking_recv()?;
            let count = u64::try_from(blocks.len()).unwrap_or(u64::MAX);
            let last = first.saturating_add(count).saturating_sub(1);
            self.senders.0.lock().push_back((last, from));
            self.range = Some((first, blocks.into_iter()));
        }
    }
}
