//! From v7 on: who makes room in a full pool, who gets into a block, and what has waited for too long.

use proptest::prelude::*;
use txpool::{BlockLimits, Config, Found, Offered};
use types::{Code, Hash, Params};

use crate::support::ledger::{execute, params};
use crate::support::make::{hashes, run_of};
use crate::support::world::NOW;
use crate::support::{Wallet, World};

/// A pool of so many transactions, of which nothing is kept for steps.
fn of_count<const N: usize>(count_max: usize) -> (World, [Wallet; N]) {
    World::v7(Config { count_max, ..Config::default() })
}

const fn block_of(count: usize) -> BlockLimits {
    BlockLimits { bytes: usize::MAX, count }
}

#[test]
fn a_full_pool_evicts_the_latest_of_those_that_offer_least() {
    let (world, [a, b, c, d]) = of_count(3);
    let dear = a.at(0).tip(5).transfer(&d, 1);
    let early = b.at(0).transfer(&d, 1);
    let late = c.at(0).transfer(&d, 1);
    world.pending(&[&dear, &early, &late]);
    world.events();
    let newcomer = d.at(0).tip(3).transfer(&a, 1);
    world.pending(&[&newcomer]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&late));
    assert!(world.is_pending(&dear) && world.is_pending(&early));
    assert_eq!(vec![("dropped", late.hash()), ("pending", newcomer.hash())], world.events());
    assert_eq!(1, world.pool.stats().evicted_total);
}

#[test]
fn who_was_evicted_is_told_what_to_do_and_can_send_the_same_nonce_again() {
    let (world, [a, b, c]) = of_count(1);
    let cheap = a.at(0).transfer(&b, 1);
    world.pending(&[&cheap]);
    world.pending(&[&c.at(0).tip(3).transfer(&b, 1)]);
    let Some(Found::Dropped(dropped)) = world.pool.find(cheap.hash()) else { panic!("forgotten") };
    let message = dropped.reason.to_string();
    assert!(message.contains("evicted by transactions that offer more"), "{message}");
    assert!(message.contains("sent again with a higher tip"), "{message}");
    assert_eq!((0, 1_000_000), (world.account(&a).nonce, world.account(&a).balance.get()));
    world.pending(&[&a.at(0).tip(9).transfer(&b, 1)]);
}

#[test]
fn who_offers_no_more_than_the_least_is_refused() {
    let (world, [a, b, c]) = of_count(2);
    world.pending(&[&a.at(0).tip(3).transfer(&b, 1), &b.at(0).tip(4).transfer(&a, 1)]);
    assert_eq!(Code::PoolFull, world.rejection(&c.at(0).tip(3).transfer(&b, 1)));
    assert_eq!(Code::PoolFull, world.rejection(&c.at(0).tip(2).transfer(&b, 1)));
    world.pending(&[&c.at(0).tip(4).transfer(&b, 1)]);
}

#[test]
fn who_offers_less_than_an_eighth_more_is_refused() {
    let (world, [a, b]) = of_count(1);
    world.pending(&[&a.at(0).tip(1_000).transfer(&b, 1)]);
    assert_eq!(Code::PoolFull, world.rejection(&b.at(0).tip(1_110).transfer(&a, 1)));
    world.pending(&[&b.at(0).tip(1_130).transfer(&a, 1)]);
}

#[test]
fn before_v7_a_tip_evicts_nobody() {
    let config = Config { count_max: 1, ..Config::default() };
    let [a, b] = Wallet::first();
    let world = World::v7_from(3, config, &[(&a, 1_000_000), (&b, 1_000_000)]);
    let first = a.at(0).transfer(&b, 1);
    world.pending(&[&first]);
    assert_eq!(Code::PoolFull, world.rejection(&b.at(0).tip(9).transfer(&a, 1)));
    world.commit_empty();
    assert_eq!(Code::PoolFull, world.rejection(&b.at(0).tip(9).transfer(&a, 1)));
    // The next block is the first one of v7.
    world.commit_empty();
    world.pending(&[&b.at(0).tip(9).transfer(&a, 1)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&first));
}

