//! Fetching from peers that drip, over loopback.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use p2p::ports::{Chain, EncodedBlock, Nothing, ReadError, Status};
use tokio_util::sync::CancellationToken;

use super::*;

const WHOLE: u64 = 600_000;
/// What is waited for a peer that drips.
const PATIENCE: Duration = Duration::from_millis(300);

/// Longer than any answer takes.
const LONG: Duration = Duration::from_secs(30);

/// A peer that gives so many bytes in an answer, and takes its time for it.
struct Dripper {
    whole: u64,
    piece_bytes: usize,
    pause: Duration,
    /// Nothing ever comes through.
    gate: Mutex<Receiver<()>>,
    asked: AtomicUsize,
}

impl Chain for Dripper {
    fn status(&self) -> Status {
        Status { earliest: 1, tip: 1 }
    }

    fn blocks(&self, _: u64, _: u32, _: usize) -> Result<Vec<EncodedBlock>, ReadError> {
        Ok(Vec::new())
    }

    fn piece(&self, _: &Hash, offset: u64, bytes_max: usize) -> Result<Vec<u8>, ReadError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _nothing = self.gate.lock().recv_timeout(self.pause);
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

async fn node(chain: Arc<dyn Chain>, stop: &CancellationToken) -> Handle {
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
    let (gate, closed) = channel();
    let (gate_end, asked) = (Mutex::new(closed), AtomicUsize::new(0));
    let dripper = Arc::new(Dripper { whole, piece_bytes, pause, gate: gate_end, asked });
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
            assert_eq!(Ok(piece_bytes), fetched.map(|whole| whole.len()));
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
            assert_eq!(Ok(whole), fetched.map(|whole| length(&whole)));
            assert_eq!(asked, pair.dripper.asked.load(Ordering::SeqCst));
        }
        // More than any chunk may have is not waited for.
        let mut pair = pair_of(1 << 30, 1 << 20, Duration::ZERO).await;
        pair.source.answer_time = LONG;
        let fetched = fetch_whole(&pair.source, Hash::digest(b"a chunk"), CHUNK_BYTES_MAX).await;
        assert_eq!(Ok(CHUNK_BYTES_MAX), fetched.map(|whole| length(&whole)));
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
