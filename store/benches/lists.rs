//! How long a question takes that anybody may ask about runs and bonds, after so many have come and gone
//! that nothing but their tombstones is left, while one of each status waits. Such a question may not take
//! longer the more has come and gone, so this program fails if one takes a millisecond.
//!
//! `./run cargo bench -p store --bench lists -- [--runs N]`

#![expect(clippy::print_stdout, reason = "the figures are the output")]

#[expect(dead_code, reason = "shared by benchmarks, each of which uses a part of it")]
mod figures;
#[path = "../tests/it/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
mod fixture;

use std::time::Duration;

use fixtures::times;
use store::{RunFilter, Store};
use types::RunStatus;

use crate::figures::number;
use crate::fixture::{TestChain, Wallet, each, requests};

/// The longest that a question may take.
const QUESTION_MAX: Duration = Duration::from_millis(1);
/// How often each is asked; the median counts, because the machine has other work, too.
const TIMES: usize = 21;
/// Runs in a block.
const TOGETHER: usize = 1_000;
/// The runs of a page.
const PAGE: usize = 100;

/// Three runs, one for each status that runs leave.
fn stay(chain: &mut TestChain) {
    let (txs, runs) = requests(&mut chain.wallets[0], 0..3);
    chain.block(&txs);
    each(chain, 1, &runs[1..], Wallet::claim);
    each(chain, 1, &runs[2..], |miner, run| miner.step(run, 0));
}

/// Runs that wait, are claimed, run and end, each in a block of its own.
fn come_and_go(chain: &mut TestChain) {
    let (txs, runs) = requests(&mut chain.wallets[0], 0..TOGETHER);
    chain.block(&txs);
    each(chain, 1, &runs, Wallet::claim);
    each(chain, 1, &runs, |miner, run| miner.step(run, 0));
    each(chain, 1, &runs, |miner, run| miner.finish(run, 1));
}

/// The middle one of the times that a page takes.
fn median(store: &Store, filter: &RunFilter) -> Duration {
    let ask = |_| {
        let page = store.snapshot().runs(filter, None, PAGE).expect("a page");
        assert!(!page.runs.is_empty());
    };
    times(TIMES, ask)[TIMES / 2]
}

fn main() {
    let runs = number("--runs", 10_000);
    let dir = tempfile::tempdir().expect("a folder");
    let mut chain = TestChain::new(dir.path(), 2);
    chain.wallets = (0..2).map(Wallet::unsigned).collect();
    stay(&mut chain);
    (0..runs.div_ceil(TOGETHER)).for_each(|_| come_and_go(&mut chain));
    stay(&mut chain);

    let of = |status| RunFilter { status: Some(status), ..RunFilter::default() };
    let submitter = Some(chain.wallets[0].address());
    let figures = [
        ("runs that wait", of(RunStatus::Pending)),
        ("runs that are claimed", of(RunStatus::Claimed)),
        ("runs that are worked on", of(RunStatus::Running)),
        ("all runs", RunFilter::default()),
        ("what somebody waits for", RunFilter { submitter, ..of(RunStatus::Pending) }),
    ]
    .map(|(name, filter)| (name, median(&chain.store, &filter)));
    println!("{runs} runs came and went; microseconds, the median of {TIMES}");
    for (name, took) in figures {
        println!("  {name:32} {:>8.1}", took.as_secs_f64() * 1e6);
    }
    let worst = figures.into_iter().map(|(_, took)| took).max().unwrap_or_default();
    assert!(worst < QUESTION_MAX, "a question took {worst:?}");
}
