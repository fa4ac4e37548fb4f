//! What the wallet does not need goes to the cold address, once, whatever dies meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use types::{Address, Keypair, RunStatus};

use super::support::{Bench, key};
use super::torture::{check_refused, die_or_do, dies_at_every_point, is_worker};
use crate::chain::fake::{FakeChain, FakeWatch};
use crate::engine::Engine;
use crate::market::MarketConfig;
use crate::operate::SweepConfig;
use crate::testing::comes;

fn cold() -> Address {
    Keypair::from_seed(&[3; 32]).address()
}

fn config() -> SweepConfig {
    SweepConfig { address: cold(), keep_micro: 10_000, min_micro: 1_000, pause_s: 60 }
}

/// Runs a miner that sweeps until something holds.
async fn sweep_until(bench: &Bench, holds: impl Fn() -> bool) {
    sweep_beside(bench, None, holds).await;
}

/// The same for a miner that serves calls.
async fn sweep_beside(bench: &Bench, market: Option<MarketConfig>, holds: impl Fn() -> bool) {
    let stop = CancellationToken::new();
    let engine = Engine::new(bench.parts(), stop.clone());
    let (_market, market) = watch::channel(market.map(Arc::new));
    let sweeping = tokio::spawn(engine.sweeper(market).run(config()));
    let (_notices, receiver) = mpsc::channel(1);
    let working = tokio::spawn(engine.run(Box::new(FakeWatch(receiver))));
    let came = comes(holds).await;
    stop.cancel();
    assert!(sweeping.await.unwrap().is_ok() && working.await.unwrap().is_ok());
    assert!(came, "it did not come to that: {:?}", bench.journal.swept());
}

fn cold_micro(bench: &Bench) -> u64 {
    bench.chain.state.lock().balance(&cold())
}

fn swept_times(bench: &Bench) -> u64 {
    bench.journal.swept().unwrap().times
}

fn pass_a_minute(bench: &Bench) {
    bench.clock.0.fetch_add(60_000, Ordering::SeqCst);
    bench.chain.state.lock().now_ms += 60_000;
}

#[tokio::test]
async fn what_is_above_the_limit_is_sent_once_in_a_pause() {
    let bench = Bench::new();
    sweep_until(&bench, || swept_times(&bench) == 1).await;
    assert_eq!(90_000, cold_micro(&bench));
    // More comes in: the pause holds, over a restart too.
    bench.chain.state.lock().set_balance(&key().address(), 13_000);
    bench.chain.add_run("x", 10_000, 10);
    sweep_until(&bench, || bench.sent().contains(&"FINISH")).await;
    assert_eq!(90_000, cold_micro(&bench));
    pass_a_minute(&bench);
    sweep_until(&bench, || swept_times(&bench) == 2).await;
    // The run earned 10.
    assert_eq!(93_010, cold_micro(&bench));
    assert_eq!(10_000, bench.chain.state.lock().balance(&key().address()));
    assert_eq!(vec!["TRANSFER", "CLAIM", "STEP", "FINISH", "TRANSFER"], bench.sent());
    // Less than is worth it.
    pass_a_minute(&bench);
    bench.chain.state.lock().set_balance(&key().address(), 10_900);
    bench.chain.add_run("y", 1_000, 10);
    sweep_until(&bench, || bench.sent().len() == 8).await;
    assert_eq!(93_010, cold_micro(&bench));
}

#[tokio::test]
async fn nothing_is_swept_while_the_base_fee_is_high() {
    let bench = Bench::new();
    bench.chain.state.lock().begin_with_v7();
    bench.chain.state.lock().told_base_fee = 1_001;
    sweep_until(&bench, || bench.chain.state.lock().fees_read > 2).await;
    assert!(bench.sent().is_empty());
    bench.chain.state.lock().told_base_fee = 1_000;
    sweep_until(&bench, || swept_times(&bench) == 1).await;
    assert_eq!(vec!["TRANSFER"], bench.sent());
}

#[tokio::test]
async fn the_least_balances_of_the_policy_and_of_the_market_are_never_swept() {
    let bench = Bench::new();
    bench.change_policy(|policy| policy.balance_micro_min = 40_000);
    sweep_until(&bench, || swept_times(&bench) == 1).await;
    assert_eq!(60_000, cold_micro(&bench));

    let bench = Bench::new();
    let market = MarketConfig { balance_micro_min: 30_000, ..MarketConfig::default() };
    sweep_beside(&bench, Some(market), || swept_times(&bench) == 1).await;
    assert_eq!(70_000, cold_micro(&bench));
}

#[tokio::test]
async fn a_sweep_waits_its_turn_and_leaves_no_gap_of_nonces() {
    let bench = Bench::new();
    for number in 0..4 {
        bench.chain.add_run(&format!("{number} tools=1 think"), 9_000, 5);
    }
    let is_done = || {
        let runs = bench.chain.state.lock().runs();
        let is_over = runs.iter().all(|run| run.status == RunStatus::Completed);
        is_over && swept_times(&bench) == 1
    };
    sweep_until(&bench, is_done).await;
    bench.check_nonces();
    let state = bench.chain.state.lock();
    assert!(state.rejections.is_empty(), "{:?}", state.rejections);
}

#[tokio::test]
async fn a_refused_sweep_is_told_and_tried_again_after_the_pause() {
    let bench = Bench::new();
    bench.chain.state.lock().refuse.push("NONCE_TAKEN");
    sweep_until(&bench, || bench.journal.swept().unwrap().last.is_some()).await;
    assert_eq!((0, 0), (cold_micro(&bench), swept_times(&bench)));
    pass_a_minute(&bench);
    sweep_until(&bench, || swept_times(&bench) == 1).await;
    assert_eq!(90_000, cold_micro(&bench));
}

fn chain(folder: &Path) -> FakeChain {
    FakeChain::new().with_file(&folder.join("chain"))
}

/// Works until it has swept.
fn work(folder: &Path, point: u64) {
    die_or_do(folder, point, async {
        let bench = Bench::at(folder, chain(folder), None);
        sweep_until(&bench, || swept_times(&bench) == 1).await;
    });
}

/// What must be on the chain and in the journal, whatever happened.
fn check(folder: &Path, deaths: &str) {
    let bench = Bench::at(folder, chain(folder), None);
    check_refused(folder, deaths);
    assert_eq!((vec!["TRANSFER"], 90_000), (bench.sent(), cold_micro(&bench)), "{deaths}");
    let swept = bench.journal.swept().unwrap();
    assert_eq!((1, 90_000), (swept.times, swept.total_micro), "{deaths}");
}

#[test]
fn a_miner_that_dies_around_a_sweep_sends_it_once() {
    const NAME: &str = "engine::tests::sweep::a_miner_that_dies_around_a_sweep_sends_it_once";
    if !is_worker(work) {
        // Around two writes and a sending.
        dies_at_every_point(NAME, 4, check);
    }
}
