//! What is joined, who comes first, and who is told what.

use std::pin::Pin;
use std::time::Instant;

use futures::FutureExt;
use types::Hash;

use super::testing::{Started, World, badly_signed, bytes, soon, transfer};
use super::*;
use crate::journal::FAILING_MAX;
use crate::sync::Phase;

type Waiting<'a> = Pin<Box<dyn Future<Output = Vec<Answer>> + Send + 'a>>;

/// Hands texts in that are to wait until the service runs.
fn hand_in<'a>(handle: &'a IngestHandle, texts: &[&str], origin: Origin) -> Waiting<'a> {
    let texts = texts.iter().map(|text| bytes(text)).collect();
    let mut waiting: Waiting<'a> = Box::pin(handle.submit(texts, origin));
    assert!((&mut waiting).now_or_never().is_none(), "it is answered before the service runs");
    waiting
}

/// A few words for an answer.
fn told(answer: &Answer) -> String {
    match answer {
        Ok(Accepted { standing, is_new, .. }) => {
            format!("{}{standing:?}", if *is_new { "new " } else { "" })
        }
        Err(IngestError::Rejected(reason)) => format!("{:?}", reason.code()),
        Err(IngestError::Busy { retry_after_ms }) => format!("busy for {retry_after_ms}"),
        Err(error @ IngestError::Syncing) => error.to_string(),
        Err(error @ IngestError::ShuttingDown) => error.to_string(),
        Err(IngestError::Fault(IngestFault::Journal(_))) => "journal".to_owned(),
        Err(IngestError::Fault(IngestFault::Ledger(_))) => "ledger".to_owned(),
    }
}

fn all_told(answers: &[Answer]) -> Vec<String> {
    answers.iter().map(told).collect()
}

const SYNCING: &str = "the node is catching up with the chain";
const SHUTTING_DOWN: &str = "the node is shutting down";

#[tokio::test]
async fn submissions_that_wait_are_one_batch_and_each_gets_its_own_answers() {
    let (world, handle, service) = World::with_service();
    let texts = [transfer(0, 0, 1), transfer(0, 1, 1), transfer(1, 0, 1), transfer(2, 0, 1)];
    let hash = |at: usize| world.checked(&texts[at]).hash();
    let one = hand_in(&handle, &[&texts[0], &texts[1]], Origin::Client);
    let two = hand_in(&handle, &[&texts[2]], Origin::Client);
    let three = hand_in(&handle, &[&texts[3], &texts[2]], Origin::Client);
    let started = Started::new(service);

    let accepted = |answers: Vec<Answer>| -> Vec<(Hash, bool)> {
        answers.into_iter().map(|answer| answer.unwrap()).map(|it| (it.hash, it.is_new)).collect()
    };
    assert_eq!(vec![(hash(0), true), (hash(1), true)], accepted(soon(one).await));
    assert_eq!(vec![(hash(2), true)], accepted(soon(two).await));
    assert_eq!(vec![(hash(3), true), (hash(2), false)], accepted(soon(three).await));
    assert_eq!(vec![(0..4).map(hash).collect::<Vec<_>>()], world.operations());
    started.end().await;
}

#[tokio::test]
async fn the_pool_takes_a_batch_a_few_transactions_at_a_time() {
    let (world, handle, service) = World::with_service();
    let texts: Vec<Text> = (0..20).map(|nonce| bytes(&transfer(0, nonce, 1))).collect();
    let started = Started::new(service);
    let answers = soon(handle.submit(texts, Origin::Client)).await;
    assert_eq!(vec!["new Pending"; 20], all_told(&answers));
    let sizes: Vec<usize> = world.operations().iter().map(Vec::len).collect();
    assert_eq!(vec![8, 8, 4], sizes, "others get the lock in between");
    started.end().await;
}

