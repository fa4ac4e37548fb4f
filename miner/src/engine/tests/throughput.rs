//! How many runs a second the engine settles, with a model that answers at once.
//!
//! The numbers are printed; `MINER_RUNS` is how many runs are measured, `MINER_FOLDER` where the
//! journal is written, and what is asserted is only that all of them are settled.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use types::RunStatus;

use super::support::Bench;
use crate::chain::fake::FakeChain;

/// Settles so many runs in so many slots, with a block every so often, or whenever one is waited for.
async fn settle(runs: usize, slots: u64, block_every: Option<Duration>) -> f64 {
    let place = std::env::var_os("MINER_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(place).unwrap();
    let bench = Bench::at(folder.path(), FakeChain::new(), None);
    bench.change_policy(|policy| policy.runs_max = slots);
    bench.chain.state.lock().is_halted = block_every.is_some();
    for number in 0..runs {
        bench.chain.add_run(&format!("run {number}"), 9_000, 5);
    }
    let begun = Instant::now();
    let happens = async {
        let blocks = async {
            match block_every {
                Some(every) => bench.chain.make_blocks(every).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = blocks => unreachable!("it makes blocks for ever"),
            () = bench.counters.until_finished(runs) => (),
        }
    };
    bench.during(happens).await;
    let is_done = |run: &crate::chain::RunView| run.status == RunStatus::Completed;
    assert!(bench.chain.state.lock().runs().iter().all(is_done));
    let count = f64::from(u32::try_from(runs).unwrap());
    count / begun.elapsed().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_of_many_is_settled_with_one_slot_and_with_eight() {
    let runs = std::env::var("MINER_RUNS").map_or(12, |runs| runs.parse().unwrap());
    for (slots, block_ms) in [(1, None), (8, None), (1, Some(50)), (8, Some(50))] {
        let rate = settle(runs, slots, block_ms.map(Duration::from_millis)).await;
        println!("{runs} runs, {slots} slots, blocks every {block_ms:?} ms: {rate:.1} runs/s");
    }
}
