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

async fn pair(piece_bytes: usize, pause: Duration) -> Pair {
    pair_of(WHOLE, piece_bytes, pause).await
}

async fn pair_of(whole: u64, piece_bytes: usize, pause: Duration) -> Pair {
    pair_with(BTreeMap::new(), (whole, piece_bytes), pause).await
}

/// With a peer that has these extras.
async fn pair_with(
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
    let source = Source { handle: asking, peer, answer_time: PATIENCE };
    Pair { source, dripper, stop, _gate: gate }
}

fn run(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap().block_on(test);
}

#[test]
fn a_peer_that_sends_crumbs_or_drips_is_asked_for_one_and_has_sent_too_little() {
    run(async {
        for piece_bytes in [1_000, 70_000] {
            let pair = pair(piece_bytes, PATIENCE / 2).await;
            let fetched =
                fetch_whole(&pair.source, Hash::digest(b"a chunk"), CHUNK_BYTES_MAX).await;
            // The hash of so little is another; that is judged where the bytes are known.
            assert_eq!(Ok(piece_bytes), fetched.map(|whole| whole.bytes.len()));
            assert_eq!(1, pair.dripper.asked.load(Ordering::SeqCst));
        }
    });
}

#[test]
fn a_chunk_of_several_answers_comes_whole_however_long_it_is_said_to_be() {
    run(async {
        // An answer that is full may be the last, so the next one is asked for, and is empty.
        for (whole, asked) in [(WHOLE, 1), (3 << 20, 4), ((2 << 20) + 5, 3)] {
            let mut pair = pair_of(whole, 1 << 20, Duration::ZERO).await;
            pair.source.answer_time = LONG;
            let fetched =
                fetch_whole(&pair.source, Hash::digest(b"a chunk"), CHUNK_BYTES_MAX).await;
            assert_eq!(Ok(whole), fetched.map(|whole| length(&whole.bytes)));
            assert_eq!(asked, pair.dripper.asked.load(Ordering::SeqCst));
        }
        // More than any chunk may have is not waited for.
        let mut pair = pair_of(1 << 30, 1 << 20, Duration::ZERO).await;
        pair.source.answer_time = LONG;
        let fetched = fetch_whole(&pair.source, Hash::digest(b"a chunk"), CHUNK_BYTES_MAX).await;
        assert_eq!(Ok(CHUNK_BYTES_MAX), fetched.map(|whole| length(&whole.bytes)));
    });
}

#[test]
fn a_peer_that_does_not_answer_at_all_is_slow_and_one_that_is_gone_is_not() {
    run(async {
        let pair = pair(1 << 20, Duration::from_secs(30)).await;
        let fetched = fetch_whole(&pair.source, Hash::digest(b"a chunk"), CHUNK_BYTES_MAX).await;
        assert_eq!(Err(Lack::Slow), fetched);
        pair.source.handle.blame(pair.source.peer, "of the test".to_owned()).await;
        peers(&pair.source.handle, 0).await;
        let fetched = fetch_whole(&pair.source, Hash::digest(b"a chunk"), CHUNK_BYTES_MAX).await;
        assert_eq!(Err(Lack::Absent), fetched);
    });
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
async fn fetched(chunks: &BTreeMap<Hash, Vec<u8>>, lie: u64, pause: Duration) -> (Fetched, Pair) {
    let mut pair = pair_with(chunks.clone(), (0, 1 << 20), pause).await;
    pair.source.answer_time = LONG;
    let folder = tempfile::tempdir().unwrap();
    let intake = Arc::new(Intake::open(folder.path(), &manifest(chunks, lie)).unwrap());
    let fetched = fetch_chunks(vec![pair.source.clone()], &intake, 4 * PATIENCE).await.unwrap();
    (fetched, pair)
}

#[test]
fn chunks_that_come_in_time_but_below_the_least_rate_end_the_fetch() {
    run(async {
        let started = Instant::now();
        let (fetched, _pair) = fetched(&extras(200, 10), 0, PATIENCE).await;
        assert!(fetched.was_slow && !fetched.is_all, "{fetched:?} {:?}", started.elapsed());
        assert!(started.elapsed() < 20 * PATIENCE, "{:?}", started.elapsed());
        assert!(fetched.slow.is_empty(), "no answer was late");
    });
}

#[test]
fn chunks_that_come_at_the_least_rate_are_fetched_however_long_it_takes() {
    run(async {
        // Each pays for more than a second.
        let (fetched, _pair) = fetched(&extras(12, 100_000), 0, PATIENCE).await;
        assert!(fetched.is_all && !fetched.was_slow, "{fetched:?}");
    });
}

#[test]
fn a_manifest_that_lies_about_its_chunks_is_found_out_and_their_sender_is_not_blamed() {
    run(async {
        let (fetched, pair) = fetched(&extras(20, 100), 1, Duration::ZERO).await;
        assert!(matches!(fetched.lie, Some(OfferError::Numbers { .. })), "{fetched:?}");
        assert_eq!(1, pair.source.handle.peers().len());
        assert_eq!(0, pair.source.handle.counters().bans.get());
    });
}

#[test]
fn no_more_is_fetched_than_the_manifest_says_and_nobody_is_kept_out_for_it() {
    run(async {
        let large = extras(1, 3 << 20);
        let said = large.keys().map(|hash| (*hash, extra(0, 10))).collect();
        let mut pair = pair_with(large, (0, 1 << 20), Duration::ZERO).await;
        pair.source.answer_time = LONG;
        let folder = tempfile::tempdir().unwrap();
        let intake = Arc::new(Intake::open(folder.path(), &manifest(&said, 0)).unwrap());
        let fetched = fetch_chunks(vec![pair.source.clone()], &intake, LONG).await.unwrap();
        assert!(!fetched.is_all && fetched.slow.contains(&pair.source.peer), "{fetched:?}");
        assert!(pair.dripper.asked.load(Ordering::SeqCst) <= PER_PEER);
        assert_eq!(0, pair.source.handle.counters().bans.get());
    });
}
