//! From v7 on: what waits for the base fee to fall, and what waits for something that is not in the block.

use tempfile::TempDir;
use txpool::{BlockLimits, Config, Found, Offered};
use types::{CheckedTx, Code, Hash, Params, Rejection};

use crate::journal::restore;
use crate::support::ledger::params;
use crate::support::make::run_of;
use crate::support::world::NOW;
use crate::support::{Wallet, World};

const EVERYTHING: BlockLimits = BlockLimits { bytes: usize::MAX, count: usize::MAX };
const HOUR: u64 = 3_600_000;

/// A chain whose blocks are so small that four transfers raise the base fee by one, and an empty block
/// lowers it by one, with rich wallets of these numbers.
pub(crate) fn small_blocks<const N: usize>(config: Config) -> (World, [Wallet; N]) {
    let wallets: [Wallet; N] = Wallet::first();
    let filler = filler();
    let mut balances: Vec<_> = wallets.iter().map(|wallet| (wallet, 1_000_000)).collect();
    balances.push((&filler, 1_000_000));
    let params = Params { max_block_bytes: 2_000, ..params() };
    (World::v7_with(0, params, config, &balances), wallets)
}

/// Who fills blocks.
fn filler() -> Wallet {
    Wallet::new(100)
}

/// What fills the next block.
fn full_block(world: &World) -> Vec<CheckedTx> {
    let filler = filler();
    let nonce = world.chain.account(filler.address()).nonce;
    filler.each(nonce..nonce + 4, |it| it.turn(None))
}

/// Commits a full block: the base fee rises by one.
pub(crate) fn raise(world: &World) {
    let full = full_block(world);
    // Unless the pool is full, they come out of it, so that nothing has to be executed again.
    full.iter().for_each(|tx| drop(world.submit(tx)));
    world.commit(&full);
}

/// The same with a block that the pool has not seen before, so that nothing leaves it for that.
fn raise_unseen(world: &World) {
    world.commit(&full_block(world));
}

/// The code for which the transaction waits, and whether for the sake of another one.
fn wait_code(world: &World, tx: &CheckedTx) -> Option<(Code, bool)> {
    match world.pool.find(tx.hash()) {
        Some(Found::Waiting { reason, .. }) => {
            let is_for_another = reason.extra().any(|(key, _)| key == "after");
            Some((reason.code(), is_for_another))
        }
        Some(Found::Pending(_) | Found::Queued(_) | Found::Dropped(_)) | None => None,
    }
}

#[test]
fn one_that_waits_for_the_base_fee_makes_no_block_due_and_comes_back_without_execution() {
    let (world, [a, b]) = small_blocks(Config::default());
    let bound = a.at(0).max_base_fee(10).transfer(&b, 1);
    world.pending(&[&bound]);
    assert!(world.pool.has_offers());
    raise(&world);
    let admits = world.admits();
    assert_eq!((false, 0), (world.pool.has_offers(), world.pool.pending_count()));
    let stats = world.pool.stats();
    assert_eq!((0, 1), (stats.pending, stats.waiting));
    assert_eq!(Some((Code::FeeAboveMax, false)), wait_code(&world, &bound));
    assert!(world.pool.candidates(EVERYTHING).is_empty());
    let content = world.pool.content_from(a.address());
    assert_eq!((vec![], vec![bound.clone()]), (content.pending, content.waiting));
    let starts = world.starts();
    world.commit_empty();
    assert_eq!(starts + 1, world.starts(), "a block is due again");
    assert_eq!((true, 1), (world.pool.has_offers(), world.pool.pending_count()));
    assert!(world.is_pending(&bound));
    assert_eq!(vec![bound.hash()], world.order());
    assert_eq!((admits, 0), (world.admits(), world.pool.stats().rebuilds_total));
}

