//! Fetching from peers that drip, over loopback.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use p2p::ports::{ChainSource, EncodedBlock, Nothing, ReadError, Status};
use store::snapshots::{Extra, FORMAT, Manifest};
use tokio_util::sync::CancellationToken;

use super::*;

const WHOLE: u64 = 600_000;
/// What is waited for a peer that drips.
const PATIENCE: Duration = Duration::from_millis(300);

/// Longer than any answer takes.
const LONG: Duration = Duration::from_secs(30);

/// A peer that gives so many bytes in an answer, and takes its time for it.
struct Dripper {
    /// What it has under these hashes; of all others it has sevens.
    extras: BTreeMap<Hash, Vec<u8>>,
    whole: u64,
    piece_bytes: usize,
    pause: Duration,
    /// Nothing ever comes through.
    gate: Mutex<Receiver<()>>,
    asked: AtomicUsize,
}

impl ChainSource for Dripper {
    fn status(&self) -> Status {
        Status { earliest: 1, tip: 1 }
    }

    fn blocks(&self, _: u64, _: u32, _: usize) -> Result<Vec<EncodedBlock>, ReadError> {
        Ok(Vec::new())
    }

    fn piece(&self, hash: &Hash, offset: u64, bytes_max: usize) -> Result<Vec<u8>, ReadError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _nothing = self.gate.lock().recv_timeout(self.pause);
        if let Some(extra) = self.extras.get(hash) {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            return Ok(extra.iter().skip(offset).take(bytes_max).copied().collect());
        }
        let left = usize::try_from(self.whole - offset).unwrap_or(usize::MAX);
        Ok(vec![7; left.min(bytes_max).min(self.piece_bytes)])
    }
}

/// Two nodes that know each other; the second is the dripper. They are gone when this is dropped.
struct Pair {
    source: Source,
    dripper: Arc<Dripper>,
    stop: CancellationToken,
    _gate: Sender<()>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn node(chain: Arc<dyn ChainSource>, stop: &CancellationToken) -> Handle {
    let mut node_key = [0; 32];
    getrandom::fill(&mut node_key).unwrap();
    let listen = "/ip4/127.0.0.1/tcp/0".to_owned();
    let setup = p2p::Setup {
        network: p2p::NetworkId::new("town".to_owned(), Hash::digest(b"genesis")),
        config: p2p::Config { listen, exchange: false, ..p2p::Config::default() },
        node_key,
        pool: Arc::new(Nothing),
        chain,
        tx_bytes_max: 1 << 20,
        block_bytes_max: 1 << 20,
    };
    let started = p2p::start(setup, stop.clone()).await.unwrap();
    for task in started.tasks {
        tokio::spawn(task.run);
    }
    started.handle
}

/// Waits until there is a peer, or there is none any more.
async fn peers(handle: &Handle, count: usize) -> Vec<p2p::Peer> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let peers = handle.peers();
        if peers.len() == count {
            return peers;
        }
        assert!(Instant::now() < deadline, "waited for {count} peers, there are {peers:?}");
        // The pause of the loop that waits with a deadline.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Pair {
    /// Fetches a chunk that is no extra.
    async fn fetch(&self) -> Result<Whole, Lack> {
        fetch_whole(&self.source, Hash::digest(b"a chunk"), CHUNK_BYTES_MAX).await
    }
}

/// With a peer that gives chunks of `whole` bytes in answers of `piece_bytes`, and has these extras.
async fn pair(
    extras: BTreeMap<Hash, Vec<u8>>,
    (whole, piece_bytes): (u64, usize),
    pause: Duration,
) -> Pair {
    let (gate, closed) = channel();
    let (gate_end, asked) = (Mutex::new(closed), AtomicUsize::new(0));
    let dripper = Arc::new(Dripper { extras, whole, piece_bytes, pause, gate: gate_end, asked });
    let stop = CancellationToken::new();
    let (asking, dripping) =
        (node(Arc::new(Nothing), &stop).await, node(dripper.clone(), &stop).await);
    let address = dripping.listen_addresses().remove(0);
    asking.add_peer(&format!("{address}/p2p/{}", dripping.peer_id())).await.unwrap();
    let peer = peers(&asking, 1).await.remove(0).key;
    let source = Source { handle: asking, peer, answer_time: LONG };
    Pair { source, dripper, stop, _gate: gate }
}

/// With a peer that drips, whose answers are not waited for long.
async fn dripping(piece_bytes: usize, pause: Duration) -> Pair {
    let mut pair = pair(BTreeMap::new(), (WHOLE, piece_bytes), pause).await;
    pair.source.answer_time = PATIENCE;
    pair
}

