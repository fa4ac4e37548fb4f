//! What goes into a block: before v7, and from then on among what offers the same.

use txpool::{BlockLimits, Config, Offered};
use types::CheckedTx;

use crate::support::{Wallet, World};

const fn of_count(count: usize) -> BlockLimits {
    BlockLimits { bytes: usize::MAX, count }
}

fn senders(txs: &[CheckedTx], wallet: &Wallet) -> usize {
    txs.iter().filter(|tx| tx.from() == wallet.address()).count()
}

/// One wallet has sent 200 transactions before two others sent 10 each.
fn crowded() -> (World, [Wallet; 3]) {
    crowd(World::of_three())
}

/// The same from v7 on.
fn crowded_v7() -> (World, [Wallet; 3]) {
    crowd(World::v7(Config::default()))
}

fn crowd((world, [a, b, c]): (World, [Wallet; 3])) -> (World, [Wallet; 3]) {
    world.pending(&a.each(0..200, |it| it.transfer(&b, 1)));
    for nonce in 0..10 {
        world.pending(&[&b.at(nonce).transfer(&a, 1), &c.at(nonce).transfer(&a, 1)]);
    }
    (world, [a, b, c])
}

#[test]
fn a_sender_with_much_keeps_nobody_out_and_gets_the_room_that_nobody_else_wants() {
    for (world, wallets) in [crowded(), crowded_v7()] {
        for (room, expected) in [(100, [80, 10, 10]), (210, [190, 10, 10])] {
            let block = world.pool.candidates(of_count(room));
            let counts = wallets.each_ref().map(|wallet| senders(&block, wallet));
            assert_eq!(expected, counts, "{room}");
        }
    }
}

#[test]
fn candidates_are_in_the_order_of_arrival() {
    for (world, _) in [crowded(), crowded_v7()] {
        let all = world.order();
        let block = world.pool.candidates(of_count(100));
        let place = |tx: &CheckedTx| all.iter().position(|hash| *hash == tx.hash()).unwrap();
        let places: Vec<usize> = block.iter().map(place).collect();
        assert!(places.is_sorted(), "{places:?}");
    }
}

#[test]
fn a_share_is_one_of_the_block_however_often_its_builder_asks() {
    let (world, [a, b, _]) = crowded_v7();
    let mut offered = Offered::default();
    let first = world.pool.more_candidates(of_count(70), &mut offered);
    assert_eq!((64, 3), (senders(&first, &a), senders(&first, &b)));
    let second = world.pool.more_candidates(of_count(20), &mut offered);
    assert_eq!((6, 7), (senders(&second, &a), senders(&second, &b)));
}

#[test]
fn whoever_offers_more_is_held_to_no_share_of_those_who_offer_less() {
    let (world, [a, b, _]) = World::v7(Config::default());
    world.pending(&a.each(0..90, |it| it.tip(50).transfer(&b, 1)));
    world.pending(&[&b.at(0).tip(40).transfer(&a, 1)]);
    let block = world.pool.candidates(of_count(80));
    assert_eq!((80, 0), (senders(&block, &a), senders(&block, &b)));
}

#[test]
fn a_block_holds_no_more_bytes_than_allowed_and_no_nonce_gap() {
    let (world, [a, b, _]) = World::of_three();
    let small = a.at(0).transfer(&b, 1);
    let big = a.at(2).chunk("x", 0, 5_000);
    world.pending(&[&small, &a.at(1).blob("x", 5_000), &big, &a.at(3).transfer(&b, 1)]);
    world.pending(&[&b.at(0).transfer(&a, 1)]);
    let bytes = 4 * small.encoded_bytes() + 400;
    let block = world.pool.candidates(BlockLimits { bytes, count: usize::MAX });
    let found: Vec<_> = block.iter().map(|tx| (tx.from() == a.address(), tx.nonce())).collect();
    assert_eq!(vec![(true, 0), (true, 1), (false, 0)], found);
    assert!(block.iter().map(|tx| tx.encoded_bytes()).sum::<usize>() <= bytes);
}

#[test]
fn a_transaction_larger_than_a_share_still_gets_in() {
    let (world, [a, b, _]) = World::of_three();
    let (blob, big) = (a.at(0).blob("x", 50_000), a.at(1).chunk("x", 0, 50_000));
    world.pending(&[&blob, &big]);
    world.commit(&[&blob]);
    world.pending(&b.each(0..200, |it| it.transfer(&a, 1)));
    let limits = BlockLimits { bytes: big.encoded_bytes() + 5_000, count: usize::MAX };
    assert!(world.pool.candidates(limits).contains(&big));
}

#[test]
fn an_empty_block_takes_nothing() {
    let (world, _) = crowded();
    assert!(world.pool.candidates(of_count(0)).is_empty());
    assert!(world.pool.candidates(BlockLimits { bytes: 0, count: 10 }).is_empty());
}