#[test]
fn what_its_sender_sent_after_it_waits_with_it() {
    let (world, [a, b]) = small_blocks(Config::default());
    let first = a.at(0).transfer(&b, 1);
    let bound = a.at(1).max_base_fee(10).transfer(&b, 1);
    let after = [a.at(2).transfer(&b, 1), a.at(3).max_base_fee(10).transfer(&b, 1)];
    world.pending(&[&first, &bound, &after[0], &after[1]]);
    raise(&world);
    assert!(world.pool.has_offers());
    assert_eq!((1, 3), (world.pool.pending_count(), world.pool.stats().waiting));
    assert_eq!(vec![first.hash()], world.order());
    assert_eq!(Some((Code::FeeAboveMax, false)), wait_code(&world, &bound));
    assert_eq!(Some((Code::FeeAboveMax, true)), wait_code(&world, &after[0]));
    assert_eq!(Some((Code::FeeAboveMax, true)), wait_code(&world, &after[1]));
    world.commit(&[&first]);
    assert_eq!((3, 0), (world.pool.pending_count(), world.pool.stats().waiting));
}

#[test]
fn one_that_waits_outlasts_a_rebuild_with_its_money_set_aside() {
    let (world, [a, b]) = small_blocks(Config::default());
    let bound = a.at(0).max_base_fee(10).transfer(&b, 500_000);
    let other = b.at(0).turn(None);
    world.pending(&[&bound, &other]);
    raise(&world);
    let left = world.account(&a).balance;
    // A block has another transaction with the nonce.
    world.commit(&[&b.at(0).time(7).turn(None), &b.at(1).turn(None), &b.at(2).turn(None)]);
    assert_eq!(1, world.pool.stats().rebuilds_total);
    assert_eq!(Some((Code::FeeAboveMax, false)), wait_code(&world, &bound));
    assert_eq!(left, world.account(&a).balance);
    world.commit_empty();
    world.commit_empty();
    assert_eq!(vec![bound.hash()], world.order());
}

#[test]
fn a_newcomer_that_would_wait_is_refused_and_one_whose_turn_comes_waits() {
    let (world, [a, b]) = small_blocks(Config::default());
    let bound = a.at(1).max_base_fee(10).transfer(&b, 1);
    world.queued(&[&bound]);
    raise(&world);
    assert_eq!(Code::FeeAboveMax, world.rejection(&b.at(0).max_base_fee(10).transfer(&a, 1)));
    let seen = world.pool.glance(&[b.at(0).max_base_fee(10).transfer(&a, 1)]);
    let codes: Vec<_> = seen.iter().map(|it| it.as_ref().map(Rejection::code)).collect();
    assert_eq!(vec![Some(Code::FeeAboveMax)], codes);
    world.pending(&[&a.at(0).transfer(&b, 1)]);
    assert_eq!(Some((Code::FeeAboveMax, false)), wait_code(&world, &bound));
    world.commit_empty();
    assert_eq!(2, world.pool.pending_count());
}

#[test]
fn one_that_waits_leaves_after_an_hour_and_makes_room_for_others() {
    let (world, [a, b, c]) = small_blocks(Config { count_max: 2, ..Config::default() });
    let bound = [a, b].map(|wallet| wallet.at(0).max_base_fee(10).transfer(&c, 1));
    world.pending(&bound);
    raise(&world);
    world.pending(&[&c.at(0).tip(5).turn(None)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&bound[1]));
    raise_unseen(&world);
    assert_eq!(1, world.pool.stats().waiting);
    world.commit_block_at(world.chain.begin(), NOW + HOUR);
    assert_eq!(Some(Code::Evicted), world.drop_code(&bound[0]));
    assert_eq!(0, world.pool.stats().waiting);
}

#[test]
fn empty_blocks_while_everything_waits_execute_nothing_again() {
    let (world, [a, b]) = small_blocks(Config::default());
    world.pending(&[&a.at(0).max_base_fee(10).transfer(&b, 1)]);
    for _ in 0..3 {
        raise(&world);
    }
    world.commit_empty();
    assert_eq!((1, 0), (world.pool.stats().waiting, world.pool.stats().rebuilds_total));
}