#[test]
fn a_nonce_is_worth_no_more_than_those_before_it() {
    let (world, [a, b, c]) = of_count(3);
    let behind = a.at(1).tip(100).transfer(&b, 1);
    world.pending(&[&a.at(0).tip(1).transfer(&b, 1), &behind, &b.at(0).tip(2).transfer(&a, 1)]);
    world.pending(&[&c.at(0).tip(3).transfer(&b, 1)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&behind));
    // Nor is what would come after it.
    assert_eq!(Code::PoolFull, world.rejection(&a.at(1).tip(100).transfer(&b, 1)));
}

#[test]
fn once_the_cheap_ones_before_it_are_in_a_block_a_nonce_is_worth_what_it_offers() {
    let (world, [a, b, c]) = of_count(2);
    let (cheap, dear) = (a.at(0).transfer(&b, 1), a.at(1).tip(100).transfer(&b, 1));
    world.pending(&[&cheap, &dear]);
    world.commit(&[&cheap]);
    let other = b.at(0).tip(2).transfer(&a, 1);
    world.pending(&[&other]);
    world.pending(&[&c.at(0).tip(3).transfer(&b, 1)]);
    assert!(world.is_pending(&dear));
    assert_eq!(Some(Code::Evicted), world.drop_code(&other));
}

#[test]
fn what_was_paid_with_something_evicted_goes_with_it() {
    let (world, [a, b, c]) = of_count(3);
    let poor = Wallet::new(9);
    let paying = a.at(0).transfer(&poor, 500);
    let spending = poor.at(0).tip(100).transfer(&b, 100);
    let other = b.at(0).tip(2).transfer(&a, 1);
    world.pending(&[&paying, &spending, &other]);
    world.pending(&[&c.at(0).tip(3).transfer(&b, 1)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&paying));
    assert_eq!(Some(Code::Evicted), world.drop_code(&spending));
    assert!(world.is_pending(&other));
    assert_eq!(0, world.account(&poor).balance.get());
}

#[test]
fn a_claim_goes_with_its_request() {
    let (world, [a, b, c]) = of_count(3);
    let request = a.at(0).request();
    let claim = b.at(0).tip(50).claim(run_of(&request));
    world.pending(&[&request, &claim, &c.at(0).tip(9).turn(None)]);
    world.pending(&[&c.at(1).tip(9).turn(None)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&request));
    assert_eq!(Some(Code::Evicted), world.drop_code(&claim));
    assert_eq!(1_000_000, world.account(&a).balance.get());
}

#[test]
fn a_large_newcomer_makes_as_much_room_as_it_needs_or_none() {
    let (a, b) = (Wallet::new(1), Wallet::new(2));
    let small = b.each(0..4, |it| it.tip(1).transfer(&a, 1));
    let blob = a.at(0).tip(1_000).blob("x", 300);
    let large = a.at(1).tip(100).chunk("x", 0, 300);
    // The small ones have nine tenths.
    let bytes = small.iter().map(|tx| tx.encoded_bytes()).sum::<usize>() + blob.encoded_bytes();
    let config = Config { bytes_max: bytes * 10 / 9 + 1, ..Config::default() };
    let world = World::v7_from(0, config, &[(&a, 1_000_000), (&b, 1_000_000)]);
    world.pending(&small);
    world.pending(&[&blob]);
    let before = world.pool.status();
    let cheap = a.at(1).chunk("x", 0, 300);
    assert_eq!(Code::PoolFull, world.rejection(&cheap));
    assert_eq!(before, world.pool.status());
    assert!(large.encoded_bytes() > small[0].encoded_bytes());
    world.pending(&[&large]);
    assert!(world.pool.status().total.total().bytes <= bytes + 2);
    assert!(world.is_pending(&small[0]) && !world.is_pending(&small[3]));
}

