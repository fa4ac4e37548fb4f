//! Beginning with a snapshot of the state instead of with genesis.
//!
//! Before anything of the node is started, a network of its own asks peers for what they offer, checks
//! it from the validators of genesis on, fetches the chunks from all who have them, and makes the
//! database. Then that network ends, and the node starts as with any other database. If nothing comes
//! of it, the node starts with genesis.

mod fetch;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use genesis::Genesis;
use p2p::ports::{Nothing, SnapshotHead};
use p2p::{Handle, PeerKey};
use parking_lot::Mutex;
use state::store::offers::{ImportError, Intake, Offer, OfferError, Report, Verified, import};
use tokio_util::sync::CancellationToken;
use types::Hash;

use self::fetch::{Fetched, Source, fetch_chunks, fetch_whole};
use crate::config::{Config, Home};
use crate::engine::block_bytes_max;
use crate::replay::ChainReplay;
use crate::supervisor::answer_of;

/// How long peers have to be found and to offer something.
const OFFERS_TIME_MAX: Duration = Duration::from_secs(45);
/// How long to look for further peers after the first has answered that it offers nothing.
const NO_OFFER_TIME: Duration = Duration::from_secs(8);
/// How long to wait for further offers after the first one, so that chunks come from several peers.
const MORE_TIME: Duration = Duration::from_secs(3);
/// How often peers are asked until there is an offer.
const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// How long a peer may take to say what it offers.
const HEADS_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a peer may take to answer with a part of it.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
/// How often to begin anew, with newer offers, when peers no longer have the chunks of one.
const ATTEMPTS: u32 = 8;

