//! What the pool answers about itself.

use txpool::{Found, Halves, Page, SenderContent, Volume};
use types::{CheckedTx, Code, Signature};

use crate::support::make::trusted;
use crate::support::world::NOW;
use crate::support::{Wallet, World};

#[test]
fn status_counts_by_type_and_half() {
    let (world, [a, b, _]) = World::of_three();
    let (turn, transfer) = (a.at(0).turn(None), a.at(2).transfer(&b, 1));
    world.pending(&[&turn]);
    world.queued(&[&transfer]);
    let one = |tx: &CheckedTx| Volume { count: 1, bytes: tx.encoded_bytes() };
    let status = world.pool.status();
    assert_eq!(Halves { pending: one(&turn), queued: one(&transfer) }, status.total);
    assert_eq!(one(&turn), status.by_type["CHAT_TURN"].pending);
    assert_eq!(one(&transfer), status.by_type["TRANSFER"].queued);
    world.pool.clear(NOW).unwrap();
    assert_eq!(Halves::default(), world.pool.status().total);
    assert!(world.pool.status().by_type.values().all(|halves| *halves == Halves::default()));
}

#[test]
fn content_is_by_sender_and_nonce_in_pages() {
    let (world, wallets) = World::of_three();
    let mut sorted = wallets;
    sorted.sort_by_key(|wallet| wallet.address());
    let [a, b, c] = &sorted;
    world.queued(&[&a.at(5).transfer(b, 1), &a.at(3).transfer(b, 1)]);
    world.pending(&[&a.at(0).transfer(b, 1), &b.at(0).transfer(c, 1), &c.at(0).transfer(a, 1)]);
    let senders = |page: &Page<SenderContent>| {
        (page.items.iter().map(|it| it.address).collect::<Vec<_>>(), page.next)
    };
    let first = world.pool.content(None, 2);
    assert_eq!((vec![a.address(), b.address()], Some(b.address())), senders(&first));
    let nonces = |txs: &[CheckedTx]| txs.iter().map(|tx| tx.nonce()).collect::<Vec<_>>();
    let of_a = &first.items[0];
    assert_eq!((vec![0], vec![3, 5]), (nonces(&of_a.pending), nonces(&of_a.queued)));
    let second = world.pool.content(Some(b.address()), 2);
    assert_eq!((vec![c.address()], None), senders(&second));
    assert_eq!((Vec::new(), None), senders(&world.pool.content(Some(c.address()), 2)));
    assert_eq!(*of_a, world.pool.content_from(a.address()));
}

#[test]
fn a_page_ends_with_the_sender_that_fills_it_and_all_names_come_in_their_order() {
    let (world, mut wallets) = World::of_three();
    wallets.sort_by_key(Wallet::address);
    let [a, b, c] = &wallets;
    // Each has more than half of a page, and less than a whole one.
    let all: Vec<CheckedTx> = wallets
        .iter()
        .flat_map(|wallet| (0..150).map(|nonce| wallet.at(nonce).transfer(a, 1)))
        .collect();
    world.pending(&all.iter().rev().filter(|tx| tx.nonce() == 0).collect::<Vec<_>>());
    world.pending(&all.iter().filter(|tx| tx.nonce() > 0).collect::<Vec<_>>());
    let page = world.pool.content(None, usize::MAX);
    let counts: Vec<_> = page.items.iter().map(|it| (it.address, it.pending.len())).collect();
    assert_eq!(vec![(a.address(), 150), (b.address(), 150)], counts);
    let rest = world.pool.content(page.next, usize::MAX);
    assert_eq!((1, None), (rest.items.len(), rest.next));
    let names: Vec<_> = all.iter().map(|tx| (tx.from(), tx.hash())).collect();
    assert_eq!(names, world.pool.all_names());
    let first: Vec<_> = world.pool.pending(4).iter().map(|tx| (tx.from(), tx.nonce())).collect();
    let of = |wallet: &Wallet, nonce| (wallet.address(), nonce);
    assert_eq!(vec![of(c, 0), of(b, 0), of(a, 0), of(a, 1)], first);
}

#[test]
fn a_block_recognises_a_pooled_transaction_only_with_its_signature() {
    let (world, [a, b, _]) = World::of_three();
    let tx = a.at(0).transfer(&b, 1);
    world.pending(&[&tx]);
    let text = tx.to_json();
    let forged = text.replace(&tx.signature().to_string(), &Signature::new([7; 64]).to_string());
    let same = (*trusted(&text)).clone();
    let other = (*trusted(&forged)).clone();
    assert_eq!(tx.hash(), other.hash());
    assert_eq!(vec![Some(tx.clone()), None], world.pool.recognise(&[same, other]));
    assert_eq!(Some(tx.clone()), world.pool.lookup(tx.hash()));
}

#[test]
fn transactions_are_found_by_name_and_by_how_long_they_are_held() {
    let (world, [a, b, _]) = World::of_three();
    let (pending, queued) = (a.at(0).transfer(&b, 1), b.at(3).transfer(&a, 1));
    let stranger = b.at(0).transfer(&a, 1);
    world.pending(&[&pending]);
    world.queued(&[&queued]);
    let hashes = [queued.hash(), stranger.hash(), pending.hash()];
    assert_eq!(vec![Some(queued), None, Some(pending)], world.pool.lookup_all(&hashes));
    assert_eq!(vec![true, false, true], world.pool.held_since(&hashes, NOW));
    assert_eq!(vec![false; 3], world.pool.held_since(&hashes, NOW - 1));
}

#[test]
fn a_dropped_transaction_is_kept_with_its_reason_and_time() {
    let (world, [a, b, _]) = World::of_three();
    let tx = a.at(0).transfer(&b, 1);
    world.pending(&[&tx]);
    world.commit(&[&a.at(0).transfer(&b, 2)]);
    let Some(Found::Dropped(dropped)) = world.pool.find(tx.hash()) else {
        panic!("not dropped");
    };
    assert_eq!("Nonce stale: tx=0, state=1", dropped.reason.message());
    assert_eq!((NOW, tx), (dropped.at_ms, dropped.tx.clone()));
}

#[test]
fn stats_count_what_happened() {
    let (world, [a, b, _]) = World::of_three();
    let (first, second) = (a.at(0).transfer(&b, 1), a.at(1).transfer(&b, 1));
    world.pending(&[&first, &second]);
    assert_eq!(Code::NonceTaken, world.rejection(&a.at(1).transfer(&b, 2)));
    world.commit(&[&first, &a.at(1).transfer(&b, 3)]);
    let stats = world.pool.stats();
    assert_eq!((2, 1), (stats.accepted_total, stats.included_total));
    assert_eq!((0, 0), (stats.pending, stats.bytes));
    assert_eq!(vec![(Code::NonceTaken, 1)], Vec::from_iter(stats.refused_total));
    assert_eq!(vec![(Code::NonceStale, 1)], Vec::from_iter(stats.dropped_total));
}