#[test]
fn who_needs_the_room_of_more_than_64_evicts_nobody() {
    let [a, b, c] = Wallet::first();
    let small = [&b, &c].map(|wallet| wallet.each(0..40, |it| it.tip(1).transfer(&a, 1))).concat();
    let size = u32::try_from(small[0].encoded_bytes()).unwrap();
    let bytes = small.iter().map(|tx| tx.encoded_bytes()).sum::<usize>();
    for (count, expected) in [(66, Some(Code::PoolFull)), (40, None)] {
        // Base64 makes four bytes of three.
        let length = count * size * 3 / 4;
        let blob = a.at(0).tip(10_000).blob("x", length.into());
        let large = a.at(1).tip(100_000).chunk("x", 0, length.into());
        let bytes_max = (bytes + blob.encoded_bytes()) * 10 / 9 + 1;
        let config = Config { bytes_max, ..Config::default() };
        let money = [(&a, 1_000_000), (&b, 1_000_000), (&c, 1_000_000)];
        let world = World::v7_from(0, config, &money);
        world.pending(&small);
        world.pending(&[&blob]);
        let before = world.pool.status();
        if let Some(code) = expected {
            assert_eq!(code, world.rejection(&large));
            assert_eq!(before, world.pool.status());
        } else {
            world.pending(&[&large]);
        }
    }
}

#[test]
fn queued_transactions_make_room_before_executable_ones_do() {
    let (world, [a, b, c]) = of_count(2);
    let queued = a.at(1).transfer(&b, 1);
    let pending = b.at(0).transfer(&a, 1);
    world.queued(&[&queued]);
    world.pending(&[&pending]);
    world.pending(&[&c.at(0).tip(1).transfer(&a, 1)]);
    assert_eq!(Some(Code::PoolFull), world.drop_code(&queued));
    assert!(world.is_pending(&pending));
}

#[test]
fn an_invalid_newcomer_evicts_nobody() {
    let (world, [a, b, c]) = of_count(1);
    let first = a.at(0).transfer(&b, 1);
    world.pending(&[&first]);
    assert_eq!(Code::InsufficientBalance, world.rejection(&c.at(0).tip(9).transfer(&a, 2_000_000)));
    assert!(world.is_pending(&first));
}

#[test]
fn a_newcomer_that_was_paid_by_what_would_have_to_go_for_it_evicts_nobody() {
    let (world, [a, b]) = of_count(2);
    let poor = Wallet::new(9);
    let (paying, other) = (a.at(0).transfer(&poor, 500), b.at(0).tip(5).transfer(&a, 1));
    world.pending(&[&paying, &other]);
    let before = world.pool.status();
    world.events();
    assert_eq!(Code::PoolFull, world.rejection(&poor.at(0).tip(100).transfer(&b, 100)));
    assert_eq!(before, world.pool.status());
    assert_eq!(Vec::<(&str, Hash)>::new(), world.events());
    while world.pool.settle(NOW).unwrap() {}
    assert_eq!(vec![other.hash(), paying.hash()], world.order());
    assert_eq!(500, world.account(&poor).balance.get());
}

#[test]
fn a_newcomer_that_names_what_would_have_to_go_for_it_evicts_nobody() {
    let (world, [a, b, c]) = of_count(3);
    let mine = [a.at(0).tip(2).turn(None), a.at(1).tip(1).turn(None)];
    let parent = b.at(0).turn(None);
    world.pending(&[&mine[0], &mine[1], &parent]);
    let answer = c.at(0).tip(100).turn(Some(parent.hash()));
    assert_eq!(Code::PoolFull, world.rejection(&answer));
    while world.pool.settle(NOW).unwrap() {}
    assert_eq!(hashes(&[&mine[0], &mine[1], &parent]), world.order());
    assert_eq!(0, world.pool.stats().evicted_total);
}