#[test]
fn however_many_empty_blocks_leave_something_out_the_draft_is_built_anew_once() {
    let (world, [a, b]) = small_blocks(Config::default());
    let left_out = a.at(0).transfer(&b, 1);
    world.pending(&[&left_out]);
    for _ in 0..3 {
        world.commit_empty();
    }
    assert_eq!(1, world.pool.stats().rebuilds_total);
    assert!(world.is_pending(&left_out));
}

/// Offers everything to a block, commits it, and answers what it has.
pub(crate) fn build(world: &World) -> Vec<Hash> {
    let mut block = world.chain.begin();
    let included = world.fill(&mut block, usize::MAX);
    world.commit_block(block);
    included
}

#[test]
fn what_needs_something_that_waits_is_tried_in_one_block_and_again_when_that_comes_back() {
    let (world, [a, b]) = small_blocks(Config::default());
    let request = a.at(0).max_base_fee(10).request();
    let claim = b.at(0).claim(run_of(&request));
    world.pending(&[&request, &claim]);
    raise(&world);
    raise(&world);
    raise(&world);
    assert!(world.pool.has_offers(), "nobody knows that the claim needs the request");
    assert_eq!(Vec::<Hash>::new(), build(&world));
    assert!(!world.pool.has_offers());
    world.commit_empty();
    assert!(!world.pool.has_offers(), "the base fee is 11");
    assert_eq!((0, 1), (world.pool.stats().rebuilds_total, world.pool.stats().waiting));
    world.commit_empty();
    assert!(world.pool.has_offers());
    assert_eq!(vec![request.hash(), claim.hash()], build(&world));
}

#[test]
fn what_a_block_could_not_take_is_offered_again_after_a_block_that_has_something() {
    let (world, [a, b, c]) = small_blocks(Config::default());
    let request = a.at(0).request();
    let (claim, after) = (b.at(0).claim(run_of(&request)), b.at(1).turn(None));
    world.pending(&[&request, &claim, &after, &c.at(0).turn(None)]);
    let mut offered = Offered::default();
    assert_eq!(4, world.pool.more_candidates(EVERYTHING, &mut offered).len());
    offered.refuse(&claim);
    world.pool.built(&offered);
    assert_eq!(vec![request.hash(), c.at(0).turn(None).hash()], world.order());
    world.commit(&[&request]);
    assert_eq!(vec![claim.hash(), after.hash(), c.at(0).turn(None).hash()], world.order());
}

#[test]
fn what_blocks_cannot_take_rests_ever_longer_unless_what_it_needs_is_in_a_block() {
    let (world, [a, b]) = small_blocks(Config::default());
    let poor = Wallet::new(50);
    let paying = a.at(0).max_base_fee(10).transfer(&poor, 500_000);
    let spending = poor.at(0).tip(9).turn(None);
    world.pending(&[&paying, &spending]);
    (0..8).for_each(|_| raise(&world));
    let is_offered = || world.order().contains(&spending.hash());
    let turns = b.each(0..3, |it| it.turn(None));
    for turns in [&turns[..1], &turns[1..]] {
        assert_eq!(Vec::<Hash>::new(), build(&world));
        for (place, turn) in turns.iter().enumerate() {
            assert!(!is_offered(), "{place}");
            world.commit(&[turn]);
        }
        assert!(is_offered());
    }
    assert_eq!(Vec::<Hash>::new(), build(&world));
    while !world.order().contains(&paying.hash()) {
        world.commit_empty();
    }
    assert!(!is_offered());
    world.commit(&[&paying]);
    assert!(is_offered());
}

#[test]
fn a_step_that_pays_for_bytes_waits_as_others_do() {
    let (world, [a, b]) = small_blocks(Config::default());
    let (request, large) = (a.at(0).request(), "x".repeat(3_000));
    let claim = b.at(0).claim(run_of(&request));
    world.commit(&[&request, &claim]);
    let finish = b.at(1).max_base_fee(10).answer(run_of(&request), &large);
    let free = b.at(1).max_base_fee(10).time(7).finish(run_of(&request), 0);
    raise(&world);
    raise(&world);
    assert_eq!(Code::FeeAboveMax, world.rejection(&finish));
    world.pending(&[&free]);
    assert!(world.pool.has_offers());
}

