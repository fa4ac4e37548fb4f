//! Before consensus starts: blocks from peers in batches, checked ahead on all threads, executed and
//! committed one after the other.
//!
//! What a peer says of itself is a claim (`claims.rs`). Nothing waits long for a claim, the stage ends
//! when the height is there that is believed, and nothing is written before the certificate of its
//! block was verified with the validators that the own state has for its height.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::{DownloadFigures, Handle, Peer, PeerKey, Range};
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use state::StorageError;
use store::Tip;
use store::tools::{EncodedBlock, Supply, follow};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use txpool::Pool;
use types::SizeLimits;

use super::claims::{Belief, Claim, claim};
use super::confirm::{Confirm, Verdict};
use super::progress::{End, Progress};
use super::proof::Provers;
use super::state::{BLOCKS_NEAR, Phase, SyncState, gauge};
use super::trust::{Start, Trust, VOICES};
use super::voices::{Next, SyncStanding, has_met, is_followed};
use super::watch::BEHIND_AFTER;
use crate::adapters::events::EventBus;
use crate::chain::NodeChain;
use crate::clock::now_ms;
use crate::fault::NodeFault;
use crate::replay::ChainReplay;
use crate::supervisor::answer_of;
use crate::validator_sets::next_validators;

/// Ranges that wait between the download and the threads that check: each has about 1 MiB.
const RANGES_WAITING: usize = 2;
/// How often is looked whether enough peers have said how far they are.
const MEETING_INTERVAL: Duration = Duration::from_millis(50);
/// So many downloads in a row may bring nothing; then consensus has a try.
const VAIN_MAX: u32 = 8;
/// The height has to rise within this time; else consensus has a try. Twice what a part may take that
/// is asked of one peer and then of another, and some more.
const PROGRESS_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a node waits that must not go on before two peers have the same blocks; and how often
/// the log says so.
const VOICES_INTERVAL: Duration = Duration::from_secs(2);
const VOICES_TOLD_INTERVAL: Duration = Duration::from_secs(60);
/// How often some peers are asked for a proof that they are ahead.
const PROOF_ATTEMPTS: u32 = 3;

/// The stage before consensus.
pub(crate) struct CatchUp {
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) bus: Arc<EventBus>,
    pub(crate) state: Arc<SyncState>,
    pub(crate) replay: ChainReplay,
    pub(crate) network: Handle,
    /// What is relied on.
    pub(crate) trust: Trust,
    /// The height that is shown of the chain.
    pub(crate) height: Gauge,
    /// How long peers are waited for.
    pub(crate) wait: Duration,
}

/// How a download ended.
enum Ended {
    /// Nobody has, or nobody gives, more.
    NoMore,
    /// A block was wrong; this peer sent it.
    Wrong { from: Option<PeerKey>, what: String },
    /// For long no block could be executed.
    Idle,
    /// Too few peers have the next blocks.
    Unheard,
}