#[test]
fn what_is_taken_unseen_and_follows_what_would_have_to_go_for_it_evicts_nobody() {
    let config = Config { count_max: 4, rebuild_slice: 1, ..Config::default() };
    let (world, [a, b, c]) = World::v7::<3>(config);
    let poor = Wallet::new(9);
    let (stale, paying) = (b.at(0).tip(9).turn(None), a.at(0).transfer(&poor, 50_000));
    let spending = [poor.at(0).tip(50).turn(None), poor.at(1).tip(50).turn(None)];
    world.pending(&[&stale, &paying, &spending[0], &spending[1]]);
    // A block has another transaction with a nonce, so everything is executed again, one by one.
    world.commit(&[&b.at(0).time(7).turn(None)]);
    while !world.order().contains(&spending[0].hash()) {
        assert!(world.pool.settle(NOW).unwrap());
    }
    assert!(!world.order().contains(&spending[1].hash()));
    world.pending(&[&c.at(0).tip(70).turn(None)]);
    let before = world.pool.status();
    assert_eq!(4, before.total.pending.count);
    assert_eq!(Code::PoolFull, world.rejection(&poor.at(2).tip(70).turn(None)));
    assert_eq!(before, world.pool.status());
    while world.pool.settle(NOW).unwrap() {}
    assert_eq!(4, world.order().len());
}

#[test]
fn what_is_taken_unseen_takes_nobodys_place_however_much_it_offers() {
    let config = Config { count_max: 4, rebuild_slice: 1, ..Config::default() };
    let (world, [a, b, c]) = World::v7::<3>(config);
    let others = [a.at(0).tip(5).turn(None), b.at(0).tip(9).turn(None)];
    let own = c.each(0..2, |it| it.tip(70).turn(None));
    world.pending(&others);
    world.pending(&own);
    // A block has another transaction with a nonce, so everything is executed again, one by one.
    world.commit(&[&b.at(0).time(7).turn(None)]);
    assert!(!world.order().contains(&own[1].hash()));
    assert_eq!(Code::PoolFull, world.rejection(&c.at(2).tip(70).turn(None)));
    while world.pool.settle(NOW).unwrap() {}
    assert!(world.is_pending(&others[0]));
}

#[test]
fn what_names_something_evicted_goes_when_a_block_cannot_take_it_and_nothing_else_is_looked_at() {
    let (world, [a, b, c, d]) = of_count(4);
    let parent = a.at(0).turn(None);
    let answer = b.at(0).tip(50).turn(Some(parent.hash()));
    let after = b.at(1).tip(50).turn(None);
    let other = c.at(0).tip(9).turn(None);
    world.pending(&[&parent, &answer, &after, &other]);
    world.pending(&[&d.at(0).tip(20).turn(None)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&parent));
    let mut offered = Offered::default();
    assert!(world.pool.more_candidates(block_of(9), &mut offered).contains(&answer));
    offered.refuse(&answer);
    world.pool.built(&offered);
    let admits = world.admits();
    assert!(world.pool.has_unsettled());
    while world.pool.settle(NOW).unwrap() {}
    assert_eq!(Some(Code::TurnNotFound), world.drop_code(&answer));
    assert!(world.is_queued(&after));
    assert_eq!(0, world.pool.stats().rebuilds_total);
    assert!(world.admits() <= admits + 2, "{} more", world.admits() - admits);
    assert_eq!(2, world.order().len());
}

/// A pool of twenty, of which two are kept, and runs that two miners have claimed in blocks.
fn with_runs() -> (World, [Wallet; 4], [Hash; 2]) {
    let (world, [a, b, c, d]) = of_count(20);
    let requests = [a.at(0).request(), a.at(1).request()];
    let runs = [run_of(&requests[0]), run_of(&requests[1])];
    let claims = [b.at(0).claim(runs[0]), c.at(0).claim(runs[1])];
    let all = [requests, claims].concat();
    world.pending(&all);
    world.commit(&all);
    (world, [a, b, c, d], runs)
}

