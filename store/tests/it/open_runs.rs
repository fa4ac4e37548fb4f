//! What has come and gone costs those nothing who list what is there.

use std::thread;

use fixtures::{bond, unbond};
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use state::sweep;
use state::tables::{RunsByStatus, Unbondings};
use state::view::{self, Range};
use store::{RunFilter, Snapshot, Store};
use tempfile::TempDir;
use types::{Amount, Hash, RunStatus};

use crate::fixture::{BLOCK_MS, TestChain, Wallet, data, each, requests};
use crate::paging::pages_of;

/// Rows that a question may step over: what the newest blocks did, and not what all of them did.
pub(crate) const FEW: u64 = 16;
/// Runs that come and go.
const MANY: u64 = 1_000;

/// The statuses that a run leaves.
const OPEN: [RunStatus; 3] = [RunStatus::Pending, RunStatus::Claimed, RunStatus::Running];

/// What a question answers, and over how many deleted rows the database stepped for it.
pub(crate) fn stepped_over<T>(ask: impl FnOnce() -> T) -> (T, u64) {
    let mut work = PerfContext::default();
    set_perf_stats(PerfStatsLevel::EnableCount);
    work.reset();
    let answer = ask();
    let deleted = work.metric(PerfMetric::InternalDeleteSkippedCount);
    set_perf_stats(PerfStatsLevel::Disable);
    (answer, deleted)
}

fn of(status: RunStatus) -> RunFilter {
    RunFilter { status: Some(status), ..RunFilter::default() }
}

/// The runs of a status, newest first, as the rows of the database have them.
fn stored(snapshot: &Snapshot<'_>, status: RunStatus) -> Vec<Hash> {
    let (from, to) = ([RunsByStatus::place(status)], [RunsByStatus::place(status) + 1]);
    let range = Range { from: &from, to: Some(&to), limit: usize::MAX };
    let rows = view::scan::<RunsByStatus>(snapshot, range).unwrap();
    rows.into_iter().rev().map(|(_, id)| id).collect()
}

/// Runs as they are listed, page after page.
fn listed(snapshot: &Snapshot<'_>, filter: &RunFilter) -> Vec<Hash> {
    let pages = pages_of(snapshot, filter, 3);
    pages.iter().flat_map(|page| &page.runs).map(|run| run.agent_run_id).collect()
}

fn lists_what_is_stored(snapshot: &Snapshot<'_>) {
    for status in OPEN {
        assert_eq!(listed(snapshot, &of(status)), stored(snapshot, status), "{status:?}");
    }
    let all: usize = RunStatus::ALL.map(|status| stored(snapshot, status).len()).iter().sum();
    let mut ids = listed(snapshot, &RunFilter::default());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), listed(snapshot, &RunFilter::default()).len()), (all, all));
}

pub(crate) fn chain_of_unsigned(wallets: u64) -> (TempDir, TestChain) {
    let (dir, mut chain) = TestChain::fresh(wallets);
    chain.wallets = (0..wallets).map(Wallet::unsigned).collect();
    (dir, chain)
}

/// In every open status two runs, the first of all and the last of all, and between them many that came
/// and went: a third of them to each of the statuses. Answers the two of each, the newer one first.
fn came_and_went(chain: &mut TestChain) -> Vec<(RunStatus, [Hash; 2])> {
    let stays = |chain: &mut TestChain| {
        let (txs, runs) = requests(&mut chain.wallets[0], 0..3);
        chain.block(&txs);
        each(chain, 1, &runs[1..], Wallet::claim);
        each(chain, 1, &runs[2..], |miner, run| miner.step(run, 0));
        runs
    };
    let first = stays(chain);
    let (txs, runs) = requests(&mut chain.wallets[0], 0..MANY);
    chain.block(&txs);
    let (cancelled, claimed) = runs.split_at(runs.len() / 3);
    each(chain, 0, cancelled, Wallet::cancel);
    each(chain, 1, claimed, Wallet::claim);
    each(chain, 1, claimed, |miner, run| miner.step(run, 0));
    each(chain, 1, claimed, |miner, run| miner.finish(run, 1));
    let last = stays(chain);
    // What the newest block deleted is stepped over.
    chain.block(&[]);
    let pairs = last.into_iter().zip(first).map(|(last, first)| [last, first]);
    OPEN.into_iter().zip(pairs).collect()
}

/// Asks everything that goes through the runs that have not ended.
fn asks_for_little(store: &Store, there: &[(RunStatus, [Hash; 2])]) {
    let snapshot = store.snapshot();
    for (status, runs) in there {
        let (rows, deleted) = stepped_over(|| stored(&snapshot, *status));
        assert_eq!((rows.as_slice(), deleted > FEW), (runs.as_slice(), true), "this counts work");
        let mut filter = of(*status);
        let (page, deleted) = stepped_over(|| snapshot.runs(&filter, None, 30).unwrap());
        let ids: Vec<Hash> = page.runs.iter().map(|run| run.agent_run_id).collect();
        assert_eq!((ids.as_slice(), page.next), (runs.as_slice(), None));
        assert!(deleted <= FEW, "{deleted} rows for the list of {status:?}");
        filter.submitter = page.runs.first().map(|run| run.submitter);
        let (_, deleted) = stepped_over(|| snapshot.runs(&filter, None, 30).unwrap());
        assert!(deleted <= FEW, "{deleted} rows for the list of {status:?} of somebody");
    }
    let (page, deleted) = stepped_over(|| snapshot.runs(&RunFilter::default(), None, 30).unwrap());
    assert_eq!(page.runs.len(), 30);
    assert!(deleted <= FEW, "{deleted} rows for the list of all");
}

