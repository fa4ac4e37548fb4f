//! Beginning with a snapshot of the state instead of with genesis.
//!
//! Before anything of the node is started, a network of its own asks peers for what they offer, checks
//! it from the validators of genesis on, compares it (`choose.rs`), asks the named peers whether they
//! have its block (`vouch.rs`), fetches the chunks from all who have them, and makes the database. Then
//! that network ends, and the node starts as with any other database. If nothing comes of it, the node
//! starts with genesis.
//!
//! Failures are counted for each peer and each offer, never for all together: a lie costs those who
//! told it, and the others are asked as before. Only time without any gain ends the whole.

mod choose;
mod error;
mod fetch;
mod offers;
mod peers;
mod vouch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use genesis::Genesis;
use p2p::PeerKey;
use p2p::ports::Nothing;
use store::snapshots::{ImportError, Intake, OfferError, Report, Verified, import};
use tokio_util::sync::CancellationToken;
use types::SizeLimits;

use self::choose::{Choice, Content};
use self::error::SyncError;
use self::fetch::{PATIENCE, fetch_chunks};
use self::offers::{Gathered, Offers};
use self::peers::Peers;
use self::vouch::{Vouched, vouch};
use crate::config::{Config, Home};
use crate::engine::block_bytes_max;
use crate::replay::ChainReplay;
use crate::supervisor::answer_of;
use crate::sync::TrustedBlock;

/// How often all peers that are left are forgiven, when every one of them has failed.
const FORGIVEN_MAX: u32 = 2;
/// How long one tries without new chunks at the least rate (`fetch.rs`) before the node begins with
/// genesis.
const VAIN_TIME_MAX: Duration = Duration::from_secs(600);

/// Makes the database out of a snapshot, if there is no database and peers offer one. Whatever goes
/// wrong is logged; the node then begins with genesis. After `stop` it ends soon, and what was fetched
/// is there for the next time.
pub(crate) fn begin<'a>(
    home: &'a Home,
    genesis: &'a Genesis,
    config: &'a Config,
    node_key: [u8; 32],
    stop: &'a CancellationToken,
) -> BoxFuture<'a, ()> {
    Box::pin(begin_if_new(home, genesis, config, node_key, stop))
}

async fn begin_if_new(
    home: &Home,
    genesis: &Genesis,
    config: &Config,
    node_key: [u8; 32],
    stop: &CancellationToken,
) {
    if home.database().join("CURRENT").exists() {
        tracing::info!("there is a database; not fetching a snapshot");
        return;
    }
    tracing::info!("looking for a snapshot of the state");
    let started = Instant::now();
    match run(home, genesis, config, node_key, stop).await {
        Ok(Report { tip, state }) => tracing::info!(
            height = tip.height,
            state_root = %tip.state_root,
            accounts = state.accounts,
            runs = state.runs,
            seconds = started.elapsed().as_secs(),
            "the node starts from a snapshot; it has no earlier blocks"
        ),
        Err(SyncError::Stopped) => tracing::info!("asked to stop; not fetching a snapshot"),
        Err(error) => tracing::warn!(
            %error,
            "the node starts from genesis instead of a snapshot, and executes every block"
        ),
    }
}

async fn run(
    home: &Home,
    genesis: &Genesis,
    config: &Config,
    node_key: [u8; 32],
    asked: &CancellationToken,
) -> Result<Report, SyncError> {
    // An offer with a header of another chain at the trusted height is refused like a forged one.
    let trusted = TrustedBlock::of(&config.sync);
    let replay = Arc::new(ChainReplay::new(genesis)?.trusting(trusted));
    let params = genesis.chain().params;
    let longest = params.max_tx_bytes.max(params.max_chunk_tx_bytes);
    let setup = p2p::Setup {
        network: p2p::NetworkId::new(genesis.chain().chain_id, genesis.hash()),
        config: config.p2p.gossip.clone(),
        node_key,
        pool: Arc::new(Nothing),
        chain: Arc::new(Nothing),
        tx_bytes_max: usize::try_from(longest).unwrap_or(usize::MAX),
        block_bytes_max: block_bytes_max(&params),
    };
    let stop = CancellationToken::new();
    let p2p::Started { handle, tasks } = p2p::start(setup, stop.clone()).await?;
    let mut running = tokio::task::JoinSet::new();
    for p2p::Task { name, run } in tasks {
        running.spawn(async move {
            if let Err(fault) = run.await {
                tracing::warn!(task = name, %fault, "the network for snapshots failed");
            }
        });
    }
    let (limits, stopped) = (SizeLimits::from(&params), asked.clone());
    let job = Job { home, replay, peers: Peers::new(handle), limits, stop: stopped };
    let report = job.work(config).await;
    // The node's own network takes the same port.
    stop.cancel();
    while running.join_next().await.is_some() {}
    report
}