#[test]
fn a_restart_keeps_what_waits() {
    let (world, [a, b]) = small_blocks(Config::default());
    let directory = TempDir::new().unwrap();
    let bound = a.at(0).max_base_fee(10).transfer(&b, 1);
    let first = world.restarted(Config::default(), directory.path());
    restore(&first).unwrap();
    first.pending(&[&bound]);
    first.pool.write_journal().unwrap();
    raise(&first);
    drop(first);
    let second = world.restarted(Config::default(), directory.path());
    assert_eq!(1, restore(&second).unwrap().accepted);
    assert_eq!(Some((Code::FeeAboveMax, false)), wait_code(&second, &bound));
}

/// A full pool of four, in which the transactions wait for the base fee to fall that would pay no more
/// than `highest` each.
fn full_of_waiting(highest: [u64; 4]) -> (World, [Wallet; 6], Vec<CheckedTx>) {
    let (world, wallets) = small_blocks(Config { count_max: 4, ..Config::default() });
    let bound = |(wallet, highest): (&Wallet, u64)| {
        wallet.at(0).tip(100_000).max_base_fee(highest).transfer(wallet, 1)
    };
    let txs: Vec<_> = wallets.iter().zip(highest).map(bound).collect();
    world.pending(&txs);
    raise_unseen(&world);
    raise_unseen(&world);
    (world, wallets, txs)
}

#[test]
fn what_waits_for_the_base_fee_gives_way_to_whoever_pays_it_however_much_it_offers() {
    let (world, [_, _, _, _, e, f], txs) = full_of_waiting([10, 11, 10, 50]);
    assert_eq!(3, world.pool.stats().waiting);
    let paying = [e.at(0).transfer(&f, 1), f.at(0).transfer(&e, 1), e.at(1).transfer(&f, 1)];
    // Of those that wait, who would pay the least goes first, and of equals the latest.
    for (paying, gone) in paying.iter().zip([2, 0, 1]) {
        world.pending(&[paying]);
        assert_eq!(Some(Code::Evicted), world.drop_code(&txs[gone]));
    }
    let Some(Found::Dropped(dropped)) = world.pool.find(txs[0].hash()) else { panic!("forgotten") };
    let message = dropped.reason.to_string();
    assert!(message.contains("sent again with a higher maxBaseFee"), "{message}");
    // What pays is worth what it offers.
    assert_eq!(Code::PoolFull, world.rejection(&f.at(1).transfer(&e, 1)));
    assert!(world.is_pending(&txs[3]));
}

#[test]
fn what_would_wait_for_the_base_fee_takes_nobodys_place() {
    let (world, [a, _, _, _, e, f], txs) = full_of_waiting([10, 50, 50, 50]);
    assert_eq!(1, world.pool.stats().waiting);
    let after = a.at(1).tip(500_000).transfer(&e, 1);
    assert_eq!(Code::PoolFull, world.rejection(&after));
    world.pending(&[&e.at(0).transfer(&f, 1)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&txs[0]));
}

#[test]
fn of_one_sender_what_waits_goes_and_what_pays_before_it_stays() {
    let (world, [a, b, c]) = small_blocks(Config { count_max: 4, ..Config::default() });
    let txs = [
        a.at(0).tip(9).max_base_fee(50).transfer(&b, 1),
        a.at(1).tip(9_000).max_base_fee(10).transfer(&b, 1),
        a.at(2).tip(9_000).max_base_fee(50).transfer(&b, 1),
        b.at(0).transfer(&a, 1),
    ];
    world.pending(&txs);
    raise(&world);
    world.pending(&c.each(0..2, |it| it.transfer(&b, 1)));
    assert_eq!([Some(Code::Evicted); 2], [world.drop_code(&txs[1]), world.drop_code(&txs[2])]);
    assert!(world.is_pending(&txs[0]) && world.is_pending(&txs[3]));
    assert_eq!(Code::PoolFull, world.rejection(&c.at(2).transfer(&b, 1)));
}
