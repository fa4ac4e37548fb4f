//! Towns of nodes, and waiting for what happens in them.

mod chain;
mod pool;
pub(crate) mod rogue;

use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::{Config, Handle, Limits, NetworkId, Setup, SignedTx, start};
use tokio_util::sync::CancellationToken;
use types::{Hash, Signature};

pub(crate) use chain::DoubleChain;
pub(crate) use pool::DoublePool;

/// How long anything that a test waits for may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A transaction by its text; the double of the pool knows by the text what is wrong with it.
pub(crate) fn tx(text: &str) -> SignedTx {
    SignedTx::new(text, Signature::new([7; 64]))
}

/// Settings for loopback: a free port, and nothing but what a test asks for.
pub(crate) fn config() -> Config {
    let listen = "/ip4/127.0.0.1/tcp/0".to_owned();
    Config { listen, exchange: false, ..Config::default() }
}

pub(crate) fn limits(change: impl FnOnce(&mut Limits)) -> Config {
    let mut config = config();
    change(&mut config.limits);
    config
}

/// The network of most tests.
pub(crate) fn home_network() -> NetworkId {
    NetworkId::new("town".to_owned(), Hash::digest(b"genesis"))
}

/// A running node. Dropping it stops it.
pub(crate) struct Node {
    pub(crate) handle: Handle,
    pub(crate) pool: Arc<DoublePool>,
    pub(crate) chain: Arc<DoubleChain>,
    stop: CancellationToken,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Node {
    pub(crate) async fn start(config: Config) -> Self {
        Self::start_with(home_network(), config, DoublePool::default()).await
    }

    pub(crate) async fn start_with(network: NetworkId, config: Config, pool: DoublePool) -> Self {
        Self::start_whole(network, config, pool, DoubleChain::default()).await
    }

    /// One whose pool takes everything, as a dishonest node's does.
    pub(crate) async fn that_takes_all() -> Self {
        Self::start_with(home_network(), config(), DoublePool::that_takes_all()).await
    }

    /// One that has this chain.
    pub(crate) async fn with_chain(chain: DoubleChain) -> Self {
        Self::start_whole(home_network(), config(), DoublePool::default(), chain).await
    }

    async fn start_whole(
        network: NetworkId,
        config: Config,
        pool: DoublePool,
        chain: DoubleChain,
    ) -> Self {
        let chain = Arc::new(chain);
        let (pool, stop) = (Arc::new(pool), CancellationToken::new());
        let mut node_key = [0; 32];
        getrandom::fill(&mut node_key).expect("the system has randomness");
        let setup = Setup {
            network,
            config,
            node_key,
            pool: pool.clone(),
            chain: chain.clone(),
            tx_bytes_max: 100 * 1024,
            block_bytes_max: 1024 * 1024,
        };
        let started = start(setup, stop.clone()).await.expect("the node starts");
        for task in started.tasks {
            tokio::spawn(task.run);
        }
        Self { handle: started.handle, pool, chain, stop }
    }

    /// Its address, pinned to its key.
    pub(crate) fn address(&self) -> String {
        let listens = self.handle.listen_addresses();
        let address = listens.first().expect("it listens");
        format!("{address}/p2p/{}", self.handle.peer_id())
    }

    /// Dials another node and waits until both know each other.
    pub(crate) async fn meet(&self, other: &Self) {
        self.handle.add_peer(&other.address()).await.expect("an address");
        eventually("both know each other", || self.knows(other) && other.knows(self)).await;
    }

    pub(crate) fn knows(&self, other: &Self) -> bool {
        self.peer(other).is_some()
    }

    /// The other as a peer of this one.
    pub(crate) fn peer(&self, other: &Self) -> Option<p2p::Peer> {
        let id = other.handle.peer_id();
        self.handle.peers().into_iter().find(|peer| peer.peer_id == id)
    }

    /// What it thinks of a peer.
    pub(crate) fn score_of(&self, other: &Self) -> Option<f64> {
        self.peer(other).map(|peer| peer.score)
    }

    /// A client hands a transaction in here: the pool takes it, and it is announced.
    pub(crate) fn receives(&self, tx: &SignedTx) {
        self.pool.put(tx.clone());
        self.handle.announce(tx.clone());
    }

    /// Waits until the pool has the transaction.
    pub(crate) async fn gets(&self, tx: &SignedTx) {
        eventually("the transaction arrives", || self.pool.has(&tx.hash())).await;
    }
}

/// So many nodes, each connected with each.
pub(crate) async fn town(count: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for _ in 0..count {
        let node = Node::start(config()).await;
        for other in &nodes {
            node.meet(other).await;
        }
        nodes.push(node);
    }
    nodes
}

/// Waits until gossip runs between the nodes: a transaction of its own from each to all.
pub(crate) async fn warm(nodes: &[Node]) {
    for node in nodes {
        let prefix = format!("probe {}", node.handle.peer_id());
        // Published again and again, because subscriptions travel too.
        repeatedly("gossip runs", |round| {
            if round % 20 == 1 {
                node.receives(&tx(&format!("{prefix} {round}")));
            }
            nodes.iter().all(|node| node.pool.has_like(&prefix))
        })
        .await;
    }
}

/// Does something that is numbered again and again until it says that something holds.
pub(crate) async fn repeatedly(what: &str, mut act: impl FnMut(u64) -> bool) {
    let mut number = 0;
    eventually(what, || {
        number += 1;
        act(number)
    })
    .await;
}

/// Waits until the condition holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} until {what}");
        // The pause of the loop that waits with a deadline.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
