//! Transactions reach everybody: by gossip, over others, and by the pull.

use crate::support::{Node, config, eventually, town, tx, warm};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_reaches_every_node_and_every_pool_looks_at_it_once() {
    let nodes = town(4).await;
    warm(&nodes).await;
    let before: Vec<usize> = nodes.iter().map(|node| node.pool.offered()).collect();
    let txs: Vec<_> = (0..300).map(|number| tx(&format!("payment {number}"))).collect();
    for tx in &txs {
        nodes[0].receives(tx);
    }
    for tx in &txs {
        for node in &nodes[1..] {
            node.gets(tx).await;
        }
    }
    // All have all, so whatever a duplicate could have caused has been offered by now.
    assert_eq!(before[0], nodes[0].pool.offered(), "nothing comes back to where it came in");
    for (node, before) in nodes.iter().zip(before).skip(1) {
        assert_eq!(before + txs.len(), node.pool.offered(), "each transaction is offered once");
    }
    assert_eq!(0, nodes[0].handle.counters().unpublished.get());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_goes_over_a_node_in_between() {
    let (left, middle, right) =
        (Node::start(config()).await, Node::start(config()).await, Node::start(config()).await);
    left.meet(&middle).await;
    middle.meet(&right).await;
    let nodes = [left, middle, right];
    warm(&nodes).await;
    assert!(!nodes[0].knows(&nodes[2]), "the ends are not connected");
    let accepted = nodes[1].handle.counters().accepted.get();
    let payment = tx("payment");
    nodes[0].receives(&payment);
    nodes[2].gets(&payment).await;
    assert!(nodes[1].handle.counters().accepted.get() > accepted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_node_pulls_what_it_missed() {
    let old = Node::start(config()).await;
    // More than one page of the list and more than one pack.
    let txs: Vec<_> = (0..3_000).map(|number| tx(&format!("payment {number}"))).collect();
    for tx in &txs {
        old.pool.put(tx.clone());
    }
    let late = Node::start(config()).await;
    late.meet(&old).await;
    eventually("everything is pulled", || late.pool.count() == txs.len()).await;
    assert_eq!(3_000, late.handle.counters().pulled.get());
    eventually("the height is told", || {
        let told = |node: &Node| node.handle.peers().first().and_then(|peer| peer.height);
        [told(&late), told(&old)] == [Some(5); 2]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_gossip_lost_is_pulled_later() {
    let nodes = town(2).await;
    warm(&nodes).await;
    let silent = tx("never announced");
    nodes[0].pool.put(silent.clone());
    nodes[1].gets(&silent).await;
}

/// On one thread, so that all three wait when the node looks for what it can publish together.
#[tokio::test]
async fn a_large_transaction_travels_alone() {
    let nodes = town(2).await;
    warm(&nodes).await;
    let messages = || nodes[1].handle.counters().messages.get();
    let before = messages();
    let txs = [tx("small one"), tx(&"x".repeat(99 * 1024)), tx("small two")];
    for tx in &txs {
        nodes[0].receives(tx);
    }
    eventually("each has come in a message of its own", || messages() >= before + 3).await;
    for tx in &txs {
        nodes[1].gets(tx).await;
    }
}