#[test]
fn a_list_of_runs_steps_over_none_that_came_and_went_before_a_restart_or_since() {
    let (dir, mut chain) = chain_of_unsigned(2);
    let there = came_and_went(&mut chain);
    asks_for_little(&chain.store, &there);
    asks_for_little(&chain.reopened(&data(&dir)).store, &there);
}

/// A block of runs that come, are claimed, go on, end, and wait again because their miners were silent.
fn stirs(chain: &mut TestChain, number: u64) {
    let snapshot = chain.store.snapshot();
    let [pending, claimed, running] = OPEN.map(|status| stored(&snapshot, status));
    // Who let a claim lapse may not claim that run again.
    let free = |run: &&Hash| snapshot.run(run).unwrap().unwrap().excluded_miners.is_empty();
    let free: Vec<Hash> = pending.iter().step_by(4).filter(free).copied().collect();
    drop(snapshot);
    let (mut txs, _) = requests(&mut chain.wallets[0], 0..4 + number % 3);
    let miner = &mut chain.wallets[1];
    txs.extend(running.iter().step_by(3).map(|run| miner.finish(*run, 1)));
    txs.extend(claimed.iter().step_by(3).map(|run| miner.step(*run, 0)));
    txs.extend(free.iter().map(|run| miner.claim(*run)));
    txs.extend(pending.iter().skip(1).step_by(4).map(|run| chain.wallets[0].cancel(*run)));
    let wait_ms = if number % 5 == 4 { chain.chain.params.claim_ttl_ms + 1 } else { BLOCK_MS };
    let executed = chain.execute_after(wait_ms, &txs);
    chain.commit(&executed);
}

#[test]
fn snapshots_list_the_open_runs_of_their_own_height_however_many_blocks_come() {
    let (_dir, mut chain) = chain_of_unsigned(2);
    let store = chain.store.clone();
    let mut held = std::collections::VecDeque::from([store.snapshot()]);
    let mut waits_again = false;
    for number in 0..30 {
        let before = stored(&store.snapshot(), RunStatus::Claimed);
        stirs(&mut chain, number);
        held.push_back(store.snapshot());
        if held.len() > 4 {
            held.pop_front();
        }
        held.iter().for_each(lists_what_is_stored);
        let pending = stored(&store.snapshot(), RunStatus::Pending);
        waits_again |= before.iter().any(|run| pending.contains(run));
    }
    assert!(waits_again, "no run came back to those that wait");
}

#[test]
fn whoever_asks_while_blocks_are_committed_sees_one_height() {
    let (_dir, mut chain) = chain_of_unsigned(2);
    let store = chain.store.clone();
    thread::scope(|scope| {
        let blocks = scope.spawn(|| (0..60).for_each(|number| stirs(&mut chain, number)));
        while !blocks.is_finished() {
            lists_what_is_stored(&store.snapshot());
        }
    });
}

#[test]
fn a_look_at_a_bond_steps_over_no_money_that_was_paid_out() {
    let (_dir, mut chain) = chain_of_unsigned(1);
    chain.begin_v7(1);
    let unbond_ms = chain.chain.params.unbond_ms;
    let takes_out = |chain: &mut TestChain, amount: u64| {
        let tx = chain.wallets[0].tx(&unbond(amount));
        chain.block(&[tx]);
        chain.tip().timestamp + unbond_ms
    };
    let tx = chain.wallets[0].tx(&bond(1_000_000));
    chain.block(&[tx]);
    for _ in 0..10 * FEW {
        takes_out(&mut chain, 1);
    }
    let executed = chain.execute_after(unbond_ms, &[]);
    chain.commit(&executed);
    let expected = [2, 3].map(|amount| (takes_out(&mut chain, amount), Amount::new(amount)));
    // As every node asks after every block.
    assert_eq!(sweep::next_deadline(&*chain.store.latest()).unwrap(), Some(expected[0].0));

    let miner = chain.wallets[0].address();
    let snapshot = chain.store.snapshot();
    let all = Range { from: &[], to: None, limit: usize::MAX };
    let (rows, deleted) = stepped_over(|| view::scan::<Unbondings>(&snapshot, all).unwrap());
    assert_eq!((rows.len(), deleted > FEW), (expected.len(), true), "this counts work");
    let (found, deleted) = stepped_over(|| snapshot.unbonding(&miner, 10).unwrap());
    assert_eq!(found, expected);
    assert!(deleted <= FEW, "{deleted} rows");
}

/// Nothing waits any more: there is no row from which on the next look could go.
#[test]
fn the_next_deadline_steps_over_none_that_is_gone_when_no_other_is_left() {
    let (_dir, mut chain) = chain_of_unsigned(2);
    let (txs, runs) = requests(&mut chain.wallets[0], 0..MANY);
    chain.block(&txs);
    each(&mut chain, 0, &runs, Wallet::cancel);
    let next = || stepped_over(|| sweep::next_deadline(&*chain.store.latest()).unwrap());
    assert!(next().1 >= MANY, "this counts work");
    let (deadline, deleted) = next();
    assert_eq!(deadline, None);
    assert!(deleted <= FEW, "{deleted} rows");
    let (txs, _) = requests(&mut chain.wallets[0], 0..1);
    chain.block(&txs);
    let expected = chain.tip().timestamp + chain.chain.params.pending_ttl_ms;
    assert_eq!(sweep::next_deadline(&*chain.store.latest()).unwrap(), Some(expected));
}
