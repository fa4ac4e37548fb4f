//! Nodes that are behind ask others for blocks.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use futures::future::join_all;
use p2p::ports::Status;
use p2p::{AskError, PeerKey};

use crate::support::{DoubleChain, Node, eventually};

const TIME: Duration = Duration::from_secs(20);

/// A node with this chain, one without blocks that has dialled it, and what that calls the first one.
async fn ahead_and_behind(chain: DoubleChain) -> (Node, Node, PeerKey) {
    let ahead = Node::with_chain(chain).await;
    let behind = Node::with_chain(DoubleChain::default()).await;
    behind.meet(&ahead).await;
    let peer = behind.peer(&ahead).expect("it is connected").key;
    (ahead, behind, peer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_tell_each_other_how_far_they_are_when_they_meet_and_later() {
    let (ahead, behind, _) = ahead_and_behind(DoubleChain::up_to(70, 10)).await;
    let peer = || behind.peer(&ahead).expect("it is connected");
    let told = || peer().status;
    eventually("the peer's tip is known", || told() == Some(Status { earliest: 1, tip: 70 })).await;
    ahead.chain.tip.store(71, Ordering::SeqCst);
    eventually("the peer's new tip is known", || told() == Some(Status { earliest: 1, tip: 71 }))
        .await;
    assert_eq!(Some(71), peer().height);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_come_in_order_and_in_answers_of_a_bounded_size() {
    let (ahead, behind, peer) = ahead_and_behind(DoubleChain::up_to(70, 100_000)).await;
    let blocks = behind.handle.blocks(peer, (5, 60), TIME).await.expect("blocks");
    let expected: Vec<_> = (5..16).map(|height| ahead.chain.block(height)).collect();
    assert_eq!(expected, blocks, "as many as make up a mebibyte");
    let last = behind.handle.blocks(peer, (69, 60), TIME).await.expect("blocks");
    assert_eq!(2, last.len());
    assert_eq!(Ok(Vec::new()), behind.handle.blocks(peer, (71, 60), TIME).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_offered_and_comes_in_pieces() {
    let (_ahead, behind, peer) = ahead_and_behind(DoubleChain::up_to(70, 10)).await;
    let heads = behind.handle.snapshots(peer, 2, TIME).await.expect("heads");
    assert_eq!(Ok(Vec::new()), behind.handle.snapshots(peer, 3, TIME).await);
    assert_eq!(vec![70], heads.iter().map(|head| head.height).collect::<Vec<_>>());
    let mut sizes = Vec::new();
    while sizes.iter().sum::<u64>() < heads[0].bytes {
        let place = (heads[0].hash, sizes.iter().sum());
        let piece = behind.handle.piece(peer, place, TIME).await.expect("a piece");
        sizes.push(u64::try_from(piece.len()).unwrap());
    }
    assert_eq!(vec![1 << 20, 1 << 20, 3_000_000 - (2 << 20)], sizes);
    let unknown = (types::Hash::ZERO, 0);
    assert_eq!(Ok(Vec::new()), behind.handle.piece(peer, unknown, TIME).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_in_excess_are_refused_at_once() {
    let (gate, closed) = mpsc::channel();
    let ahead = Node::with_chain(DoubleChain::up_to(70, 10).behind(closed)).await;
    let behind = Node::with_chain(DoubleChain::default()).await;
    // Whom a node names has all places of one peer from the beginning.
    ahead.meet(&behind).await;
    let peer = behind.peer(&ahead).expect("it is connected").key;
    let ask = |_| behind.handle.blocks(peer, (1, 1), TIME);
    let all = join_all((0..10).map(ask));
    let open = async {
        // Four are under way and wait; the others were refused meanwhile.
        eventually("the rest is refused", || ahead.handle.counters().sync_refused.get() == 6).await;
        drop(gate);
    };
    let (answers, ()) = futures::join!(all, open);
    let busy = answers.iter().filter(|answer| **answer == Err(AskError::Busy)).count();
    assert_eq!((6, 4), (busy, answers.iter().filter(|answer| answer.is_ok()).count()));
    assert!(behind.handle.blocks(peer, (1, 1), TIME).await.is_ok(), "there is room again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_answer_in_time_is_silent_and_who_is_blamed_is_kept_out() {
    let (_gate, closed) = mpsc::channel();
    let (_ahead, behind, peer) = ahead_and_behind(DoubleChain::up_to(70, 10).behind(closed)).await;
    let answer = behind.handle.blocks(peer, (1, 1), Duration::from_millis(50)).await;
    assert_eq!(Err(AskError::Silent), answer);
    behind.handle.blame(peer, "block 7 is wrong".to_owned()).await;
    eventually("the peer is kept out", || behind.handle.peers().is_empty()).await;
    assert_eq!(Err(AskError::Silent), behind.handle.blocks(peer, (1, 1), TIME).await);
}
