//! From v7 on: for whom a tenth of the pool and of each block is kept, and how it is divided.

use txpool::{BlockLimits, Config};
use types::{CheckedTx, Code, Hash};

use crate::support::make::run_of;
use crate::support::{Wallet, World};

/// A pool of so many transactions, of which a tenth is kept, and a run of each miner, claimed in blocks.
fn with_miners<const N: usize>(count_max: usize) -> (World, Wallet, [(Wallet, Hash); N]) {
    let (user, miners): (_, [Wallet; N]) = (Wallet::new(100), Wallet::first());
    let everybody = std::iter::once(&user).chain(&miners);
    let balances: Vec<_> = everybody.map(|wallet| (wallet, 100_000_000)).collect();
    let config = Config { count_max, ..Config::default() };
    let world = World::v7_from(0, config, &balances);
    let requests: Vec<_> = (0..).take(N).map(|nonce| user.at(nonce).request()).collect();
    let runs: Vec<_> = requests.iter().map(run_of).collect();
    let claims: Vec<_> =
        miners.iter().zip(&runs).map(|(miner, run)| miner.at(0).claim(*run)).collect();
    let all: Vec<_> = requests.iter().chain(&claims).collect();
    world.pending(&all);
    world.commit(&all);
    let mut runs = runs.into_iter();
    (world, user, miners.map(|miner| (miner, runs.next().unwrap())))
}

/// Fills the pool but for its tenth with what somebody offers a little for; answers who did.
fn fill(world: &World, count: u64) -> Wallet {
    let rich = Wallet::new(100);
    let first = world.account(&rich).nonce;
    for nonce in (first..).take(usize::try_from(count).unwrap()) {
        world.pending(&[&rich.at(nonce).tip(5).transfer(&rich, 1)]);
    }
    rich
}

#[test]
fn room_is_kept_for_the_ends_of_runs_as_for_steps_and_for_no_claims() {
    let (world, user, [(first, run), (second, _)]) = with_miners(20);
    let request = user.at(2).tip(5).request();
    world.pending(&[&request]);
    fill(&world, 17);
    let claim = second.at(1).claim(run_of(&request));
    assert_eq!(Code::PoolFull, world.rejection(&claim));
    let end = first.at(1).finish(run, 0);
    world.pending(&[&end]);
    assert_eq!(19, world.pool.pending_count());
}

#[test]
fn no_room_is_kept_for_a_step_that_something_else_of_its_sender_comes_before() {
    let (world, user, [(first, run), (second, other)]) = with_miners(20);
    let before = first.at(1).tip(5).transfer(&user, 1);
    world.pending(&[&before]);
    fill(&world, 17);
    assert_eq!(Code::PoolFull, world.rejection(&first.at(2).step(run, 0)));
    world.pending(&[&second.at(1).step(other, 0)]);
}

#[test]
fn each_sender_gets_its_share_of_the_tenth_by_bytes_and_always_one() {
    let (world, rich, [(first, run), (second, other), (third, another)]) = with_miners(1_000);
    let many: Vec<_> = (0..3).map(|at| first.at(1 + at).tip(2).step(run, at)).collect();
    let one = [second.at(1).step(other, 0), third.at(1).step(another, 0)];
    world.pending(&many.iter().chain(&one).collect::<Vec<_>>());
    world.pending(&rich.each(3..83, |it| it.tip(50_000).transfer(&first, 1)));
    // The tenth has room for three steps, and a share of it for none; one of the block has room for two.
    let bytes = many[0].encoded_bytes() * 32;
    let limits = BlockLimits { bytes, count: 10_000 };
    let block = world.pool.candidates(limits);
    let steps: Vec<Hash> = [&many[0], &one[0], &one[1]].map(|tx: &CheckedTx| tx.hash()).into();
    assert!(steps.iter().all(|step| block.iter().any(|tx| tx.hash() == *step)));
    assert!(!block.contains(&many[1]), "others have their turns first");
    let used: usize = block.iter().map(|tx| tx.encoded_bytes()).sum();
    assert!(used <= bytes, "{used} of {bytes}");
}

#[test]
fn steps_beyond_the_tenth_count_as_others_and_the_worst_of_all_steps_makes_room() {
    let (world, _, [(first, run), (second, other)]) = with_miners(20);
    let steps = [
        first.at(1).step(run, 0),
        first.at(2).step(run, 1),
        second.at(1).step(other, 0),
        second.at(2).step(other, 1),
    ];
    world.pending(&steps);
    let rich = fill(&world, 16);
    let dear = rich.at(18).tip(50).transfer(&first, 1);
    world.pending(&[&dear]);
    assert_eq!(20, world.pool.pending_count());
    assert_eq!(Some(Code::Evicted), world.drop_code(&steps[3]));
    assert!(steps[..3].iter().all(|step| world.is_pending(step)));
}