#[test]
fn a_tenth_is_kept_for_steps_and_only_in_it_they_are_spared() {
    let (world, [a, b, c, d], runs) = with_runs();
    world.pending(&d.each(0..18, |it| it.tip(5).transfer(&a, 1)));
    assert_eq!(Code::PoolFull, world.rejection(&a.at(2).transfer(&d, 1)));
    let (first, second) = (b.at(1).step(runs[0], 0), c.at(1).step(runs[1], 0));
    world.pending(&[&first, &second]);
    // The tenth is full: a third one is as any other.
    assert_eq!(Code::PoolFull, world.rejection(&b.at(2).step(runs[0], 1)));
    // Nobody evicts those two, however much is offered.
    world.pending(&a.each(2..6, |it| it.tip(50).transfer(&d, 1)));
    assert!(world.is_pending(&first) && world.is_pending(&second));
    assert_eq!(20, world.pool.pending_count());
}

#[test]
fn a_step_that_something_else_of_its_sender_comes_before_is_not_spared() {
    let (world, [a, b, _, d], runs) = with_runs();
    let step = b.at(2).step(runs[0], 0);
    world.pending(&[&b.at(1).transfer(&a, 1), &step]);
    world.pending(&d.each(0..16, |it| it.tip(5).transfer(&a, 1)));
    world.pending(&[&a.at(2).tip(6).transfer(&d, 1)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&step));
}

#[test]
fn tips_decide_who_is_in_a_block_and_arrival_the_order() {
    let (world, [a, b, c, d]) = of_count(100);
    let txs = [
        a.at(0).tip(5).transfer(&b, 1),
        b.at(0).tip(1).transfer(&a, 1),
        c.at(0).tip(9).transfer(&b, 1),
        d.at(0).tip(7).transfer(&b, 1),
    ];
    world.pending(&txs);
    let block = hashes(&world.pool.candidates(block_of(3)));
    assert_eq!(hashes(&[&txs[0], &txs[2], &txs[3]]), block);
}

#[test]
fn a_tenth_of_a_block_is_for_steps_and_no_tips_decide_who_gets_it() {
    for (tip_of_others, tip_of_second) in [(50, 0), (50_000, 2)] {
        let (world, [a, b, c, d], runs) = with_runs();
        world.pending(&d.each(0..10, |it| it.tip(tip_of_others).transfer(&a, 1)));
        let steps = [b.at(1).step(runs[0], 0), c.at(1).tip(tip_of_second).step(runs[1], 0)];
        world.pending(&steps);
        let block = world.pool.candidates(block_of(10));
        assert_eq!(10, block.len(), "{tip_of_others}");
        assert!(block.contains(&steps[0]) && !block.contains(&steps[1]), "{tip_of_others}");
    }
}

#[test]
fn senders_take_turns_in_the_tenth_for_steps() {
    let (world, [a, b, c, d], runs) = with_runs();
    world.pending(&d.each(0..10, |it| it.tip(50_000).transfer(&a, 1)));
    let many: Vec<_> = (0..3).map(|step| b.at(1 + step).tip(2).step(runs[0], step)).collect();
    world.pending(&many);
    let block = world.pool.candidates(block_of(10));
    assert!(block.contains(&many[0]) && !block.contains(&many[1]));
    let one = c.at(1).step(runs[1], 0);
    world.pending(&[&one]);
    world.commit(&[&many[0]]);
    let block = world.pool.candidates(block_of(10));
    assert!(block.contains(&one));
    assert!(!block.contains(&many[1]), "it is not the first one's turn again");
}

#[test]
fn whoever_builds_a_block_can_ask_for_more() {
    let (world, [a, b, c, d]) = of_count(100);
    let request = a.at(0).request();
    let claim = b.at(0).tip(500).claim(run_of(&request));
    let (dear, cheap) = (c.at(0).tip(300).transfer(&a, 1), d.at(0).tip(2).transfer(&a, 1));
    world.pending(&[&request, &claim, &b.at(1).tip(500).turn(None), &dear, &cheap]);
    let mut offered = Offered::default();
    let some = world.pool.more_candidates(block_of(2), &mut offered);
    assert_eq!(hashes(&[&claim, &b.at(1).tip(500).turn(None)]), hashes(&some));
    // Without its request a claim is not valid.
    offered.refuse(&claim);
    let some = world.pool.more_candidates(block_of(2), &mut offered);
    assert_eq!(vec![dear.hash(), cheap.hash()], hashes(&some));
    let some = world.pool.more_candidates(block_of(5), &mut offered);
    assert_eq!(vec![request.hash()], hashes(&some));
    assert!(world.pool.more_candidates(block_of(5), &mut offered).is_empty());
}

