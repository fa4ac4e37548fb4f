//! Peers that send what is no message, or bring what no pool takes, much of it or slowly.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use tokio::task::JoinHandle;

use crate::cut_off::Double;
use crate::support::rogue::{rogue, topic};
use crate::support::{Node, config, eventually, limits, town, tx, warm};

/// Transactions in one message.
const PACK: u32 = 100;

/// The bytes of a message with these transactions.
fn pack(texts: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(&u32::try_from(text.len()).expect("a short text").to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(&[7; 64]);
    }
    bytes
}

/// Has a rogue publish one message after the other to the node, some milliseconds apart.
fn flood(node: &Node, mut message: impl FnMut(u32) -> Vec<u8> + Send + 'static) -> JoinHandle<()> {
    let mut rogue = rogue(node);
    tokio::spawn(async move {
        let mut beat = tokio::time::interval(Duration::from_millis(5));
        for number in 0_u32.. {
            tokio::select! {
                _ = rogue.select_next_some() => {}
                _ = beat.tick() => {
                    // Fails until the node has subscribed, and once it is gone.
                    let _sent = rogue.behaviour_mut().gossip.publish(topic(), message(number));
                }
            }
        }
    })
}

/// So many peers of the node that never answer.
async fn silent_peers(node: &Node, count: usize) -> Vec<JoinHandle<()>> {
    let mut silent = Vec::new();
    for _ in 0..count {
        silent.push(tokio::spawn(Double::of("pool", node).await.stays_silent()));
    }
    silent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_sends_rubbish_is_cut_off() {
    let node = Node::start(config()).await;
    let flood = flood(&node, |number| u64::from(number).to_le_bytes().to_vec());
    eventually("the rogue is kept out", || node.handle.counters().bans.get() > 0).await;
    eventually("it is gone", || node.handle.peers().is_empty()).await;
    assert!(node.handle.counters().rejected.get() >= 3);
    assert_eq!(0, node.pool.offered(), "the pool has seen nothing of it");
    flood.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_brings_only_what_is_refused_is_cut_off_and_others_are_heard() {
    let nodes = town(2).await;
    warm(&nodes).await;
    let node = &nodes[0];
    let before = node.pool.offered();
    let flood = flood(node, |number| pack((0..PACK).map(|at| format!("lost {number} {at}"))));
    eventually("the flooder is kept out", || node.handle.counters().bans.get() > 0).await;
    eventually("it is gone", || node.handle.peers().len() == 1).await;
    flood.abort();
    assert!(node.handle.counters().unread.get() >= 3);
    assert_eq!(0, node.handle.counters().rejected.get(), "it broke no rule of the bytes");
    let offered = node.pool.offered() - before;
    // Some are before the pool when the credit is used up, a burst of them on a slow machine.
    assert!(offered < 20_000, "the pool was spared: {offered}");
    let payment = tx("payment");
    nodes[1].receives(&payment);
    node.gets(&payment).await;
    assert!(node.score_of(&nodes[1]).is_some_and(|score| score >= 0.0));
    assert!(!nodes[1].pool.has_like("lost"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_new_beside_a_refused_transaction_goes_on_without_it() {
    let nodes = town(2).await;
    warm(&nodes).await;
    let (near, far) = (&nodes[0], &nodes[1]);
    let before = far.pool.offered();
    let flood = flood(near, |number| pack([format!("lost {number}"), format!("mixed {number}")]));
    eventually("it reaches the far node", || far.pool.has_like("mixed")).await;
    flood.abort();
    let marker = tx("marker");
    near.receives(&marker);
    far.gets(&marker).await;
    let taken = far.pool.count_like("mixed") + 1;
    eventually("all that came has been looked at", || far.pool.offered() >= before + taken).await;
    assert_eq!(far.pool.count_like("mixed") + 1, far.pool.offered() - before, "nothing refused");
}

/// A message that is left unread is a duplicate for gossip when honest peers bring it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_a_peer_without_credit_brings_first_is_made_up_for() {
    let roomy = |limits: &mut p2p::Limits| {
        (limits.per_address_max, limits.per_group_max) = (64, 64);
    };
    let node = Node::start(limits(roomy)).await;
    // So many that the turn of the honest one, every five seconds another's, comes late.
    let silent = silent_peers(&node, 24).await;
    let honest = Node::start(config()).await;
    // What it has when they meet is pulled then.
    let earlier = tx("earlier");
    honest.pool.put(earlier.clone());
    node.meet(&honest).await;
    node.gets(&earlier).await;
    eventually("all of them are met", || node.handle.peers().len() == 25).await;
    let payment = tx("payment");
    honest.pool.put(payment.clone());
    let unread = node.handle.counters().unread.clone();
    let mut has_brought = false;
    let flood = flood(&node, move |number| {
        if unread.get() > 0 && !std::mem::replace(&mut has_brought, true) {
            // What the honest one is about to bring, byte for byte.
            return pack(["payment".to_owned()]);
        }
        pack((0..PACK).map(|at| format!("lost {number} {at}")))
    });
    eventually("the flooder is kept out", || node.handle.counters().bans.get() > 0).await;
    assert!(!node.pool.has(&payment.hash()), "it came by another way");
    let started = Instant::now();
    honest.handle.announce(payment.clone());
    node.gets(&payment).await;
    assert!(started.elapsed() < Duration::from_secs(4), "it came after {:?}", started.elapsed());
    for task in silent.into_iter().chain([flood]) {
        task.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_that_never_answer_keep_nobody_from_pulling_from_a_named_one() {
    let late = Node::start(config()).await;
    let silent = silent_peers(&late, 9).await;
    eventually("all of them are met", || late.handle.peers().len() == 9).await;
    let old = Node::start(config()).await;
    let payments: Vec<_> = (0..200).map(|number| tx(&format!("payment {number}"))).collect();
    for payment in &payments {
        old.pool.put(payment.clone());
    }
    let started = Instant::now();
    late.meet(&old).await;
    eventually("everything is pulled", || late.pool.count() == payments.len()).await;
    assert!(started.elapsed() < Duration::from_secs(8), "it did not wait for the silent ones");
    for task in silent {
        task.abort();
    }
}