struct Job<'a> {
    home: &'a Home,
    replay: Arc<ChainReplay>,
    peers: Peers,
    limits: SizeLimits,
    stop: CancellationToken,
}

/// How an attempt ended that did not end with a database.
enum Vain {
    /// What no root covers contradicts what one does: whoever offers it lies.
    Lie(OfferError),
    /// Too few of the named peers have its block.
    Unheard,
    /// Nobody gives the offer again; whose fault that is has been counted.
    Withheld,
    /// Chunks did not come.
    Incomplete {
        /// Whether some did.
        has_gained: bool,
    },
}

impl Job<'_> {
    async fn work(&self, config: &Config) -> Result<Report, SyncError> {
        let mut tries: BTreeMap<Content, u32> = BTreeMap::new();
        let mut lies: BTreeSet<Content> = BTreeSet::new();
        let (mut gained, mut forgiven) = (Instant::now(), 0);
        let mut last = SyncError::NoOffers;
        while gained.elapsed() < VAIN_TIME_MAX {
            let gathered = self.unless_stopped(self.offers().gather(&lies, &tries)).await?;
            let Some(best) = gathered.choices.first() else {
                // Everybody has failed, or nobody offers anything that can be used.
                if let (SyncError::NoOffers, Some(height), Some(trusted)) =
                    (&last, gathered.above_trusted, self.replay.trusted_height())
                {
                    last = SyncError::AboveTrusted { height, trusted };
                }
                self.peers.tell_nothing();
                let can_forgive = forgiven < FORGIVEN_MAX && self.peers.forgive();
                if !can_forgive {
                    return Err(last);
                }
                forgiven = forgiven.saturating_add(1);
                continue;
            };
            match self.take(best, &gathered, config).await? {
                Ok(report) => return Ok(report),
                Err(Vain::Lie(error)) => {
                    self.blame(best, &error).await;
                    lies.insert(best.content);
                    last = ImportError::Offer(error).into();
                }
                Err(Vain::Unheard) => {
                    tell_unheard(best);
                    came_to_nothing(&mut tries, best);
                    last = SyncError::Unheard;
                }
                Err(Vain::Withheld) => {
                    came_to_nothing(&mut tries, best);
                    last = SyncError::Incomplete;
                }
                Err(Vain::Incomplete { has_gained }) => {
                    if has_gained {
                        (gained, forgiven) = (Instant::now(), 0);
                        self.peers.forget_gone();
                    }
                    came_to_nothing(&mut tries, best);
                    self.unless_stopped(self.offers().gave_up(best, &gathered)).await?;
                    last = SyncError::Incomplete;
                }
            }
        }
        Err(last)
    }

    const fn offers(&self) -> Offers<'_> {
        Offers { peers: &self.peers, replay: &self.replay }
    }

    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, SyncError> {
        self.stop.run_until_cancelled(work).await.ok_or(SyncError::Stopped)
    }

    /// Takes an offer: fetches it, imports it.
    async fn take(
        &self,
        offer: &Choice<PeerKey>,
        gathered: &Gathered,
        config: &Config,
    ) -> Result<Result<Report, Vain>, SyncError> {
        let Some(verified) = self.unless_stopped(self.offers().whole(gathered, offer)).await?
        else {
            return Ok(Err(Vain::Withheld));
        };
        let vouched = vouch(self.peers.handle(), &self.limits, offer, &verified.tip);
        match self.unless_stopped(vouched).await? {
            Vouched::Enough => {}
            Vouched::Unheard => return Ok(Err(Vain::Unheard)),
            Vouched::Other => {
                let what = "the named peers have another block";
                let height = verified.tip.height;
                return Ok(Err(Vain::Lie(OfferError::Header { height, what })));
            }
        }
        let verified = Arc::new(verified);
        let intake = match self.fetch(offer, gathered, &verified).await? {
            Ok(intake) => intake,
            Err(vain) => return Ok(Err(vain)),
        };
        let height = offer.content.height;
        tracing::info!(height, "the snapshot has arrived; building the database");
        let (replay, to) = (Arc::clone(&self.replay), self.home.database());
        let (options, stop) = (config.storage.options(), self.stop.clone());
        let work = move || {
            let mut told = Instant::now();
            let mut progress = |done: u64, all: u64| {
                if stop.is_cancelled() {
                    return false;
                }
                if told.elapsed() >= Duration::from_secs(2) {
                    told = Instant::now();
                    tracing::info!(done, all, "importing the snapshot");
                }
                true
            };
            import(&intake, &verified, &replay.replay(), (&to, options), &mut progress)
        };
        let answer = answer_of(tokio::task::spawn_blocking(work).await);
        match answer.ok_or(SyncError::Thread)? {
            Ok(report) => {
                // Its chunks are in the database now. What cannot be removed is only room on the disk.
                drop(std::fs::remove_dir_all(self.home.snapshot_intake()));
                Ok(Ok(report))
            }
            Err(ImportError::Stopped) => Err(SyncError::Stopped),
            Err(ImportError::Offer(error) | ImportError::Manifest(error)) => {
                Ok(Err(Vain::Lie(error)))
            }
            Err(ImportError::Missing { .. }) => Ok(Err(Vain::Incomplete { has_gained: true })),
            Err(error) => Err(error.into()),
        }
    }

    /// The chunks of an offer, all of them checked, from those with a voice, and what these do not
    /// give from all who offer anything: a chunk is named by what it contains, and several offers have
    /// it.
    async fn fetch(
        &self,
        offer: &Choice<PeerKey>,
        gathered: &Gathered,
        verified: &Arc<Verified>,
    ) -> Result<Result<Arc<Intake>, Vain>, SyncError> {
        let manifest = &verified.offer.manifest;
        let intake = Intake::open(&self.home.snapshot_intake(), manifest);
        let intake = Arc::new(intake.map_err(SyncError::Import)?);
        let missing = intake.missing().len();
        let tellers = gathered.tellers();
        tracing::info!(
            height = offer.content.height,
            bytes = manifest.bytes(),
            missing,
            agreed = offer.voices(),
            peers = tellers.len(),
            "found a proved snapshot; fetching it"
        );
        let speakers: BTreeSet<_> =
            tellers.iter().filter(|teller| teller.has_voice).copied().collect();
        let has_strangers = speakers.len() < tellers.len();
        let mut was_slow = false;
        for from in [Some(speakers), has_strangers.then_some(tellers)].into_iter().flatten() {
            let asked = from.iter().filter(|teller| !self.peers.has_failed(&teller.peer));
            let sources = asked.map(|teller| self.peers.source(teller.peer)).collect();
            let fetched = self.unless_stopped(fetch_chunks(sources, &intake, PATIENCE)).await??;
            self.peers.fault(fetched.slow);
            if let Some(lie) = fetched.lie {
                return Ok(Err(Vain::Lie(lie)));
            }
            if fetched.is_all {
                return Ok(Ok(intake));
            }
            was_slow = fetched.was_slow;
        }
        // What comes slower than it must is no gain: it could go on like that for days.
        let has_gained = !was_slow && intake.missing().len() < missing;
        Ok(Err(Vain::Incomplete { has_gained }))
    }

    async fn blame(&self, offer: &Choice<PeerKey>, error: &OfferError) {
        let height = offer.content.height;
        tracing::warn!(height, %error, peers = offer.tellers.len(), "an offered snapshot is wrong");
        for peer in offer.peers() {
            self.peers.handle().blame(peer, format!("an offered snapshot: {error}")).await;
        }
    }
}

/// Counts an attempt with an offer.
fn came_to_nothing(tries: &mut BTreeMap<Content, u32>, offer: &Choice<PeerKey>) {
    let tries = tries.entry(offer.content).or_insert(0);
    *tries = tries.saturating_add(1);
}

fn tell_unheard(offer: &Choice<PeerKey>) {
    let height = offer.content.height;
    tracing::warn!(
        height,
        block = %offer.content.block,
        "not using a snapshot yet: too few of the named peers have its block"
    );
}
