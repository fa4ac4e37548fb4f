//! Who is let in, who is found, and who is kept out.

use std::time::Duration;

use libp2p::PeerId;
use p2p::{Direction, NetworkId, PeerError};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use types::Hash;

use crate::support::{DoublePool, Node, config, eventually, limits, tx};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_another_genesis_is_refused_by_both() {
    let here = Node::start(config()).await;
    let other = NetworkId::new("town".to_owned(), Hash::digest(b"another genesis"));
    let stranger = Node::start_with(other, config(), DoublePool::default()).await;
    stranger.pool.put(tx("of another chain"));
    here.handle.add_peer(&stranger.address()).await.expect("an address");
    eventually("the stranger is refused", || here.handle.counters().strangers.get() > 0).await;
    eventually("the stranger is kept out", || here.handle.counters().banned.get() == 1).await;
    assert_eq!(0, here.handle.peers().len());
    assert_eq!(0, here.pool.count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_gets_only_its_share_of_connections() {
    let popular = Node::start(limits(|limits| limits.per_address_max = 2)).await;
    let mut guests = Vec::new();
    for _ in 0..2 {
        let guest = Node::start(config()).await;
        guest.meet(&popular).await;
        guests.push(guest);
    }
    let third = Node::start(config()).await;
    third.handle.add_peer(&popular.address()).await.expect("an address");
    eventually("the third is refused", || popular.handle.counters().refused.get() > 0).await;
    assert!(!popular.knows(&third));
    assert_eq!(2, popular.handle.peers().len());

    // A place that becomes free is taken: the third one goes on trying.
    drop(guests.pop());
    eventually("the third is let in", || popular.knows(&third)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_begin_the_handshake_is_let_go_soon() {
    let node = Node::start(limits(|limits| limits.opening_max = 1)).await;
    let address = node.address();
    let port = address.split('/').nth(4).expect("a port").parse().expect("a number");
    let mut silent = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    let guest = Node::start(config()).await;
    guest.handle.add_peer(&address).await.expect("an address");
    eventually("the guest is refused", || node.handle.counters().refused.get() > 0).await;
    let time = Duration::from_secs(8);
    let mut answer = Vec::new();
    let closed = tokio::time::timeout(time, silent.read_to_end(&mut answer)).await;
    assert!(closed.is_ok(), "the connection is still open after {time:?}");
    eventually("the guest is let in", || node.knows(&guest)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_total_of_inbound_connections_has_a_bound_too() {
    let popular = Node::start(limits(|limits| limits.inbound_max = 1)).await;
    let first = Node::start(config()).await;
    first.meet(&popular).await;
    let second = Node::start(config()).await;
    second.handle.add_peer(&popular.address()).await.expect("an address");
    eventually("the second is refused", || popular.handle.counters().refused.get() > 0).await;
    assert!(!popular.knows(&second));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_find_each_other_over_a_common_peer() {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(Node::start(p2p::Config { exchange: true, ..config() }).await);
    }
    nodes[0].meet(&nodes[1]).await;
    nodes[2].meet(&nodes[1]).await;
    eventually("the ends find each other", || {
        nodes[0].knows(&nodes[2]) && nodes[2].knows(&nodes[0])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_peer_is_met_again() {
    let (one, other) = (Node::start(config()).await, Node::start(config()).await);
    one.meet(&other).await;
    // The other one closes the connection and does not dial.
    other.handle.remove_peer(&one.handle.peer_id()).await.expect("a peer id");
    eventually("they part", || !one.knows(&other) || !other.knows(&one)).await;
    eventually("they meet again", || one.knows(&other) && other.knows(&one)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_is_shown_with_direction_and_round_trip() {
    let (one, other) = (Node::start(config()).await, Node::start(config()).await);
    one.meet(&other).await;
    eventually("the round trip is measured", || {
        one.handle.peers().iter().all(|peer| peer.latency.is_some())
    })
    .await;
    let (here, there) = (one.handle.peers(), other.handle.peers());
    assert_eq!(Direction::Outbound, here[0].direction);
    assert_eq!(Direction::Inbound, there[0].direction);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_banned_peer_stays_out_until_it_is_forgiven() {
    let (one, other) = (Node::start(config()).await, Node::start(config()).await);
    other.meet(&one).await;
    let id = other.handle.peer_id();
    one.handle.ban_peer(&id, Duration::from_secs(3_600)).await.expect("a peer id");
    eventually("it is out", || !one.knows(&other)).await;
    eventually("it is refused when it comes back", || one.handle.counters().refused.get() > 0)
        .await;
    assert!(!one.knows(&other));
    one.handle.unban_peer(&id).await.expect("a peer id");
    eventually("it is let in", || one.knows(&other)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_whose_ban_is_forgotten_for_those_of_others_is_let_in() {
    let (one, other) = (Node::start(config()).await, Node::start(config()).await);
    other.meet(&one).await;
    let (hour, longer) = (Duration::from_secs(3_600), Duration::from_secs(7_200));
    one.handle.ban_peer(&other.handle.peer_id(), hour).await.expect("a peer id");
    eventually("it is out", || !one.knows(&other)).await;
    // The list of bans holds 1,024, and forgets the one that ends first.
    for _ in 0..1_024 {
        one.handle.ban_peer(&PeerId::random().to_string(), longer).await.expect("a peer id");
    }
    eventually("it is let in", || one.knows(&other)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_does_not_connect_to_itself() {
    let node = Node::start(config()).await;
    let pinned = node.address();
    let own = Err(PeerError::Own { text: pinned.clone() });
    assert_eq!(own, node.handle.add_peer(&pinned).await);
    let (bare, _) = pinned.split_once("/p2p/").expect("the address is pinned");
    node.handle.add_peer(bare).await.expect("an address");
    eventually("it notices", || node.handle.counters().own.get() > 0).await;
    assert_eq!(0, node.handle.peers().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_address_and_no_id_is_refused() {
    let node = Node::start(config()).await;
    let unreadable = || Err(PeerError::Unreadable { text: "somewhere".to_owned() });
    assert_eq!(unreadable(), node.handle.add_peer("somewhere").await);
    assert_eq!(unreadable(), node.handle.remove_peer("somewhere").await);
    assert_eq!(unreadable(), node.handle.ban_peer("somewhere", Duration::ZERO).await);
}
