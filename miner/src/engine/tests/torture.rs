//! A miner process that dies at every point of its work, and the one after it that goes on.
//!
//! The processes are this test program again, with the folder and the point in their environment.
//! The chain and the tools' effects are files that live on. A process dies by `abort`, before or
//! after a write of the journal, a sending, or a tool's effect.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use types::{Hash, Keypair, RunStatus};

use super::support::{Bench, folder, key};
use crate::chain::Runs;
use crate::chain::fake::FakeChain;
use crate::engine::receipt::receipt;
use crate::testing;

const FOLDER: &str = "MINER_TORTURE_FOLDER";
const POINT: &str = "MINER_TORTURE_POINT";
const PROMPT: &str = "tools=2 once=1 think";
/// Three runs at once; a rival gets the second.
const PROMPTS: [&str; 3] = ["tools=1 once=1", "tools=1", "think"];
const LOST: usize = 1;

/// Processes at a time; they mostly wait.
const LANES: usize = 4;

fn chain(folder: &Path) -> (FakeChain, Hash) {
    let chain = FakeChain::new();
    let run = chain.add_run(PROMPT, 10_000, 10);
    (chain.with_file(&folder.join("chain")), run)
}

/// Works in this process until the work is done, or until the process dies at a point.
pub(crate) fn die_or_do(folder: &Path, point: u64, work: impl Future<Output = ()>) {
    testing::die_at(point);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work);
    std::fs::write(folder.join("points"), testing::points_passed().to_string()).unwrap();
}

/// Works until the run is settled.
fn work(folder: &Path, point: u64) {
    die_or_do(folder, point, async {
        let (chain, run) = chain(folder);
        let mut bench = Bench::at(folder, chain, Some(folder.join("calls")));
        bench.config.turns = true;
        if !bench.status(&run).is_terminal() {
            let settled = bench.chain.until(|state| state.run(&run).unwrap().status.is_terminal());
            bench.during(settled).await;
        }
    });
}

/// A chain of three runs, whose node forgets its pool when the process dies, and a rival.
fn chain_of_three(folder: &Path) -> (FakeChain, Vec<Hash>) {
    let chain = FakeChain::new();
    let runs: Vec<Hash> = PROMPTS.map(|prompt| chain.add_run(prompt, 10_000, 10)).into();
    let chain = chain.with_file(&folder.join("chain")).with_blocks_on_demand();
    let lost = chain.run_of(&runs[LOST]);
    if lost.miner.is_none() {
        chain.state.lock().rivals.push((lost.id, Keypair::from_seed(&[7; 32])));
    }
    (chain, runs)
}

/// Works until the three runs are settled but for the lost one.
fn work_on_three(folder: &Path, point: u64) {
    die_or_do(folder, point, async {
        let (chain, runs) = chain_of_three(folder);
        let bench = Bench::at(folder, chain, Some(folder.join("calls")));
        // A slot that a dead process had reserved is given back at the start; the run waits on.
        let is_over = |run: &Hash| {
            let is_closed = bench.journal.entry(run).unwrap().is_some_and(|it| it.is_over());
            is_closed && bench.status(run) != RunStatus::Pending
        };
        let is_done = || runs.iter().all(is_over) && bench.journal.nonces().unwrap().is_empty();
        if !is_done() {
            assert!(bench.during(testing::comes(is_done)).await);
        }
    });
}

/// Checks that the chain refused nothing that was sent to it.
pub(crate) fn check_refused(folder: &Path, deaths: &str) {
    let refused = std::fs::read_to_string(folder.join("chain.refused")).unwrap();
    assert_eq!("", refused, "{deaths}: nothing was sent that the chain refuses");
}

/// Checks that a tool that may run once did not run twice.
fn check_calls(folder: &Path, deaths: &str) {
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap();
    let once = calls.lines().filter(|call| *call == "once0").count();
    assert!(once <= 1, "{deaths}: a tool that may run once ran {once} times");
}

/// Checks that a receipt hashes to what is on the chain, and tells how many steps it has.
fn check_receipt(bench: &Bench, run: &Hash, deaths: &str) -> usize {
    let receipt = receipt(&bench.journal, run).unwrap().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let steps = runtime.block_on(bench.chain.steps(run)).unwrap();
    let differences = receipt.differences(&steps);
    assert!(differences.is_empty(), "{deaths}: {differences:?}");
    receipt.steps.len()
}