#[tokio::test]
async fn clients_come_before_peers_that_waited_longer() {
    let (world, handle, service) = World::with_service();
    let (of_peer, of_client) = (transfer(0, 0, 1), transfer(0, 0, 2));
    let peer = hand_in(&handle, &[&of_peer], Origin::Peer);
    let client = hand_in(&handle, &[&of_client], Origin::Client);
    let started = Started::new(service);

    assert_eq!(vec!["new Pending"], all_told(&soon(client).await));
    assert_eq!(vec!["NonceTaken"], all_told(&soon(peer).await), "the client's has the nonce");
    assert_eq!(vec![vec![world.checked(&of_client).hash()]], world.operations());
    started.end().await;
}

#[tokio::test]
async fn a_peer_is_told_what_the_state_refuses_and_a_client_the_first_rejection() {
    let (_world, handle, service) = World::with_service();
    let poor = badly_signed(&transfer(100, 0, 1));
    let client = hand_in(&handle, &[&poor], Origin::Client);
    let peer = hand_in(&handle, &[&poor], Origin::Peer);
    let started = Started::new(service);

    assert_eq!(vec!["BadSignature"], all_told(&soon(client).await));
    assert_eq!(vec!["InsufficientBalance"], all_told(&soon(peer).await));
    started.end().await;
}

#[tokio::test]
async fn answers_are_in_the_order_of_the_texts_and_as_many() {
    let (_world, handle, service) = World::with_service();
    let started = Started::new(service);
    let texts = [
        transfer(0, 0, 1),
        badly_signed(&transfer(1, 0, 1)),
        transfer(0, 2, 1),
        "no transaction".to_owned(),
        transfer(0, 0, 1_000),
        transfer(100, 0, 1),
        transfer(2, 0, 1),
    ];
    let texts = texts.iter().map(|text| bytes(text)).collect();
    let answers = soon(handle.submit(texts, Origin::Client)).await;
    let expected = [
        "new Pending",
        "BadSignature",
        "new Queued",
        "Malformed",
        "NonceTaken",
        "InsufficientBalance",
        "new Pending",
    ];
    assert_eq!(expected.to_vec(), all_told(&answers));
    assert!(soon(handle.submit(Vec::new(), Origin::Client)).await.is_empty());
    started.end().await;
}

#[tokio::test]
async fn more_texts_than_a_submission_has_are_carried_out_in_parts() {
    let (world, handle, service) = World::with_service();
    let started = Started::new(service);
    let mut texts = vec![bytes("no transaction"); 2 * SUBMISSION_TEXTS_MAX + 1];
    let last = texts.len() - 1;
    let good = [0, SUBMISSION_TEXTS_MAX - 1, SUBMISSION_TEXTS_MAX, last];
    for (sender, at) in (0..).zip(good) {
        texts[at] = bytes(&transfer(sender, 0, 1));
    }
    let answers = soon(handle.submit(texts, Origin::Peer)).await;
    assert_eq!(last + 1, answers.len());
    let accepted: Vec<usize> =
        answers.iter().enumerate().filter(|(_, it)| it.is_ok()).map(|(at, _)| at).collect();
    assert_eq!(good, *accepted);
    let sizes: Vec<usize> = world.operations().iter().map(Vec::len).collect();
    assert_eq!(vec![2, 1, 1], sizes);
    started.end().await;
}

#[tokio::test]
async fn a_journal_that_fails_is_a_fault_for_all_but_what_a_block_holds() {
    let (world, handle, service) = World::with_service();
    let (included, pooled, new) = (transfer(0, 0, 1), transfer(1, 0, 1), transfer(2, 0, 1));
    world.admit(&included);
    world.commit();
    world.admit(&pooled);
    world.break_journal();
    let bad = badly_signed(&transfer(3, 0, 1));
    let client = hand_in(&handle, &[&included, &pooled, &new, &bad], Origin::Client);
    let peer = hand_in(&handle, &[&transfer(4, 0, 1)], Origin::Peer);
    let started = Started::new(service);

    let expected = vec!["Included", "journal", "journal", "BadSignature"];
    assert_eq!(expected, all_told(&soon(client).await));
    assert_eq!(vec!["journal"], all_told(&soon(peer).await));

    // The pool has kept them, and says so once they are written.
    world.mend_journal();
    let again = soon(handle.submit(vec![bytes(&pooled), bytes(&new)], Origin::Client)).await;
    assert_eq!(vec!["Pending", "Pending"], all_told(&again));
    started.end().await;
}

