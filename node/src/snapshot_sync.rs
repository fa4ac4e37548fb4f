//! Beginning with a snapshot of the state instead of with genesis.
//!
//! Before anything of the node is started, a network of its own asks peers for what they offer, checks
//! it from the validators of genesis on, fetches the chunks from all who have them, and makes the
//! database. Then that network ends, and the node starts as with any other database. If nothing comes
//! of it, the node starts with genesis.

mod fetch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use genesis::Genesis;
use p2p::ports::{EncodedBlock, Listing, Outcome, Pool, ReadError, SnapshotHead, Status};
use p2p::{Handle, PeerKey, SignedTx};
use state::store::offers::{ImportError, Intake, Offer, OfferError, Report, Verified, import};
use tokio_util::sync::CancellationToken;
use types::{Address, Hash};

use self::fetch::{Source, fetch_chunks, fetch_whole};
use crate::config::{Config, Home};
use crate::engine::block_bytes_max;
use crate::replay::ChainReplay;

/// How long peers have to be found and to offer something.
const OFFERS_TIME_MAX: Duration = Duration::from_secs(45);
/// How long to look for further peers after the first has answered that it offers nothing.
const NO_OFFER_TIME: Duration = Duration::from_secs(8);
/// How long to wait for further offers after the first one, so that chunks come from several peers.
const MORE_TIME: Duration = Duration::from_secs(3);
/// How often peers are asked until there is an offer.
const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// How long a peer may take to answer.
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
/// wrong is logged; the node then begins with genesis.
pub(crate) async fn begin(home: &Home, genesis: &Genesis, config: &Config, node_key: [u8; 32]) {
    if home.database().join("CURRENT").exists() {
        tracing::info!("there is a database: no snapshot is fetched");
        return;
    }
    tracing::info!("looking for a snapshot of the state");
    let started = Instant::now();
    match run(home, genesis, config, node_key).await {
        Ok(Report { tip, state }) => tracing::info!(
            height = tip.height,
            state_root = %tip.state_root,
            accounts = state.accounts,
            runs = state.runs,
            seconds = started.elapsed().as_secs(),
            "the node begins with a snapshot; it has no earlier blocks"
        ),
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
    let job = Job { home, replay, handle };
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
}

impl Job<'_> {
    async fn work(&self, config: &Config) -> Result<Report, SyncError> {
        let mut refused: Vec<Hash> = Vec::new();
        let mut last = SyncError::NoOffers;
        for _ in 0..ATTEMPTS {
            let offers = self.offers(&refused).await;
            let Some(best) = offers.first() else { return Err(last) };
            let sources: Vec<PeerKey> =
                offers.iter().flat_map(|offer| offer.peers.iter().copied()).collect();
            match self.take(best, &sources, config).await {
                Ok(report) => return Ok(report),
                Err(SyncError::Import(ImportError::Offer(error))) => {
                    self.blame(best, &error).await;
                    refused.push(best.head.hash);
                    last = ImportError::Offer(error).into();
                }
                Err(SyncError::Incomplete | SyncError::Import(ImportError::Missing { .. })) => {
                    last = SyncError::Incomplete;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// What peers offer but for what was refused, the highest first; of those, what most offer.
    async fn offers(&self, refused: &[Hash]) -> Vec<Candidate> {
        let started = Instant::now();
        let (mut first, mut answered) = (None, None);
        loop {
            let mut offers: Vec<Candidate> = Vec::new();
            for peer in self.handle.peers() {
                let heads = self.handle.snapshots(peer.key, ANSWER_TIME_MAX).await;
                if heads.is_ok() && answered.is_none() {
                    answered = Some(Instant::now());
                }
                for head in heads.unwrap_or_default() {
                    if refused.contains(&head.hash) {
                        continue;
                    }
                    match offers.iter_mut().find(|offer| offer.head == head) {
                        Some(offer) => offer.peers.push(peer.key),
                        None => offers.push(Candidate { head, peers: vec![peer.key] }),
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

    /// Takes an offer: checks it, fetches it, imports it.
    async fn take(
        &self,
        offer: &Candidate,
        sources: &[PeerKey],
        config: &Config,
    ) -> Result<Report, SyncError> {
        let verified = Arc::new(self.verified(offer).await?);
        let intake = Intake::open(&self.home.snapshot_intake(), &verified)?;
        let intake = Arc::new(intake);
        tracing::info!(
            height = offer.head.height,
            bytes = verified.offer.manifest.bytes(),
            missing = intake.missing().len(),
            peers = sources.len(),
            "a snapshot is offered and proved; fetching it"
        );
        let peers = sources.iter().map(|peer| Source { handle: self.handle.clone(), peer: *peer });
        if !fetch_chunks(peers.collect(), &intake).await? {
            return Err(SyncError::Incomplete);
        }
        tracing::info!(height = offer.head.height, "the snapshot is here; making the database");
        let (replay, to) = (Arc::clone(&self.replay), self.home.database());
        let options = crate::node::storage_options(config);
        let work = move || {
            let mut told = Instant::now();
            let mut progress = |done: u64, all: u64| {
                if told.elapsed() >= Duration::from_secs(2) {
                    told = Instant::now();
                    tracing::info!(done, all, "importing the snapshot");
                }
            };
            import(&intake, &verified, &replay.replay(), (&to, options), &mut progress)
        };
        let report = tokio::task::spawn_blocking(work).await;
        let report = report.map_err(|_ended| SyncError::Thread)??;
        // Its chunks are in the database now. What cannot be removed is only room on the disk.
        drop(std::fs::remove_dir_all(self.home.snapshot_intake()));
        Ok(report)
    }

    /// The offer, followed from genesis to its chunks.
    async fn verified(&self, offer: &Candidate) -> Result<Verified, SyncError> {
        let SnapshotHead { height, hash, bytes } = offer.head;
        let form = |what| SyncError::from(ImportError::from(OfferError::Form { what }));
        if bytes > state::store::offers::OFFER_BYTES_MAX {
            return Err(form("the length of an offer"));
        }
        let mut encoded = None;
        for peer in &offer.peers {
            let source = Source { handle: self.handle.clone(), peer: *peer };
            let whole = fetch_whole(&source, hash, bytes).await;
            encoded = whole.filter(|whole| Hash::digest(whole) == hash);
            if encoded.is_some() {
                break;
            }
        }
        let Some(encoded) = encoded else { return Err(form("what was sent as an offer")) };
        let replay = Arc::clone(&self.replay);
        let work = move || Offer::decode(&encoded)?.verify(&replay.replay());
        let verified = tokio::task::spawn_blocking(work).await;
        let verified = verified.map_err(|_ended| SyncError::Thread)?.map_err(ImportError::from)?;
        if verified.tip.height == height {
            Ok(verified)
        } else {
            Err(form("the height of an offer"))
        }
    }

    async fn blame(&self, offer: &Candidate, error: &OfferError) {
        let height = offer.head.height;
        tracing::warn!(height, %error, peers = offer.peers.len(), "a snapshot is refused");
        for peer in &offer.peers {
            self.handle.blame(*peer, format!("an offered snapshot: {error}")).await;
        }
    }
}

/// The pool and the chain of a node that has neither.
struct Nothing;

#[async_trait]
impl Pool for Nothing {
    async fn submit(&self, txs: Vec<SignedTx>) -> Vec<Outcome> {
        vec![Outcome::Unable; txs.len()]
    }

    async fn unknown(&self, _: Vec<Hash>) -> Vec<Hash> {
        Vec::new()
    }

    async fn list(&self, _: Option<Address>, _: usize) -> Listing {
        Listing::default()
    }

    async fn fetch(&self, _: Vec<Hash>) -> Vec<SignedTx> {
        Vec::new()
    }

    fn height(&self) -> u64 {
        0
    }
}

impl p2p::ports::Chain for Nothing {
    fn status(&self) -> Status {
        Status { earliest: 1, tip: 0 }
    }

    fn blocks(&self, _: u64, _: u32, _: usize) -> Result<Vec<EncodedBlock>, ReadError> {
        Ok(Vec::new())
    }

    fn snapshots(&self) -> Vec<SnapshotHead> {
        Vec::new()
    }

    fn piece(&self, _: &Hash, _: u64, _: usize) -> Result<Vec<u8>, ReadError> {
        Ok(Vec::new())
    }
}