impl CatchUp {
    /// Brings the chain up to what peers have, if they are ahead. Afterwards consensus may start.
    ///
    /// # Errors
    /// [`NodeFault`] for trouble of our own; a peer's trouble is the peer's.
    pub(crate) async fn run(self: Arc<Self>, stop: &CancellationToken) -> Result<(), NodeFault> {
        let begun = Instant::now();
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = self.meet() => {}
        }
        let mut told: Option<Instant> = None;
        let figures = loop {
            let figures = DownloadFigures::default();
            stop.run_until_cancelled(self.look_for_proof(&figures)).await;
            if self.target(&figures).is_some() && !stop.is_cancelled() {
                self.state.enter(Phase::CatchingUp);
                let outcome = self.all_rounds(&figures, stop).await;
                let settled = Arc::clone(&self);
                let settled = tokio::task::spawn_blocking(move || settled.settle()).await;
                outcome?;
                answer_of(settled).unwrap_or(Ok(()))?;
            }
            let may_go_on = stop.run_until_cancelled(self.may_go_on(begun)).await;
            if may_go_on.unwrap_or(Ok(true))? {
                break figures;
            }
            self.tell_lack(&mut told);
            stop.run_until_cancelled(tokio::time::sleep(VOICES_INTERVAL)).await;
        };
        self.state.set_lacks_voices(false);
        let own = self.chain.tip().height;
        self.state.set_behind(self.target(&figures).is_some(), own);
        self.state.enter(Phase::Running);
        Ok(())
    }

    /// How many of the named peers have to have a block before it is taken.
    fn voices(&self) -> usize {
        self.trust.voices(self.network.named())
    }

    /// Whether consensus may start. Its own network asks one peer for blocks, so a node that believes
    /// no single peer first has what two of them have.
    async fn may_go_on(&self, begun: Instant) -> Result<bool, NodeFault> {
        if self.voices() < VOICES {
            return Ok(true);
        }
        let named: Vec<Peer> = self.peers().filter(|peer| peer.is_named).collect();
        let claims: Vec<Claim> = named.iter().filter_map(|peer| claim(peer, |_| false)).collect();
        let Tip { height, hash, timestamp, .. } = self.chain.tip();
        let standing = SyncStanding {
            height,
            age: Start::by_age(timestamp, now_ms(), self.trust.period),
            is_needed: self.is_needed()?,
            has_met: has_met(named.len(), self.network.named(), begun.elapsed(), self.wait),
        };
        match standing.judge(&claims) {
            Next::GoOn => Ok(true),
            Next::Wait => Ok(false),
            Next::Ask => {
                let is_common = height == 0 || self.confirm().is_common(height, &hash).await;
                Ok(is_common && !is_followed(&self.network, &self.chain, named).await)
            }
        }
    }

    /// Whether there is no block after the tip without the own vote.
    fn is_needed(&self) -> Result<bool, NodeFault> {
        let Some(own) = self.trust.own else { return Ok(false) };
        let set = next_validators(self.chain.store(), self.chain.spec())?.next;
        Ok(!set.is_quorum_without(&own))
    }

    fn confirm(&self) -> Confirm<'_> {
        Confirm {
            network: &self.network,
            voices: self.voices(),
            limits: SizeLimits::from(self.chain.spec().params()),
        }
    }

    /// Says now and then why the node does not go on.
    fn tell_lack(&self, told: &mut Option<Instant>) {
        self.state.set_lacks_voices(true);
        if told.is_none_or(|told| told.elapsed() >= VOICES_TOLD_INTERVAL) {
            *told = Some(Instant::now());
            let height = self.chain.tip().height;
            let connected = self.peers().filter(|peer| peer.is_named).count();
            let named = self.network.named();
            tracing::warn!(
                height,
                connected,
                named,
                "this node waits until {VOICES} of the peers that it names have the same blocks"
            );
        }
    }

    /// Waits until half of the named peers have said how far they are, for a while. What strangers
    /// say ends no wait.
    async fn meet(&self) {
        let deadline = Instant::now() + self.wait;
        let have_told = || self.peers().filter(|peer| peer.is_named).count();
        while have_told() < self.network.named().div_ceil(2).max(1) && Instant::now() < deadline {
            tokio::time::sleep(MEETING_INTERVAL).await;
        }
    }

    /// The peers that have said how far they are.
    fn peers(&self) -> impl Iterator<Item = Peer> {
        self.network.peers().into_iter().filter(|peer| peer.status.is_some())
    }

    /// What is believed of those that have not failed.
    fn belief(&self, figures: &DownloadFigures) -> Belief {
        let peers = self.peers().filter(|peer| !figures.has_given_up(peer.key));
        let claims = peers.filter_map(|peer| claim(&peer, |key| figures.is_proved(key)));
        let claims: Vec<Claim> = claims.collect();
        Belief::of(&claims)
    }

    /// Where too few named peers say how far they are, somebody has to show the next block, who
    /// counts from then on.
    async fn look_for_proof(&self, figures: &DownloadFigures) {
        let mut provers = Provers::default();
        for _ in 0..PROOF_ATTEMPTS {
            let far = self.chain.tip().height.saturating_add(BLOCKS_NEAR);
            let is_ahead = |peer: &Peer| peer.status.is_some_and(|status| status.tip > far);
            let ahead: Vec<Peer> = self.peers().filter(is_ahead).collect();
            if self.belief(figures) != Belief::Nothing || ahead.is_empty() {
                return;
            }
            if let Some(proof) = provers.ask(&self.network, &self.chain, ahead).await {
                figures.proved(proof.peer.key);
            }
        }
    }

    /// The height up to which blocks are wanted. Where several peers have to have them, it is at most
    /// what several claim.
    fn goal(&self, figures: &DownloadFigures) -> Option<u64> {
        if self.voices() < VOICES {
            let age = now_ms().saturating_sub(self.chain.tip().timestamp);
            return self.belief(figures).goal(Duration::from_millis(age) < BEHIND_AFTER);
        }
        let peers = self.peers().filter(|peer| !figures.has_given_up(peer.key));
        let claims: Vec<Claim> = peers.filter_map(|peer| claim(&peer, |_| false)).collect();
        Belief::agreed(&claims)
    }

    /// The height to catch up to, if it is ahead. The last few blocks are left to consensus, unless
    /// several peers have to have them.
    fn target(&self, figures: &DownloadFigures) -> Option<u64> {
        let near = if self.voices() < VOICES { BLOCKS_NEAR } else { 0 };
        let near = self.chain.tip().height.saturating_add(near);
        let goal = self.goal(figures);
        self.state.heard(goal);
        goal.filter(|height| *height > near)
    }

    async fn all_rounds(
        self: &Arc<Self>,
        figures: &DownloadFigures,
        stop: &CancellationToken,
    ) -> Result<(), NodeFault> {
        let progress = Arc::new(Progress::new(self.chain.tip().height));
        let mut vain = 0;
        while let Some(target) = self.target(figures)
            && vain < VAIN_MAX
            && !stop.is_cancelled()
        {
            let before = self.chain.tip().height;
            tracing::info!(height = before, target, "catching up with peers");
            match self.round(&progress, figures, stop).await? {
                Ended::Idle | Ended::Unheard => break,
                Ended::NoMore if self.chain.tip().height == before => break,
                Ended::NoMore => {}
                Ended::Wrong { from, what } => {
                    tracing::warn!(from = ?from.map(|it| it.to_string()), what, "a peer sent a wrong block");
                    if let Some(peer) = from {
                        figures.wrong(peer);
                        self.network.blame(peer, what).await;
                    }
                }
            }
            let moved = self.chain.tip().height > before;
            vain = if moved { 0 } else { vain + 1 };
            if self.peers().next().is_none() {
                // They may be back in a moment.
                stop.run_until_cancelled(self.meet()).await;
            }
        }
        progress.tell_end(match self.target(figures) {
            _ if stop.is_cancelled() => End::Stopped,
            None => End::Reached,
            Some(peers) => End::Short { peers },
        });
        Ok(())
    }

    /// One download, until it ends or brings something wrong.
    async fn round(
        self: &Arc<Self>,
        progress: &Arc<Progress>,
        figures: &DownloadFigures,
        stop: &CancellationToken,
    ) -> Result<Ended, NodeFault> {
        let (out, downloaded) = mpsc::channel(RANGES_WAITING);
        let (confirmed, ranges) = mpsc::channel(RANGES_WAITING);
        let executing = tokio::task::spawn_blocking({
            let (this, progress, stop) = (Arc::clone(self), Arc::clone(progress), stop.clone());
            let figures = figures.clone();
            move || this.execute(ranges, &progress, &figures, stop)
        });
        let first = self.chain.tip().height.saturating_add(1);
        let goal = || self.goal(figures).unwrap_or_default();
        let download = self.network.download(first, &goal, out, figures.clone());
        let confirm = self.confirm();
        let all = async {
            // The sending ends go with the download and with what confirms it, and the execution
            // comes to its end.
            let work = async {
                let mut confirming = pin!(confirm.run(downloaded, confirmed));
                tokio::select! {
                    verdict = &mut confirming => verdict,
                    () = download => confirming.await,
                }
            };
            let ended = tokio::select! {
                verdict = work => match verdict {
                    Verdict::Passed => Ended::NoMore,
                    Verdict::Wrong { from, what } => Ended::Wrong { from: Some(from), what },
                    Verdict::Unheard { .. } => Ended::Unheard,
                },
                () = stop.cancelled() => Ended::NoMore,
                () = progress.stands_still(PROGRESS_TIME_MAX) => Ended::Idle,
            };
            (ended, executing.await)
        };
        let target = || self.show(figures);
        tokio::select! {
            (ended, executed) = all => match answer_of(executed).unwrap_or(Ok(Ended::NoMore))? {
                Ended::NoMore => Ok(ended),
                wrong @ (Ended::Wrong { .. } | Ended::Idle | Ended::Unheard) => Ok(wrong),
            },
            never = progress.show(target) => match never {},
        }
    }

    /// Answers the height that is wanted. While no peer is there, it is what the last ones had.
    fn show(&self, figures: &DownloadFigures) -> u64 {
        let target = self.state.heard(self.goal(figures));
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
        figures: &DownloadFigures,
        stop: CancellationToken,
    ) -> Result<Ended, NodeFault> {
        let senders = Senders::default();
        let incoming = Incoming { ranges, range: None, has_paused: false, senders: &senders, stop };
        let replay = self.replay.replay();
        let outcome = follow(self.chain.store(), &replay, incoming, |tip, transactions| {
            self.committed(tip, transactions);
            progress.committed(tip.height, transactions);
            if let Some(peer) = senders.committed(tip.height) {
                figures.proved(peer);
            }
        });
        if let Some(other) = self.replay.other_chain() {
            return Err(NodeFault::OtherChain(other));
        }
        match outcome {
            Ok(_) => Ok(Ended::NoMore),
            Err(error) if error.storage().is_some_and(StorageError::is_uncounted_fork) => {
                tracing::warn!(%error, "the node does not execute the next block yet");
                Ok(Ended::Idle)
            }
            Err(error) => match error.wrong_block() {
                Some(height) => {
                    // By rules that this program does not know it may be right.
                    self.chain.store().require_known_fork()?;
                    Ok(Ended::Wrong { from: senders.of(height), what: error.to_string() })
                }
                None => Err(NodeFault::of_catch_up(error)),
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
    fn settle(&self) -> Result<(), NodeFault> {
        self.chain.settle()?;
        self.pool.chain_moved(now_ms()).map_err(NodeFault::Pool)
    }
}

/// Who sent what is not executed yet: last heights of ranges in ascending order.
#[derive(Default)]
struct Senders(Mutex<VecDeque<(u64, PeerKey)>>);

impl Senders {
    /// A block was good. Answers who sent it, if it was the last of a range.
    fn committed(&self, height: u64) -> Option<PeerKey> {
        let mut list = self.0.lock();
        while list.front().is_some_and(|(last, _)| *last < height) {
            list.pop_front();
        }
        list.front().filter(|(last, _)| *last == height).map(|(_, from)| *from)
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
    /// It was said that the next range has to be waited for.
    has_paused: bool,
    senders: &'a Senders,
    stop: CancellationToken,
}

impl Iterator for Incoming<'_> {
    type Item = Supply;

    fn next(&mut self) -> Option<Supply> {
        loop {
            if self.stop.is_cancelled() {
                return None;
            }
            if let Some((height, blocks)) = &mut self.range
                && let Some(p2p::ports::EncodedBlock { bytes, certificate }) = blocks.next()
            {
                let block = EncodedBlock { height: *height, bytes, certificate, stated_hash: None };
                *height = height.saturating_add(1);
                return Some(Supply::Block(block));
            }
            if self.ranges.is_empty() && !std::mem::replace(&mut self.has_paused, true) {
                return Some(Supply::Pause);
            }
            self.has_paused = false;
            let Range { first, blocks, from } = self.ranges.blocking_recv()?;
            let count = u64::try_from(blocks.len()).unwrap_or(u64::MAX);
            let last = first.saturating_add(count).saturating_sub(1);
            self.senders.0.lock().push_back((last, from));
            self.range = Some((first, blocks.into_iter()));
        }
    }
}