#[tokio::test]
async fn a_journal_that_fails_for_long_ends_the_service() {
    let (world, handle, mut service) = World::with_service();
    world.break_journal();
    let since = Instant::now().checked_sub(FAILING_MAX).unwrap();
    assert!(!service.patience.fails_at(since));
    let client = hand_in(&handle, &[&transfer(0, 0, 1)], Origin::Client);
    let peer = hand_in(&handle, &[&transfer(1, 0, 1)], Origin::Peer);
    let started = Started::new(service);

    assert_eq!(vec![SHUTTING_DOWN], all_told(&soon(client).await));
    assert_eq!(vec![SHUTTING_DOWN], all_told(&soon(peer).await), "nobody looks at it any more");
    let ended = soon(started.task).await.unwrap();
    assert!(matches!(ended, Err(NodeFault::Journal(JournalError::Io { .. }))), "{ended:?}");
    let late = soon(handle.submit(vec![bytes("late")], Origin::Client)).await;
    assert_eq!(vec![SHUTTING_DOWN], all_told(&late));
}

#[tokio::test]
async fn a_full_queue_is_told_at_once() {
    let (_world, handle, _service) = World::with_service();
    let waiting: Vec<_> =
        (0..QUEUE_MAX).map(|_| hand_in(&handle, &["one"], Origin::Peer)).collect();
    let turned_away = handle.submit(vec![bytes("two"), bytes("three")], Origin::Client);
    let turned_away = turned_away.now_or_never().expect("it waits");
    assert_eq!(vec!["busy for 250"; 2], all_told(&turned_away));
    drop(waiting);
}

#[tokio::test]
async fn nothing_is_taken_while_the_node_catches_up() {
    let (world, handle, service) = World::with_service();
    let text = transfer(0, 0, 1);
    let early = hand_in(&handle, &[&text, &text], Origin::Client);
    world.sync.enter(Phase::CatchingUp);
    let late = handle.submit(vec![bytes(&text)], Origin::Peer);
    assert_eq!(vec![SYNCING], all_told(&late.now_or_never().expect("it waits")));
    let started = Started::new(service);

    assert_eq!(vec![SYNCING; 2], all_told(&soon(early).await), "it began meanwhile");
    assert!(world.operations().is_empty());
    world.sync.enter(Phase::Running);
    let again = soon(handle.submit(vec![bytes(&text)], Origin::Peer)).await;
    assert_eq!(vec!["new Pending"], all_told(&again));
    started.end().await;
}

#[tokio::test]
async fn what_waits_when_the_service_stops_is_told_so() {
    let (world, handle, service) = World::with_service();
    let text = transfer(0, 0, 1);
    let client = hand_in(&handle, &[&text, &text], Origin::Client);
    let peer = hand_in(&handle, &[&text], Origin::Peer);
    let stop = CancellationToken::new();
    stop.cancel();
    soon(service.run(stop)).await.unwrap();

    assert_eq!(vec![SHUTTING_DOWN; 2], all_told(&soon(client).await));
    assert_eq!(vec![SHUTTING_DOWN], all_told(&soon(peer).await));
    let late = handle.submit(vec![bytes(&text)], Origin::Client);
    assert_eq!(vec![SHUTTING_DOWN], all_told(&late.now_or_never().expect("it waits")));
    assert!(world.operations().is_empty());
}
