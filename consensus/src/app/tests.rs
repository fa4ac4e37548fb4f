//! What the loop answers about bodies that liars send.

use std::sync::Arc;

use bytes::Bytes;
use malachitebft_app::engine::host::SyncedValueOutcome;
use malachitebft_core_types::Validity;
use types::Hash;

use super::*;
use crate::parts::{self, Form, Head, Part};
use crate::testing::{CHAIN, NodeSide, TIP, domain, keys, on_turn, peer};
use crate::{Candidate, Encoded, LedgerFault, Verdict};

/// The hash of the block that the good bytes are of, and all others claim to be.
const BLOCK: Hash = Hash::new([7; 32]);
const GOOD: &[u8] = b"good";
/// What is not even a compact block.
const SPOILT: &[u8] = b"spoilt";

/// Knows one good body.
fn judge(candidate: &Candidate) -> Result<Verdict, LedgerFault> {
    let is_compact_block = matches!(candidate.content, Encoded::CompactBlock { .. });
    let (Encoded::Whole(bytes) | Encoded::CompactBlock { bytes, .. }) = &candidate.content;
    Ok(match &**bytes {
        bytes if bytes.chunks(GOOD.len()).all(|chunk| chunk == GOOD) => Verdict::Valid(BLOCK),
        SPOILT => Verdict::Undecodable { reason: "no compact block".to_owned() },
        _ if is_compact_block => Verdict::Incomplete { missing: 1 },
        _ => Verdict::Invalid { hash: BLOCK, reason: "a bad signature".to_owned() },
    })
}

/// A follower's loop, its side of the chain, and what it sends.
fn app() -> (App, Arc<NodeSide>, mpsc::Receiver<NetworkMsg<Ctx>>) {
    let side = NodeSide::new(judge, Arc::default());
    let (network, sent) = mpsc::channel(64);
    let setup = Setup { publishes: true, network, ..side.setup(domain(CHAIN)) };
    (App::new(setup), side, sent)
}

/// What the loop has sent until now.
fn sent(network: &mut mpsc::Receiver<NetworkMsg<Ctx>>) -> Vec<Part> {
    let messages = std::iter::from_fn(|| network.try_recv().ok());
    let parts =
        messages.filter_map(|NetworkMsg::PublishProposalPart(part)| part.content.into_data());
    parts.collect()
}

/// Sends a body of the open height's first round, sealed by its proposer; answers what the engine
/// is told.
async fn send_body(app: &mut App, publisher: u8, bytes: &[u8]) -> Option<Validity> {
    send(app, publisher, bytes, None).await
}

/// Sends a compact block of a body.
async fn send_compact_block(
    app: &mut App,
    publisher: u8,
    bytes: &[u8],
    compact_block: &[u8],
) -> Option<Validity> {
    send(app, publisher, bytes, Some(compact_block)).await
}

async fn send(
    app: &mut App,
    publisher: u8,
    bytes: &[u8],
    compact_block: Option<&[u8]>,
) -> Option<Validity> {
    let key = on_turn(TIP + 1, 0);
    let fields = parts::describe(TIP + 1, 0, key.address(), BLOCK, bytes).expect("a small body");
    let form = compact_block
        .map_or(Form::Whole, |it| Form::CompactBlock(it.len().try_into().expect("short")));
    let head = Head::new(&fields, form, &key.sign(&domain(CHAIN).body(&fields)));
    let stream = parts::body_stream(&fields.digest, form, 0);
    let mut told = None;
    let bytes = Bytes::copy_from_slice(compact_block.unwrap_or(bytes));
    for message in parts::cut(&stream, head, &bytes) {
        told = app.on_part(peer(publisher), message).await.expect("no fault");
    }
    told.map(|value| value.validity)
}

async fn start_round(app: &mut App, round: u32) {
    app.on_started_round(Height(TIP + 1), Round::new(round)).await.expect("no fault");
}