/// What must be on the chain of three, whatever happened.
fn check_three(folder: &Path, deaths: &str) {
    let (chain, runs) = chain_of_three(folder);
    let bench = Bench::at(folder, chain, None);
    for (place, run) in runs.iter().enumerate() {
        let view = bench.chain.run_of(run);
        if place == LOST {
            assert_eq!(RunStatus::Claimed, view.status, "{deaths}");
            assert_ne!(Some(key().address()), view.miner, "{deaths}");
            continue;
        }
        assert_eq!(RunStatus::Completed, view.status, "{deaths}");
        check_receipt(&bench, run, deaths);
    }
    let count = |wanted: &str| bench.sent().iter().filter(|kind| **kind == wanted).count();
    assert_eq!((2, 3, 2), (count("CLAIM"), count("STEP"), count("FINISH")), "{deaths}");
    check_refused(folder, deaths);
    check_calls(folder, deaths);
}

/// Starts a process; whether it lived to the end.
fn lives(folder: &Path, point: u64, test: &str) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .env(POINT, point.to_string())
        .output()
        .unwrap();
    let is_abort = output.status.code().is_none();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || is_abort, "point {point}: {said}");
    output.status.success()
}

/// If this process is one that a test started: does its work and tells so.
pub(crate) fn is_worker(work: fn(&Path, u64)) -> bool {
    let Ok(folder) = std::env::var(FOLDER) else { return false };
    work(Path::new(&folder), std::env::var(POINT).unwrap().parse().unwrap());
    true
}

/// Lets a process die at every point of its work, and another one go on.
pub(crate) fn dies_at_every_point(name: &str, points_min: u64, check: fn(&Path, &str)) {
    let whole = folder();
    assert!(lives(whole.path(), 0, name));
    check(whole.path(), "no death");
    let points: u64 =
        std::fs::read_to_string(whole.path().join("points")).unwrap().parse().unwrap();
    assert!(points > points_min, "{points}");
    let next = AtomicU64::new(1);
    let lane = || loop {
        let point = next.fetch_add(1, Ordering::SeqCst);
        if point > points {
            return;
        }
        let folder = folder();
        lives(folder.path(), point, name);
        assert!(lives(folder.path(), 0, name), "it goes on after point {point}");
        check(folder.path(), &format!("death at point {point}"));
    };
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(lane);
        }
    });
}

/// What must be on the chain, whatever happened.
fn check(folder: &Path, deaths: &str) {
    let (chain, run) = chain(folder);
    let bench = Bench::at(folder, chain, None);
    let view = bench.chain.run_of(&run);
    assert_eq!((RunStatus::Completed, 3), (view.status, view.steps), "{deaths}");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let sent = bench.sent();
    sent.iter().for_each(|kind| *counts.entry(kind).or_default() += 1);
    // Two tool rounds and an answer: four results and texts of turns, three blobs of thoughts.
    let expected = BTreeMap::from([
        ("CLAIM", 1),
        ("STEP", 3),
        ("FINISH", 1),
        ("CHAT_TURN", 6),
        ("SOCIAL_BLOB_INIT", 3),
        ("SOCIAL_BLOB_CHUNK", 3),
        ("SOCIAL_BLOB_FINALIZE", 3),
    ]);
    assert_eq!(expected, counts, "{deaths}");
    check_refused(folder, deaths);
    check_calls(folder, deaths);
    assert_eq!(3, check_receipt(&bench, &run, deaths), "{deaths}");
}

#[test]
fn a_miner_that_dies_at_any_point_goes_on_where_it_was() {
    const NAME: &str =
        "engine::tests::torture::a_miner_that_dies_at_any_point_goes_on_where_it_was";
    if !is_worker(work) {
        dies_at_every_point(NAME, 60, check);
    }
}

#[test]
fn a_miner_of_several_runs_that_dies_at_any_point_loses_none_and_leaves_no_gap() {
    const NAME: &str = "engine::tests::torture::\
                        a_miner_of_several_runs_that_dies_at_any_point_loses_none_and_leaves_no_gap";
    if !is_worker(work_on_three) {
        dies_at_every_point(NAME, 60, check_three);
    }
}

#[test]
fn a_miner_that_dies_again_and_again_gets_to_the_end() {
    const NAME: &str = "engine::tests::torture::a_miner_that_dies_again_and_again_gets_to_the_end";
    if is_worker(work) {
        return;
    }
    // Opening the journal and reserving the slot again take six points of each life.
    for point in [9, 12, 17] {
        let folder = folder();
        let deaths = (0..100).take_while(|_| !lives(folder.path(), point, NAME)).count();
        assert!((3..100).contains(&deaths), "{deaths} deaths at every point {point}");
        check(folder.path(), &format!("{deaths} deaths at point {point}"));
    }
}
