//! What a commit costs and how much room a run takes: blocks of 2,200 transactions, 200 whole runs
//! of 11 each, by 400 users and 40 miners.
//!
//! `./run cargo bench -p store --bench store -- [--blocks N] [--dir FOLDER]`
//!
//! Prints microseconds per transaction (execution; state tree; encoding; the synced write), on the
//! clock and of this thread's processor time, which other work on the machine does not blur; then
//! bytes on disk per run by table, before and after compaction.

#![expect(clippy::print_stdout, reason = "the figures are the output")]

#[expect(dead_code, reason = "shared by benchmarks, each of which uses a part of it")]
mod figures;
#[path = "../tests/it/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
mod fixture;

use std::path::PathBuf;

use state::Executed;
use store::{CommitBlock, Options, Store, tools};

use crate::figures::{People, Phase, TXS_PER_RUN, argument, number};
use crate::fixture::{CERTIFICATE, TestChain, Wallet};

const PEOPLE: People = People { users: 400, miners: 40 };
const RUNS_PER_BLOCK: usize = 200;

fn main() {
    let blocks = number("--blocks", 20);
    let temporary = tempfile::tempdir().expect("a folder");
    let dir = argument("--dir").map_or_else(|| temporary.path().join("data"), PathBuf::from);
    let store = Store::open(&dir, Options::default()).expect("opens");
    let chain = TestChain::with(store, PEOPLE.count());

    let [mut execute, mut tree, mut prepare, mut write] = std::array::from_fn(|_| Phase::default());
    for txs in PEOPLE.blocks(RUNS_PER_BLOCK, blocks, Wallet::new) {
        let executed = execute.time(|| chain.execute(&txs));
        let Executed { block, changes, events } = &executed;
        let input = CommitBlock { block, changes, events, missed: &[] };
        tree.time(|| chain.store.root_after(changes).expect("a root"));
        let prepared = prepare.time(|| chain.store.prepare(&input).expect("prepares"));
        write.time(|| chain.store.commit(prepared, CERTIFICATE).expect("commits"));
    }

    println!("{blocks} blocks of {RUNS_PER_BLOCK} runs; microseconds per transaction");
    println!("{:<34} {:>9} {:>9}", "", "clock", "processor");
    for (name, phase) in [
        ("execute", &mut execute),
        ("state tree (part of prepare)", &mut tree),
        ("prepare: tree, encode, batch", &mut prepare),
        ("commit: synced write, caches", &mut write),
    ] {
        let (clock, processor) = phase.per_tx(RUNS_PER_BLOCK * TXS_PER_RUN);
        println!("{name:<34} {clock:>9.2} {processor:>9.2}");
    }
    let runs = u64::try_from(blocks * RUNS_PER_BLOCK).expect("a small number");
    room("bytes per run before compaction", &chain.store, runs);
    tools::compact(&chain.store, &mut |_, _| ()).expect("compacts");
    room("bytes per run after compaction", &chain.store, runs);
    println!("tip {:?}", chain.tip());
}

fn room(title: &str, store: &Store, runs: u64) {
    let stats = tools::stats(store).expect("stats");
    let total: u64 = stats.iter().map(|table| table.bytes).sum();
    println!("\n{title}: {}", total / runs);
    for table in stats.iter().filter(|table| table.bytes / runs > 0) {
        println!("  {:<22} {:>8} rows {:>7} bytes", table.table, table.rows, table.bytes / runs);
    }
}
