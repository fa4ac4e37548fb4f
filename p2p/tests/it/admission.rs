//! What the pool says about a transaction decides what becomes of it and of its sender.

use crate::support::{
    DoublePool, Node, config, eventually, home_network, limits, repeatedly, town, tx, warm,
};

/// A node whose pool takes everything, one that it has met, and one that only the second has met.
async fn dishonest_beside_two() -> [Node; 3] {
    let near = Node::start(config()).await;
    let far = Node::start(config()).await;
    let dishonest = Node::that_takes_all().await;
    near.meet(&far).await;
    dishonest.meet(&near).await;
    let nodes = [dishonest, near, far];
    warm(&nodes).await;
    nodes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_sends_invalid_signatures_is_cut_off() {
    let [liar, honest, bystander] = dishonest_beside_two().await;
    repeatedly("the liar is cut off", |number| {
        liar.handle.announce(tx(&format!("bad {number}")));
        !honest.knows(&liar)
    })
    .await;
    assert!(honest.handle.counters().rejected.get() >= 3);
    assert_eq!(1, honest.handle.counters().bans.get());
    assert!(honest.knows(&bystander), "who sent nothing stays");
    assert!(!bystander.pool.has_like("bad"));
    assert_eq!(0, bystander.handle.counters().rejected.get(), "nothing invalid is forwarded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_race_is_nobodys_fault_and_is_not_forwarded() {
    let [loser, near, far] = dishonest_beside_two().await;
    let (ignored, offered) = (near.handle.counters().ignored.get(), far.pool.offered());
    repeatedly("several claims have lost", |sent| {
        loser.handle.announce(tx(&format!("lost {sent}")));
        near.handle.counters().ignored.get() >= ignored + 10
    })
    .await;
    assert_eq!(0, near.handle.counters().rejected.get());
    assert!(near.score_of(&loser).expect("it is still connected") >= 0.0);
    assert_eq!(offered, far.pool.offered(), "what the own pool refuses is not forwarded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_transaction_in_a_pulled_answer_is_an_offence() {
    let liar = Node::that_takes_all().await;
    liar.pool.put(tx("bad"));
    let honest = Node::start(config()).await;
    honest.handle.add_peer(&liar.address()).await.expect("an address");
    eventually("the liar is kept out", || honest.handle.counters().bans.get() > 0).await;
    eventually("the liar is gone", || !honest.knows(&liar)).await;
    assert_eq!(0, honest.pool.count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_finds_no_room_before_a_busy_pool_is_ignored_and_counted() {
    let config = limits(|limits| limits.waiting_max = 1);
    let busy = Node::start_with(home_network(), config, DoublePool::that_is_busy()).await;
    let sender = Node::start(crate::support::config()).await;
    sender.meet(&busy).await;
    repeatedly("the queue is full", |number| {
        sender.receives(&tx(&format!("payment {number}")));
        busy.handle.counters().no_room.get() > 3
    })
    .await;
    assert_eq!(0, busy.handle.counters().rejected.get());
    assert!(busy.score_of(&sender).expect("it is still connected") >= 0.0);
    assert!(busy.pool.offered() < 200, "the pool was not pressed: {}", busy.pool.offered());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_transaction_by_another_way_is_not_offered_again_as_gossip() {
    let nodes = town(3).await;
    warm(&nodes).await;
    let payment = tx("payment");
    nodes[0].receives(&payment);
    nodes[1].gets(&payment).await;
    nodes[2].gets(&payment).await;
    let published = nodes[1].handle.counters().published.get();
    let offered = nodes[2].pool.offered();
    // The pool's event about a transaction that came from a peer.
    nodes[1].handle.announce(payment);
    let marker = tx("marker");
    nodes[1].receives(&marker);
    nodes[2].gets(&marker).await;
    assert_eq!(published + 1, nodes[1].handle.counters().published.get());
    assert_eq!(offered + 1, nodes[2].pool.offered());
}
