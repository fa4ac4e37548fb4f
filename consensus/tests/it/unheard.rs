//! A validator that lost its connections to nodes that did not notice.

use std::collections::BTreeMap;
use std::sync::Arc;

use consensus::{Network, peer_id};
use parking_lot::Mutex;
use tokio::io::{copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::chain::{at_once, free_address, node_key, set};
use crate::town::Town;

/// A line to a node. When its caller hangs up, the node is not told before the line is released.
struct Line {
    port: u16,
    /// Releases the connections that are made from now on.
    released: Arc<Mutex<CancellationToken>>,
}

impl Line {
    async fn to(node_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let released = Arc::new(Mutex::new(CancellationToken::new()));
        let token = Arc::clone(&released);
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let released = token.lock().clone();
                tokio::spawn(async move {
                    if let Ok(node) = TcpStream::connect(("127.1.0.1", node_port)).await {
                        connect(caller, node, released).await;
                    }
                });
            }
        });
        Self { port, released }
    }

    /// What releases the connections that are there. Those that come are never held.
    fn release_later(&self) -> CancellationToken {
        std::mem::replace(&mut self.released.lock(), at_once())
    }
}

/// Carries bytes both ways. When the caller is gone, the node's end stays open until it is released.
async fn connect(caller: TcpStream, node: TcpStream, released: CancellationToken) {
    let (mut from_caller, mut to_caller) = caller.into_split();
    let (mut from_node, mut to_node) = node.into_split();
    let answers = async {
        let _gone = copy(&mut from_node, &mut to_caller).await;
        copy(&mut from_node, &mut sink()).await
    };
    let calls = async {
        let _hung_up = copy(&mut from_caller, &mut to_node).await;
        released.cancelled().await;
    };
    tokio::select! {
        _ = answers => {}
        () = calls => {}
    }
}

impl Town {
    /// Lets a node that was not started reach the others by lines only; they cannot reach it.
    async fn reaches_others_by_lines(&mut self, at: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut named = Vec::new();
        for plan in self.plans.iter().enumerate().filter(|(other, _)| *other != at).map(|it| it.1) {
            let line = Line::to(port(&plan.network)).await;
            let id = peer_id(&node_key(plan.seed)).expect("a key");
            named.push(format!("/ip4/127.0.0.1/tcp/{}/p2p/{id}", line.port));
            lines.push(line);
        }
        self.plans[at].network =
            Network::Peers { listen: free_address(), peers: named, open: false };
        lines
    }
}

/// The port that a node listens on.
fn port(network: &Network) -> u16 {
    let port = match network {
        Network::Peers { listen, .. } => listen.rsplit('/').next(),
        Network::Alone => None,
    };
    port.and_then(|port| port.parse().ok()).expect("an address ends with its port")
}

/// What a power cut does: the others notice nothing, and find a second connection when it is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_validator_is_heard_again_although_its_peers_missed_that_it_was_gone() {
    let mut town = Town::planned("unheard", 4, 0, &BTreeMap::from([(1, set(1..=4))]));
    let lines = town.reaches_others_by_lines(0).await;
    town.start_all().await;
    town.grow_to(3).await;
    // The others are no quorum.
    town.stop(1).await;
    let held: Vec<_> = lines.iter().map(Line::release_later).collect();
    town.stop(0).await;
    town.start(0).await;
    town.set_goal(6);
    town.restarts_its_network(0).await;
    assert_eq!(town.plans[0].disk.height(), 3, "it was heard");
    held.iter().for_each(CancellationToken::cancel);
    town.reaches(6).await;
    assert_eq!(town.node(0).counters.refusals.get(), 0);
    town.start(1).await;
    town.reaches(6).await;
    town.agree_up_to(6);
    town.stop_all().await;
}