/// Why a node does not begin with a snapshot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    /// Nobody offers one.
    #[error("no peer offers a snapshot that can be verified")]
    NoOffers,
    /// Those who offered it do not give it.
    #[error("the chunks of the snapshots that were offered did not come")]
    Incomplete,
    /// Those who offered it do not give even the offer.
    #[error("the snapshot of height {height} was offered but did not come")]
    Withheld {
        /// The height that it was said to have.
        height: u64,
    },
    /// The node was asked to stop.
    #[error("the node was asked to stop")]
    Stopped,
    /// The network did not start.
    #[error(transparent)]
    Network(#[from] p2p::StartError),
    /// The database could not be made.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Genesis names validators that cannot decide anything.
    #[error(transparent)]
    Validators(#[from] consensus::ValidatorSetError),
    /// A thread ended without an answer.
    #[error("a thread of the import ended early")]
    Thread,
}

/// Makes the database out of a snapshot, if there is no database and peers offer one. Whatever goes
/// wrong is logged; the node then begins with genesis. After `stop` it ends soon, and what was fetched
/// is there for the next time.
pub(crate) async fn begin(
    home: &Home,
    genesis: &Genesis,
    config: &Config,
    node_key: [u8; 32],
    stop: &CancellationToken,
) {
    if home.database().join("CURRENT").exists() {
        tracing::info!("there is a database: no snapshot is fetched");
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
            "the node begins with a snapshot; it has no earlier blocks"
        ),
        Err(SyncError::Stopped) => tracing::info!("no snapshot is fetched: asked to stop"),
        Err(error) => tracing::warn!(
            %error,
            "the node does not begin with a snapshot but with genesis, and executes every block"
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
    let replay = Arc::new(ChainReplay::new(genesis)?);
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
    let job = Job { home, replay, handle, avoided: Mutex::default(), stop: asked.clone() };
    let report = job.work(config).await;
    // The node's own network takes the same port.
    stop.cancel();
    while running.join_next().await.is_some() {}
    report
}

/// Peers by the offer that they make.
#[derive(Clone, Debug)]
struct Candidate {
    head: SnapshotHead,
    peers: Vec<PeerKey>,
}

struct Job<'a> {
    home: &'a Home,
    replay: Arc<ChainReplay>,
    handle: Handle,
    /// Peers that did not give what they offered, or gave it too slowly. They are asked only when
    /// nobody else offers anything.
    avoided: Mutex<BTreeSet<PeerKey>>,
    stop: CancellationToken,
}

impl Job<'_> {
    async fn work(&self, config: &Config) -> Result<Report, SyncError> {
        let mut refused: Vec<Hash> = Vec::new();
        let mut last = SyncError::NoOffers;
        for _ in 0..ATTEMPTS {
            let offers = self.unless_stopped(self.offers(&refused)).await?;
            let Some(best) = offers.first() else { return Err(last) };
            let sources = offers.iter().flat_map(|offer| offer.peers.iter().copied()).collect();
            match self.take(best, &sources, config).await {
                Ok(report) => return Ok(report),
                Err(SyncError::Import(ImportError::Offer(error))) => {
                    self.blame(best, &error).await;
                    refused.push(best.head.hash);
                    last = ImportError::Offer(error).into();
                }
                Err(error @ SyncError::Withheld { .. }) => {
                    tracing::warn!(%error, peers = best.peers.len(), "looking for another");
                    refused.push(best.head.hash);
                    last = error;
                }
                Err(SyncError::Incomplete | SyncError::Import(ImportError::Missing { .. })) => {
                    last = SyncError::Incomplete;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, SyncError> {
        self.stop.run_until_cancelled(work).await.ok_or(SyncError::Stopped)
    }

    fn source(&self, peer: PeerKey) -> Source {
        Source { handle: self.handle.clone(), peer, answer_time: ANSWER_TIME_MAX }
    }

    /// What peers offer but for what was refused, the highest first; of those, what most offer.
    async fn offers(&self, refused: &[Hash]) -> Vec<Candidate> {
        let started = Instant::now();
        let (mut first, mut answered) = (None, None);
        loop {
            let mut offers: Vec<Candidate> = Vec::new();
            let asked = self.whom_to_ask().into_iter().map(async |peer| {
                (peer.key, self.handle.snapshots(peer.key, HEADS_TIME_MAX).await)
            });
            for (peer, heads) in join_all(asked).await {
                if heads.is_ok() && answered.is_none() {
                    answered = Some(Instant::now());
                }
                for head in heads.unwrap_or_default() {
                    if refused.contains(&head.hash) {
                        continue;
                    }
                    match offers.iter_mut().find(|offer| offer.head == head) {
                        Some(offer) => offer.peers.push(peer),
                        None => offers.push(Candidate { head, peers: vec![peer] }),
                    }
                }
            }
            offers.sort_by_key(|offer| std::cmp::Reverse((offer.head.height, offer.peers.len())));
            if !offers.is_empty() && first.is_none() {
                first = Some(Instant::now());
            }
            let has_passed = |since: Option<Instant>, time| {
                since.is_some_and(|since: Instant| since.elapsed() >= time)
            };
            let is_hopeless = first.is_none() && has_passed(answered, NO_OFFER_TIME);
            let is_enough = has_passed(first, MORE_TIME) || is_hopeless;
            if is_enough || started.elapsed() >= OFFERS_TIME_MAX {
                return offers;
            }
            tokio::time::sleep(ASK_INTERVAL).await;
        }
    }

    /// The peers that have not failed; all, if there are no others.
    fn whom_to_ask(&self) -> Vec<p2p::Peer> {
        let mut avoided = self.avoided.lock();
        let peers = self.handle.peers();
        if peers.iter().all(|peer| avoided.contains(&peer.key)) {
            avoided.clear();
        }
        peers.into_iter().filter(|peer| !avoided.contains(&peer.key)).collect()
    }

    /// Takes an offer: checks it, fetches it, imports it.
    async fn take(
        &self,
        offer: &Candidate,
        sources: &BTreeSet<PeerKey>,
        config: &Config,
    ) -> Result<Report, SyncError> {
        let (verified, intake) = self.unless_stopped(self.fetch(offer, sources)).await??;
        tracing::info!(height = offer.head.height, "the snapshot is here; making the database");
        let (replay, to) = (Arc::clone(&self.replay), self.home.database());
        let (options, stop) = (crate::node::storage_options(config), self.stop.clone());
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
        let report = match answer_of(tokio::task::spawn_blocking(work).await) {
            Some(Err(ImportError::Stopped)) => return Err(SyncError::Stopped),
            report => report.ok_or(SyncError::Thread)??,
        };
        // Its chunks are in the database now. What cannot be removed is only room on the disk.
        drop(std::fs::remove_dir_all(self.home.snapshot_intake()));
        Ok(report)
    }

    /// The offer with its chunks, all of them checked.
    async fn fetch(
        &self,
        offer: &Candidate,
        sources: &BTreeSet<PeerKey>,
    ) -> Result<(Arc<Verified>, Arc<Intake>), SyncError> {
        let verified = Arc::new(self.verified(offer).await?);
        let intake = Arc::new(Intake::open(&self.home.snapshot_intake(), &verified)?);
        tracing::info!(
            height = offer.head.height,
            bytes = verified.offer.manifest.bytes(),
            missing = intake.missing().len(),
            peers = sources.len(),
            "a snapshot is offered and proved; fetching it"
        );
        let sources = sources.iter().map(|peer| self.source(*peer)).collect();
        let Fetched { is_all, slow } = fetch_chunks(sources, &intake).await?;
        self.avoided.lock().extend(slow);
        if is_all { Ok((verified, intake)) } else { Err(SyncError::Incomplete) }
    }

    /// The offer, followed from genesis to its chunks.
    async fn verified(&self, offer: &Candidate) -> Result<Verified, SyncError> {
        let SnapshotHead { height, hash: _, bytes } = offer.head;
        let form = |what| SyncError::from(ImportError::from(OfferError::Form { what }));
        if bytes > state::store::offers::OFFER_BYTES_MAX {
            return Err(form("the length of an offer"));
        }
        let encoded = self.offer_bytes(offer).await.ok_or(SyncError::Withheld { height })?;
        let replay = Arc::clone(&self.replay);
        let work = move || Offer::decode(&encoded)?.verify(&replay.replay());
        let verified = answer_of(tokio::task::spawn_blocking(work).await);
        let verified = verified.ok_or(SyncError::Thread)?.map_err(ImportError::from)?;
        if verified.tip.height == height {
            Ok(verified)
        } else {
            Err(form("the height of an offer"))
        }
    }

    /// What the hash of an offer names, from the first who gives it.
    async fn offer_bytes(&self, offer: &Candidate) -> Option<Vec<u8>> {
        let SnapshotHead { height, hash, bytes } = offer.head;
        for peer in &offer.peers {
            let lack = match fetch_whole(&self.source(*peer), hash, bytes).await {
                Ok(whole) if Hash::digest(&whole) == hash => return Some(whole),
                Ok(_) => {
                    let what =
                        format!("the bytes of the offer of height {height} have not its hash");
                    self.handle.blame(*peer, what).await;
                    continue;
                }
                Err(lack) => lack,
            };
            tracing::warn!(%peer, height, ?lack, "a peer does not give what it offers");
            self.avoided.lock().insert(*peer);
        }
        None
    }

    async fn blame(&self, offer: &Candidate, error: &OfferError) {
        let height = offer.head.height;
        tracing::warn!(height, %error, peers = offer.peers.len(), "a snapshot is refused");
        for peer in &offer.peers {
            self.handle.blame(*peer, format!("an offered snapshot: {error}")).await;
        }
    }
}
