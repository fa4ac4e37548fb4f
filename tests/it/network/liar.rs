//! A node in this process that takes part in the network for transactions and lies about blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use p2p::ports::{Chain, EncodedBlock, Listing, Outcome, Pool, ReadError, SnapshotHead, Status};
use p2p::{DownloadFigures, Handle, NetworkId, Setup, SignedTx};
use parking_lot::Mutex;
use tests::net::Member;
use tests::node::wait_for;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use types::{Address, Hash};

/// What it does when it is asked for blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lie {
    /// Says a block of which the last byte is another.
    Block,
    /// Sends a certificate with another signature.
    Certificate,
    /// Claims a height that nobody has, and never answers.
    Silence,
}

/// The liar. It is gone when this is dropped.
pub(crate) struct Liar {
    handle: Handle,
    chain: Arc<Forger>,
    stop: CancellationToken,
    /// Dropped before the runtime, which would wait for who waits for it.
    gate: Option<Sender<()>>,
    _runtime: Runtime,
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stop.cancel();
        drop(self.gate.take());
    }
}

impl Liar {
    /// Starts one that knows the true chain of `honest`.
    pub(crate) fn start(honest: &Member, lie: Lie) -> anyhow::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build()?;
        let (gate, closed) = channel();
        let (blocks, asked) = (Mutex::default(), AtomicUsize::new(0));
        let chain = Arc::new(Forger { lie, blocks, gate: Mutex::new(closed), asked });
        let stop = CancellationToken::new();
        let setup = setup(honest, Arc::clone(&chain))?;
        let started = runtime.block_on(p2p::start(setup, stop.clone()))?;
        for task in started.tasks {
            runtime.spawn(task.run);
        }
        let handle = started.handle;
        let liar = Self { handle, chain, stop, gate: Some(gate), _runtime: runtime };
        liar.learn(honest)?;
        Ok(liar)
    }

    /// Gets the true blocks.
    fn learn(&self, honest: &Member) -> anyhow::Result<()> {
        let address = gossip_address(honest)?;
        let (out, mut ranges) = tokio::sync::mpsc::channel(1_000);
        self._runtime.block_on(self.handle.add_peer(&address))?;
        wait_for("the honest node's height", || {
            let mut known = self.handle.peers().into_iter().filter_map(|peer| peer.status);
            Ok(known.any(|status| status.tip > 0).then_some(()))
        })?;
        self._runtime.block_on(self.handle.download(1, out, DownloadFigures::default()));
        while let Ok(range) = ranges.try_recv() {
            self.chain.blocks.lock().extend(range.blocks);
        }
        anyhow::ensure!(!self.chain.blocks.lock().is_empty(), "the liar has learned no block");
        Ok(())
    }

    /// Where others reach it.
    pub(crate) fn address(&self) -> String {
        let addresses = self.handle.listen_addresses();
        let address = addresses.first().cloned().unwrap_or_default();
        format!("{address}/p2p/{}", self.handle.peer_id())
    }

    pub(crate) fn peer_id(&self) -> String {
        self.handle.peer_id()
    }

    /// How often it was asked for blocks.
    pub(crate) fn asked(&self) -> usize {
        self.chain.asked.load(Ordering::SeqCst)
    }
}

/// The address of a node's network for transactions.
pub(crate) fn gossip_address(member: &Member) -> anyhow::Result<String> {
    let info = member.call("net_info", &serde_json::json!([]))?;
    let addresses = info.get("listenAddresses").and_then(serde_json::Value::as_array);
    let last = addresses.and_then(|all| all.last()).and_then(serde_json::Value::as_str);
    Ok(last.context("a listen address")?.to_owned())
}

fn setup(honest: &Member, chain: Arc<Forger>) -> anyhow::Result<Setup> {
    let info = honest.call("ombra_chainInfo", &serde_json::json!([]))?;
    let text = |name: &str| info.get(name).and_then(serde_json::Value::as_str).context("chainInfo");
    let network = NetworkId::new(text("chainId")?.to_owned(), text("genesisHash")?.parse()?);
    let listen = "/ip4/127.0.0.1/tcp/0".to_owned();
    let config = p2p::Config { listen, exchange: false, ..p2p::Config::default() };
    let mut node_key = [0; 32];
    node_key[..16].copy_from_slice(&Arc::as_ptr(&chain).addr().to_le_bytes().repeat(2));
    Ok(Setup {
        network,
        config,
        node_key,
        pool: Arc::new(NoPool),
        chain,
        tx_bytes_max: 1 << 20,
        block_bytes_max: 8 << 20,
    })
}

struct Forger {
    lie: Lie,
    blocks: Mutex<Vec<EncodedBlock>>,
    /// Nothing ever comes through; it closes when the liar goes.
    gate: Mutex<Receiver<()>>,
    asked: AtomicUsize,
}

impl Chain for Forger {
    fn status(&self) -> Status {
        let there = u64::try_from(self.blocks.lock().len()).unwrap_or(0);
        let tip = if self.lie == Lie::Silence && there > 0 { 1 << 40 } else { there };
        Status { earliest: 1, tip }
    }

    fn blocks(&self, first: u64, count: u32, _: usize) -> Result<Vec<EncodedBlock>, ReadError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.lie == Lie::Silence {
            let _closed = self.gate.lock().recv_timeout(Duration::from_secs(60));
            return Ok(Vec::new());
        }
        let first = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut blocks: Vec<EncodedBlock> =
            self.blocks.lock().iter().skip(first).take(count).cloned().collect();
        for block in &mut blocks {
            let bytes = match self.lie {
                Lie::Certificate => &mut block.certificate,
                Lie::Block | Lie::Silence => &mut block.bytes,
            };
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
        }
        Ok(blocks)
    }

    fn snapshots(&self) -> Vec<SnapshotHead> {
        Vec::new()
    }

    fn piece(&self, _: &Hash, _: u64, _: usize) -> Result<Vec<u8>, ReadError> {
        Ok(Vec::new())
    }
}

/// It has no transactions, and takes none.
struct NoPool;

#[async_trait]
impl Pool for NoPool {
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