#[tokio::test]
async fn a_good_body_counts_although_garbage_for_the_same_hash_came_first() {
    let (mut app, side, _) = app();
    assert_eq!(send_body(&mut app, 1, b"garbage").await, Some(Validity::Invalid));
    assert_eq!(send_body(&mut app, 2, GOOD).await, Some(Validity::Valid));
    // From then on nothing is judged again, and garbage changes nothing.
    assert_eq!(send_body(&mut app, 3, GOOD).await, Some(Validity::Valid));
    assert_eq!(send_body(&mut app, 1, b"garbage").await, Some(Validity::Valid));
    assert_eq!(side.asked(), 2);
}

#[tokio::test]
async fn a_liar_causes_little_work_and_every_round_is_a_new_chance() {
    let (mut app, side, _) = app();
    for round in 0..3 {
        start_round(&mut app, round).await;
        for publisher in 0..8 {
            for garbage in 0..8 {
                send_body(&mut app, publisher, &[publisher, garbage]).await;
            }
        }
        assert_eq!(send_body(&mut app, 9, GOOD).await, None, "no more in this round");
    }
    assert_eq!(side.asked(), 3 * 4);
    start_round(&mut app, 3).await;
    assert_eq!(send_body(&mut app, 9, GOOD).await, Some(Validity::Valid));
}

#[tokio::test]
async fn a_body_whose_compact_block_is_not_enough_is_asked_for_once_and_judged_when_it_comes() {
    let (mut app, side, mut network) = app();
    for publisher in 1..4 {
        assert_eq!(send_compact_block(&mut app, publisher, GOOD, b"?").await, None);
    }
    assert_eq!(sent(&mut network), [Part::Want(*Hash::digest(GOOD).as_bytes())]);
    assert_eq!(side.asked(), 1);
    assert_eq!(send_body(&mut app, 1, GOOD).await, Some(Validity::Valid));
    // The next round is a new chance, but a valid block needs none.
    start_round(&mut app, 1).await;
    assert_eq!(send_compact_block(&mut app, 1, GOOD, b"?").await, Some(Validity::Valid));
    assert_eq!((sent(&mut network), side.asked()), (Vec::new(), 2));
}

#[tokio::test]
async fn a_compact_block_that_somebody_spoilt_says_nothing_about_the_block() {
    let (mut app, side, mut network) = app();
    // Anybody can put other bytes behind a head that the proposer has sealed.
    let long_good = [GOOD; 9].concat();
    for publisher in 1..9 {
        assert_eq!(send_compact_block(&mut app, publisher, &long_good, SPOILT).await, None);
    }
    assert_eq!(sent(&mut network), [Part::Want(*Hash::digest(&long_good).as_bytes())]);
    assert_eq!(side.asked(), 1);
    assert_eq!(send_body(&mut app, 9, &long_good).await, Some(Validity::Valid));
}

#[tokio::test]
async fn compact_blocks_of_a_liar_cause_little_work_and_do_not_use_up_the_room_of_whole_bodies() {
    let (mut app, side, mut network) = app();
    for (publisher, garbage) in (1..9).flat_map(|by| (0..9).map(move |garbage| (by, garbage))) {
        send_compact_block(&mut app, publisher, &[garbage; 9], b"?").await;
    }
    assert_eq!((sent(&mut network).len(), side.asked()), (4, 4));
    assert_eq!(send_body(&mut app, 9, GOOD).await, Some(Validity::Valid));
}

#[tokio::test]
async fn a_compact_block_that_is_enough_is_as_good_as_the_body() {
    let (mut app, _, mut network) = app();
    assert_eq!(send_compact_block(&mut app, 1, GOOD, GOOD).await, Some(Validity::Valid));
    assert!(sent(&mut network).is_empty());
}

#[tokio::test]
async fn synced_bytes_that_do_not_execute_are_the_fault_of_their_sender() {
    let (app, ..) = app();
    let proposer = keys()[0].address().into();
    let sync =
        |bytes| app.sync.on_synced(Height(TIP + 1), Round::new(0), (proposer, bytes), &app.chain);
    let garbage = sync(Bytes::from_static(b"garbage")).await.expect("no fault");
    assert!(matches!(garbage, SyncedValueOutcome::PeerFault));
    let good = sync(Bytes::from_static(GOOD)).await.expect("no fault");
    let SyncedValueOutcome::Verdict(value) = good else { panic!("no verdict: {good:?}") };
    assert!(value.validity.is_valid());
}