#[test]
fn after_an_hour_a_transaction_leaves_and_what_its_sender_sent_after_it() {
    let (world, [a, b, c]) = of_count(100);
    let old = [a.at(0).transfer(&b, 1), a.at(1).transfer(&b, 1)];
    world.pending(&old);
    let young = c.at(0).transfer(&b, 1);
    let later = NOW + 3_599_000;
    assert!(world.pool.submit(std::slice::from_ref(&young), later)[0].is_ok());
    world.commit_block_at(world.chain.begin(), later);
    assert!(world.is_pending(&old[0]));
    world.commit_block_at(world.chain.begin(), NOW + 3_600_000);
    assert_eq!([Some(Code::Evicted); 2], [world.drop_code(&old[0]), world.drop_code(&old[1])]);
    assert!(world.is_pending(&young));
    assert_eq!(0, world.account(&a).nonce);
}

#[test]
fn before_v7_a_transaction_may_wait_for_longer() {
    let (world, [a, b, _]) = World::of_three();
    let old = a.at(0).transfer(&b, 1);
    world.pending(&[&old]);
    world.commit_block_at(world.chain.begin(), NOW + 3_600_001);
    assert!(world.is_pending(&old));
}

#[test]
fn what_is_to_be_executed_again_can_be_evicted_too() {
    let config = Config { count_max: 8, rebuild_slice: 1, ..Config::default() };
    let (world, [a, b, c, d]) = World::v7::<4>(config);
    let txs: Vec<_> =
        (0..4).flat_map(|n| [a.at(n).transfer(&c, 1), b.at(n).transfer(&c, 1)]).collect();
    world.pending(&txs);
    // A block with the nonce of somebody else's making: everything is executed again.
    world.commit(&[&a.at(0).time(7).turn(None)]);
    assert!(world.pool.has_unsettled());
    world.pending(&[&d.at(0).tip(9).transfer(&a, 1), &d.at(1).tip(9).transfer(&a, 1)]);
    while world.pool.settle(NOW).unwrap() {}
    let mut block = world.chain.begin();
    for tx in world.pool.candidates(block_of(100)) {
        execute(&mut block, &tx).unwrap();
    }
    assert!(block.len() >= 6, "{}", block.len());
}

const WALLETS: u8 = 5;
const COUNT_MAX: usize = 14;
const SENDER_MAX: usize = 6;
const BYTES_MAX: usize = 7_000;
/// The pool fits into a block, and nine or more transactions raise the base fee.
const BLOCK_BYTES: u32 = 9_000;
/// So much everybody would pay at most for a KiB: all of it is set aside, whatever the base fee is.
const HIGHEST: u64 = 20;

#[derive(Clone, Copy, Debug)]
enum What {
    Transfer {
        to: u8,
        amount: u64,
    },
    Turn,
    Request,
    /// One of the latest runs.
    Claim(usize),
    Step(usize, u64),
    Large(u64),
}

#[derive(Clone, Debug)]
enum Action {
    Submit { wallet: u8, offset: u64, tip: u64, highest: u64, what: What },
    Block { count: usize, is_foreign: bool },
    Later(u64),
    Settle,
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        4 => (0..WALLETS, 1..2_000_u64).prop_map(|(to, amount)| What::Transfer { to, amount }),
        1 => Just(What::Turn),
        3 => Just(What::Request),
        4 => (0..3_usize).prop_map(What::Claim),
        3 => (0..3_usize, 0..3_u64).prop_map(|(run, step)| What::Step(run, step)),
        1 => (1..3_000_u64).prop_map(What::Large),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let offset = prop_oneof![6 => Just(0), 1 => 1..4_u64];
    let tip = prop_oneof![2 => Just(0), 3 => 0..60_u64];
    let highest = prop_oneof![1 => 10..13_u64, 1 => Just(HIGHEST)];
    let submit = (0..WALLETS, offset, tip, highest, what()).prop_map(
        |(wallet, offset, tip, highest, what)| Action::Submit {
            wallet,
            offset,
            tip,
            highest,
            what,
        },
    );
    prop_oneof![
        16 => submit,
        2 => (0..10_usize, any::<bool>())
            .prop_map(|(count, is_foreign)| Action::Block { count, is_foreign }),
        1 => (0..1_000_000_u64).prop_map(Action::Later),
        1 => Just(Action::Settle),
    ]
}

