//! A node in this process that takes part in the network for transactions, with a chain of the test's
//! own making.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use p2p::ports::{ChainSource, Nothing, SnapshotHead};
use p2p::{DownloadFigures, Handle, NetworkId, PeerKey, Setup};
use serde_json::json;
use store::snapshots::FORMAT;
use testkit::net::Member;
use testkit::node::wait_for;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use types::Hash;

/// How long an honest node may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

/// The node. It is gone when this is dropped; what its chain waits for must be gone before.
pub(crate) struct FakePeer {
    handle: Handle,
    stop: CancellationToken,
    runtime: Runtime,
}

impl Drop for FakePeer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl FakePeer {
    /// Starts one of the network of `honest`, which must run.
    pub(crate) fn start(honest: &Member, chain: Arc<dyn ChainSource>) -> anyhow::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build()?;
        let stop = CancellationToken::new();
        let started = runtime.block_on(p2p::start(setup(honest, chain)?, stop.clone()))?;
        for task in started.tasks {
            runtime.spawn(task.run);
        }
        Ok(Self { handle: started.handle, stop, runtime })
    }

    /// Connects with an honest node, and waits until it has told how far it is.
    pub(crate) fn meet(&self, honest: &Member) -> anyhow::Result<PeerKey> {
        let address = gossip_address(honest)?;
        self.runtime.block_on(self.handle.add_peer(&address))?;
        wait_for("the honest node's height", || {
            let mut peers = self.handle.peers().into_iter();
            let known = peers.find(|peer| peer.status.is_some_and(|status| status.tip > 0));
            Ok(known.map(|peer| peer.key))
        })
    }

    /// Dials this address from now on, until the end.
    pub(crate) fn dial(&self, address: &str) -> anyhow::Result<()> {
        Ok(self.runtime.block_on(self.handle.add_peer(address))?)
    }

    /// All blocks that peers have.
    pub(crate) fn blocks(&self) -> Vec<p2p::ports::EncodedBlock> {
        let (out, mut ranges) = tokio::sync::mpsc::channel(1_000);
        let all = || u64::MAX;
        self.runtime.block_on(self.handle.download(1, &all, out, DownloadFigures::default()));
        let mut blocks = Vec::new();
        while let Ok(range) = ranges.try_recv() {
            blocks.extend(range.blocks);
        }
        blocks
    }

    /// The newest snapshot that a peer offers.
    pub(crate) fn snapshot(&self, peer: PeerKey) -> anyhow::Result<SnapshotHead> {
        let heads = self.runtime.block_on(self.handle.snapshots(peer, FORMAT, ANSWER_TIME_MAX))?;
        heads.first().copied().context("no snapshot is offered")
    }

    /// An offer or a chunk of a snapshot of a peer.
    pub(crate) fn whole(&self, peer: PeerKey, hash: Hash, bytes: u64) -> anyhow::Result<Vec<u8>> {
        let mut whole = Vec::new();
        while u64::try_from(whole.len())? < bytes {
            let question = (hash, u64::try_from(whole.len())?);
            let piece = self.handle.piece(peer, question, ANSWER_TIME_MAX);
            let piece = self.runtime.block_on(piece)?;
            ensure!(!piece.is_empty(), "the peer has no {hash}");
            whole.extend(piece);
        }
        Ok(whole)
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
}

/// The address of a node's network for transactions.
pub(crate) fn gossip_address(member: &Member) -> anyhow::Result<String> {
    let info = member.call("net_info", &json!([]))?;
    let last = info["listenAddresses"].as_array().and_then(|all| all.last()?.as_str());
    Ok(last.context("a listen address")?.to_owned())
}

fn setup(honest: &Member, chain: Arc<dyn ChainSource>) -> anyhow::Result<Setup> {
    let info = honest.call("ombra_chainInfo", &json!([]))?;
    let text = |name: &str| info[name].as_str().context("chainInfo");
    let network = NetworkId::new(text("chainId")?.to_owned(), text("genesisHash")?.parse()?);
    let listen = "/ip4/127.0.0.1/tcp/0".to_owned();
    let config = p2p::Config { listen, exchange: false, ..p2p::Config::default() };
    Ok(Setup {
        network,
        config,
        node_key: *Hash::digest(&next_number().to_le_bytes()).as_bytes(),
        pool: Arc::new(Nothing),
        chain,
        tx_bytes_max: 1 << 20,
        block_bytes_max: 8 << 20,
    })
}

/// Another one for each peer of this process.
fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}