/// With a peer that gives chunks of so many bytes at once.
async fn fast(whole: u64) -> Pair {
    pair(BTreeMap::new(), (whole, 1 << 20), Duration::ZERO).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_sends_crumbs_or_drips_is_asked_for_one_and_has_sent_too_little() {
    for piece_bytes in [1_000, 70_000] {
        let pair = dripping(piece_bytes, PATIENCE / 2).await;
        let fetched = pair.fetch().await;
        // The hash of so little is another; that is judged where the bytes are known.
        assert_eq!(Ok(piece_bytes), fetched.map(|whole| whole.bytes.len()));
        assert_eq!(1, pair.dripper.asked.load(Ordering::SeqCst));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_of_several_answers_comes_whole_however_long_it_is_said_to_be() {
    // An answer that is full may be the last, so the next one is asked for, and is empty.
    for (whole, asked) in [(WHOLE, 1), (3 << 20, 4), ((2 << 20) + 5, 3)] {
        let pair = fast(whole).await;
        let fetched = pair.fetch().await;
        assert_eq!(Ok(whole), fetched.map(|whole| length(&whole.bytes)));
        assert_eq!(asked, pair.dripper.asked.load(Ordering::SeqCst));
    }
    // More than any chunk may have is not waited for.
    let pair = fast(1 << 30).await;
    let fetched = pair.fetch().await;
    assert_eq!(Ok(CHUNK_BYTES_MAX), fetched.map(|whole| length(&whole.bytes)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_does_not_answer_at_all_is_slow_and_one_that_is_gone_is_not() {
    let pair = dripping(1 << 20, LONG).await;
    assert_eq!(Err(Lack::Slow), pair.fetch().await);
    pair.source.handle.blame(pair.source.peer, "of the test".to_owned()).await;
    peers(&pair.source.handle, 0).await;
    assert_eq!(Err(Lack::Absent), pair.fetch().await);
}

/// Rows of turns, as an extra has them.
fn extra(number: u32, value_bytes: usize) -> Vec<u8> {
    let value = vec![7; value_bytes];
    let length = u32::try_from(value_bytes).unwrap();
    let key = number.to_le_bytes();
    [[10].as_slice(), &4_u32.to_le_bytes(), &key, &length.to_le_bytes(), &value].concat()
}

/// A manifest of these chunks, each said to be so much longer than it is.
fn manifest(extras: &BTreeMap<Hash, Vec<u8>>, lie: u64) -> Manifest {
    let said = |(hash, bytes): (&Hash, &Vec<u8>)| Extra { hash: *hash, bytes: length(bytes) + lie };
    let extras = extras.iter().map(said).collect();
    Manifest { format: FORMAT, height: 1, parts: Vec::new(), extras }
}

fn extras(count: u32, value_bytes: usize) -> BTreeMap<Hash, Vec<u8>> {
    let chunks = (0..count).map(|number| extra(number, value_bytes));
    chunks.map(|bytes| (Hash::digest(&bytes), bytes)).collect()
}

/// What comes of fetching these chunks from a peer that takes so long for each.
async fn fetched(chunks: BTreeMap<Hash, Vec<u8>>, lie: u64, pause: Duration) -> (Fetched, Pair) {
    let said = manifest(&chunks, lie);
    fetched_as(chunks, &said, pause, 4 * PATIENCE).await
}

/// The same with what the manifest says of them.
async fn fetched_as(
    chunks: BTreeMap<Hash, Vec<u8>>,
    said: &Manifest,
    pause: Duration,
    patience: Duration,
) -> (Fetched, Pair) {
    let pair = pair(chunks, (0, 1 << 20), pause).await;
    let folder = tempfile::tempdir().unwrap();
    let intake = Arc::new(Intake::open(folder.path(), said).unwrap());
    let fetched = fetch_chunks(vec![pair.source.clone()], &intake, patience).await.unwrap();
    (fetched, pair)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_that_come_in_time_but_below_the_least_rate_end_the_fetch() {
    let started = Instant::now();
    let (fetched, _pair) = fetched(extras(200, 10), 0, PATIENCE).await;
    assert!(fetched.was_slow && !fetched.is_all, "{fetched:?} {:?}", started.elapsed());
    assert!(started.elapsed() < 20 * PATIENCE, "{:?}", started.elapsed());
    assert!(fetched.slow.is_empty(), "no answer was late");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_that_come_at_the_least_rate_are_fetched_however_long_it_takes() {
    // Each pays for more than a second.
    let (fetched, _pair) = fetched(extras(12, 100_000), 0, PATIENCE).await;
    assert!(fetched.is_all && !fetched.was_slow, "{fetched:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_that_lies_about_its_chunks_is_found_out_and_their_sender_is_not_blamed() {
    let (fetched, pair) = fetched(extras(20, 100), 1, Duration::ZERO).await;
    assert!(matches!(fetched.lie, Some(OfferError::Numbers { .. })), "{fetched:?}");
    assert_eq!(1, pair.source.handle.peers().len());
    assert_eq!(0, pair.source.handle.counters().bans.get());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_fetched_than_the_manifest_says_and_nobody_is_kept_out_for_it() {
    let large = extras(1, 3 << 20);
    let said = large.keys().map(|hash| (*hash, extra(0, 10))).collect();
    let (fetched, pair) = fetched_as(large, &manifest(&said, 0), Duration::ZERO, LONG).await;
    assert!(!fetched.is_all && fetched.slow.contains(&pair.source.peer), "{fetched:?}");
    assert!(pair.dripper.asked.load(Ordering::SeqCst) <= PER_PEER);
    assert_eq!(0, pair.source.handle.counters().bans.get());
}