struct Trial {
    world: World,
    wallets: Vec<Wallet>,
    runs: Vec<Hash>,
    stamp: u64,
    now_ms: u64,
}

impl Trial {
    fn new() -> Self {
        let wallets: Vec<Wallet> = (1..=WALLETS).map(Wallet::new).collect();
        // The last two have nothing but what others pay.
        let balances: Vec<_> = wallets.iter().take(3).map(|wallet| (wallet, 20_000)).collect();
        let config = Config {
            count_max: COUNT_MAX,
            bytes_max: BYTES_MAX,
            sender_count_max: SENDER_MAX,
            nonce_window: 6,
            rebuild_slice: 4,
            ..Config::default()
        };
        let params = Params { max_block_bytes: BLOCK_BYTES, ..params() };
        let world = World::v7_with(0, params, config, &balances);
        Self { world, wallets, runs: vec![Hash::ZERO], stamp: 0, now_ms: NOW }
    }

    fn run(&mut self, actions: &[Action]) {
        for action in actions {
            self.act(action);
            self.check();
        }
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Submit { wallet, offset, tip, highest, what } => {
                let wallet = self.wallets[usize::from(wallet)].clone();
                self.submit(&wallet, offset, (tip, highest), what);
            }
            Action::Block { count, is_foreign } => self.block(count, is_foreign),
            Action::Later(time) => self.now_ms += time,
            Action::Settle => drop(self.world.pool.settle(self.now_ms).unwrap()),
        }
    }

    fn submit(&mut self, wallet: &Wallet, offset: u64, (tip, highest): (u64, u64), what: What) {
        self.stamp += 1;
        let nonce = self.world.account(wallet).nonce + offset;
        let make = wallet.at(nonce).time(self.stamp).tip(tip).max_base_fee(highest);
        let run = |back: usize| self.runs[self.runs.len().saturating_sub(1 + back)];
        let tx = match what {
            What::Transfer { to, amount } => make.transfer(&self.wallets[usize::from(to)], amount),
            What::Turn => make.turn(None),
            What::Request => make.request(),
            What::Claim(back) => make.claim(run(back)),
            What::Step(back, step) => make.step(run(back), step),
            What::Large(bytes) => {
                make.blob(&"x".repeat(usize::try_from(bytes % 60).unwrap()), bytes)
            }
        };
        if matches!(what, What::Request) {
            self.runs.push(run_of(&tx));
        }
        let before = self.world.pool.stats().dropped_total;
        let answers = self.world.pool.submit(std::slice::from_ref(&tx), self.now_ms);
        assert_eq!(1, answers.len());
        let dropped = self.world.pool.stats().dropped_total;
        assert!(answers[0].is_ok() || dropped == before, "dropped for one that is refused");
    }

    fn block(&self, count: usize, is_foreign: bool) {
        let mut block = self.world.chain.begin();
        if is_foreign {
            let wallet = &self.wallets[0];
            let nonce = self.world.chain.account(wallet.address()).nonce;
            let turn = wallet.at(nonce).time(self.stamp).max_base_fee(HIGHEST).turn(None);
            execute(&mut block, &turn).ok();
        }
        self.world.fill(&mut block, count);
        assert!(block.len() <= count.max(1));
        self.world.commit_block_at(block, self.now_ms);
    }

    /// The accounts of the pool are those of a count from scratch.
    fn check(&self) {
        let pool = &self.world.pool;
        let total = pool.status().total;
        assert!(total.total().count <= COUNT_MAX && total.total().bytes <= BYTES_MAX, "{total:?}");
        let (mut pending, mut waiting, mut queued, mut bytes) = (0, 0, 0, 0);
        for wallet in &self.wallets {
            let content = pool.content_from(wallet.address());
            let executable = || content.pending.iter().chain(&content.waiting);
            assert!(executable().count() + content.queued.len() <= SENDER_MAX);
            let committed = self.world.chain.account(wallet.address()).nonce;
            // What a block has made stale goes when its turn to be executed again comes.
            let (stale, nonces): (Vec<u64>, Vec<u64>) =
                executable().map(|tx| tx.nonce()).partition(|nonce| *nonce < committed);
            assert!(stale.is_empty() || pool.has_unsettled(), "{stale:?}");
            let first = nonces.first().copied().unwrap_or(committed);
            assert_eq!((first..).take(nonces.len()).collect::<Vec<_>>(), nonces);
            queued += content.queued.len();
            bytes +=
                executable().chain(&content.queued).map(|tx| tx.encoded_bytes()).sum::<usize>();
            pending += content.pending.len();
            waiting += content.waiting.len();
            for tx in &content.waiting {
                assert!(matches!(pool.find(tx.hash()), Some(Found::Waiting { .. })));
            }
        }
        assert_eq!((total.pending.count, total.queued.count), (pending + waiting, queued));
        let stats = pool.stats();
        assert_eq!((stats.pending, stats.waiting), (pending, waiting));
        assert_eq!(pending, pool.pending_count());
        assert_eq!(total.total().bytes, bytes);
        if pool.has_unsettled() {
            return;
        }
        let is_offered = !pool.candidates(block_of(usize::MAX)).is_empty();
        assert_eq!(is_offered, pool.has_offers());
        // What is set aside of each account is what executing everything again sets aside.
        let mut again = self.world.chain.pending();
        for tx in pool.pending(usize::MAX) {
            again.admit(&tx).unwrap();
        }
        for wallet in &self.wallets {
            assert_eq!(again.account(wallet.address()).unwrap(), self.world.account(wallet));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_any_submits_blocks_and_evictions_the_accounts_are_those_of_a_recount(
        actions in prop::collection::vec(action(), 1..60)
    ) {
        Trial::new().run(&actions);
    }
}

#[test]
fn what_a_block_has_made_stale_goes_when_its_turn_comes_and_what_follows_stays() {
    use What::{Claim, Large, Request, Transfer};
    let highest = HIGHEST;
    let submit = |wallet, offset, tip, what| Action::Submit { wallet, offset, tip, highest, what };
    let actions = [
        submit(1, 0, 7, Request),
        submit(0, 0, 0, Transfer { to: 0, amount: 1 }),
        submit(0, 0, 0, Request),
        submit(1, 0, 6, Claim(0)),
        submit(2, 0, 1, Transfer { to: 0, amount: 1 }),
        submit(0, 0, 0, Request),
        submit(2, 1, 1, Claim(0)),
        submit(2, 0, 1, Large(1)),
        submit(2, 0, 0, Transfer { to: 4, amount: 1_105 }),
        submit(4, 0, 1, Transfer { to: 0, amount: 1 }),
        submit(1, 0, 2, Transfer { to: 0, amount: 1 }),
        Action::Block { count: 7, is_foreign: true },
    ];
    let mut trial = Trial::new();
    trial.run(&actions);
    let nonces = |trial: &Trial| {
        let content = trial.world.pool.content_from(trial.wallets[0].address());
        content.pending.iter().map(|tx| tx.nonce()).collect::<Vec<_>>()
    };
    let why = "a block had another one with nonce 0, and the one with 1";
    assert_eq!([0, 2], nonces(&trial)[..], "{why}");
    while trial.world.pool.settle(trial.now_ms).unwrap() {}
    trial.check();
    assert_eq!([2], nonces(&trial)[..]);
}
