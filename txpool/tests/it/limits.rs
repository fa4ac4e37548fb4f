//! A full pool, and who makes room for whom.

use txpool::Config;
use types::{CheckedTx, Code};

use crate::support::world::{NOW, SKEW};
use crate::support::{Wallet, World};

fn of_count(count_max: usize) -> Config {
    Config { count_max, ..Config::default() }
}

#[test]
fn a_full_pool_refuses_with_a_hint() {
    let (world, [a, b, c]) = World::of_three_with(of_count(2));
    world.pending(&[&a.at(0).transfer(&b, 1), &b.at(0).transfer(&a, 1)]);
    let rejection = world.submit(&c.at(0).transfer(&a, 1)).unwrap_err();
    assert_eq!(Code::PoolFull, rejection.code());
    assert!(rejection.extra().any(|pair| pair == ("retryAfterMs", "1000")));
    assert!(rejection.code().is_transient());
}

#[test]
fn an_invalid_transaction_is_told_so_even_by_a_full_pool() {
    let (world, [a, b, c]) = World::of_three_with(of_count(1));
    world.pending(&[&a.at(0).transfer(&b, 1)]);
    assert_eq!(Code::InsufficientBalance, world.rejection(&c.at(0).transfer(&a, 2_000_000)));
}

#[test]
fn executable_newcomers_displace_the_highest_nonce_of_the_longest_queue() {
    let (world, [a, b, c]) = World::of_three_with(of_count(4));
    let long: Vec<CheckedTx> = [5, 9].iter().map(|n| a.at(*n).transfer(&b, 1)).collect();
    let short = b.at(3).transfer(&a, 1);
    let first = c.at(0).transfer(&a, 1);
    world.queued(&[&long[1], &short, &long[0]]);
    world.pending(&[&first]);
    world.pending(&[&c.at(1).transfer(&a, 1)]);
    assert_eq!(Some(Code::PoolFull), world.drop_code(&long[1]));
    assert!(world.is_queued(&long[0]) && world.is_queued(&short) && world.is_pending(&first));
    world.pending(&[&c.at(2).transfer(&a, 1), &c.at(3).transfer(&a, 1)]);
    assert_eq!(Code::PoolFull, world.rejection(&c.at(4).transfer(&a, 1)));
    assert_eq!(3, world.pool.stats().evicted_total);
}

#[test]
fn an_invalid_newcomer_displaces_nobody() {
    let (world, [a, b, c]) = World::of_three_with(of_count(1));
    let waiting = a.at(1).transfer(&b, 1);
    world.queued(&[&waiting]);
    assert_eq!(Code::InsufficientBalance, world.rejection(&c.at(0).transfer(&a, 2_000_000)));
    let late = c.at(0).time(NOW + SKEW + 1).transfer(&a, 1);
    assert_eq!(Code::ClockSkew, world.rejection(&late));
    assert!(world.is_queued(&waiting));
}

#[test]
fn a_queued_newcomer_displaces_only_a_queue_longer_by_two() {
    let (world, [a, b, c]) = World::of_three_with(of_count(3));
    world.queued(&[&a.at(1).transfer(&b, 1), &a.at(2).transfer(&b, 1), &a.at(3).transfer(&b, 1)]);
    assert_eq!(Code::PoolFull, world.rejection(&a.at(4).transfer(&b, 1)));
    world.queued(&[&c.at(1).transfer(&b, 1)]);
    assert_eq!(Code::PoolFull, world.rejection(&c.at(2).transfer(&b, 1)));
    world.queued(&[&b.at(1).transfer(&a, 1)]);
    assert_eq!(3, world.pool.status().total.queued.count);
}

#[test]
fn bytes_are_limited_like_counts() {
    let (a, b) = (Wallet::new(1), Wallet::new(2));
    let tx = a.at(0).transfer(&b, 1);
    let config = Config { bytes_max: 2 * tx.encoded_bytes(), ..Config::default() };
    let world = World::new(config, &[(&a, 100), (&b, 100)]);
    world.pending(&[&tx, &a.at(1).transfer(&b, 1)]);
    assert_eq!(Code::PoolFull, world.rejection(&b.at(0).transfer(&a, 1)));
    world.commit(&[&tx]);
    world.pending(&[&b.at(0).transfer(&a, 1)]);
}

#[test]
fn a_sender_has_its_limit() {
    let config = Config { sender_count_max: 2, ..Config::default() };
    let (world, [a, b, c]) = World::of_three_with(config);
    world.pending(&[&a.at(0).transfer(&b, 1)]);
    world.queued(&[&a.at(2).transfer(&b, 1)]);
    assert_eq!(Code::SenderLimit, world.rejection(&a.at(1).transfer(&b, 1)));
    assert_eq!(Code::SenderLimit, world.rejection(&a.at(3).transfer(&b, 1)));
    world.pending(&[&c.at(0).transfer(&b, 1)]);
}

#[test]
fn pool_full_comes_before_sender_limit_and_that_before_clock_skew() {
    let config = Config { count_max: 2, sender_count_max: 1, ..Config::default() };
    let (world, [a, b, c]) = World::of_three_with(config);
    world.pending(&[&a.at(0).transfer(&b, 1)]);
    assert_eq!(Code::SenderLimit, world.rejection(&a.at(1).time(NOW + SKEW + 1).transfer(&b, 1)));
    world.pending(&[&b.at(0).transfer(&a, 1)]);
    assert_eq!(Code::PoolFull, world.rejection(&a.at(1).transfer(&b, 1)));
    assert_eq!(Code::PoolFull, world.rejection(&c.at(0).time(NOW + SKEW + 1).transfer(&b, 1)));
}

#[test]
fn the_memory_of_dropped_transactions_is_bounded_by_count_and_age() {
    let config = Config { dropped_count_max: 2, dropped_age_max_ms: 1_000, ..Config::default() };
    let (world, [a, b, _]) = World::of_three_with(config);
    let txs = a.each(0..3, |it| it.transfer(&b, 1));
    for tx in &txs {
        world.pending(&[tx]);
    }
    assert_eq!(3, world.pool.clear(NOW).unwrap());
    let known = |world: &World| txs.iter().filter(|tx| world.drop_code(tx).is_some()).count();
    assert_eq!(2, known(&world));
    world.pool.clear(NOW + 5_000).unwrap();
    world.pending(&[&b.at(0).transfer(&a, 1)]);
    world.pool.clear(NOW + 5_000).unwrap();
    assert_eq!(0, known(&world));
}
