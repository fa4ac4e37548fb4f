//! What a transaction costs over a state of some size: a database is filled with finished agent
//! runs through the real execution, and at each of the given sizes a few blocks are timed.
//!
//! `./run cargo bench -p store --bench size -- [--sizes 10000,100000] [--dir FOLDER]`
//!
//! With `--sizes 10000,100000,1000000` it takes some minutes and about 4 GB of disk. A folder that
//! holds a part of the chain already, from a run that was interrupted, is filled up from there.
//!
//! Prints microseconds per transaction in the median block, on the clock and of processor time. The
//! column before the last is the processor time of the whole process in the timed blocks, in which
//! the database's own threads may do what earlier blocks left to them; the last one that while the
//! database grew to that size, the making of the transactions included.

#![expect(clippy::print_stdout, reason = "the figures are the output")]

#[expect(dead_code, reason = "shared by benchmarks, each of which uses a part of it")]
mod figures;
#[path = "../tests/it/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
mod fixture;

use std::path::PathBuf;
use std::time::Duration;

use state::Executed;
use store::{CommitBlock, Options, Store, tools};
use types::CheckedTx;

use crate::figures::{People, Phase, TXS_PER_RUN, argument, per_tx, process_time};
use crate::fixture::{CERTIFICATE, TestChain, Wallet};

const PEOPLE: People = People { users: 2_000, miners: 200 };
const RUNS_PER_BLOCK: usize = 200;
const TXS_PER_BLOCK: usize = RUNS_PER_BLOCK * TXS_PER_RUN;
/// Blocks that are timed at each size.
const TIMED: usize = 50;

fn main() {
    let sizes = argument("--sizes").unwrap_or_else(|| "10000,100000".to_owned());
    let sizes = sizes.split(',').map(|size| size.parse().expect("a number"));
    let sizes: Vec<usize> = sizes.collect();
    let temporary = tempfile::tempdir().expect("a folder");
    let dir = argument("--dir").map_or_else(|| temporary.path().join("data"), PathBuf::from);
    let store = Store::open(&dir, Options::default()).expect("opens");
    let chain = TestChain::with(store, PEOPLE.count());
    let last = sizes.iter().max().expect("a size");
    let blocks = PEOPLE.blocks(RUNS_PER_BLOCK, last / RUNS_PER_BLOCK + TIMED, Wallet::unsigned);

    println!("microseconds per transaction, clock / processor time, blocks of {TXS_PER_BLOCK}");
    println!(
        "{:>9} {:>15} {:>15} {:>15} {:>15} {:>9} {:>9} {:>9}",
        "runs", "execute", "tree", "prepare", "commit", "sum", "process", "filling"
    );
    let mut height = usize::try_from(chain.tip().height).expect("a small number");
    blocks.iter().take(height).for_each(drop);
    for size in sizes {
        let (before, busy) = (height, process_time());
        while height < size / RUNS_PER_BLOCK {
            chain.block(&blocks.recv().expect("more blocks"));
            height += 1;
        }
        let filled = (height - before).max(1) * TXS_PER_BLOCK;
        let filling = per_tx(process_time().saturating_sub(busy), filled);
        let timed: Vec<Vec<CheckedTx>> = blocks.iter().take(TIMED).collect();
        height += timed.len();
        measure((size, filling), &chain, &timed);
    }
    let stats = tools::stats(&chain.store).expect("stats");
    println!("tip {:?}", chain.tip());
    for table in stats.iter().filter(|table| table.bytes >> 20 > 0) {
        println!("  {:<22} {:>10} rows {:>6} MB", table.table, table.rows, table.bytes >> 20);
    }
}

fn measure((size, filling): (usize, f64), chain: &TestChain, blocks: &[Vec<CheckedTx>]) {
    let [mut execute, mut tree, mut prepare, mut write] = std::array::from_fn(|_| Phase::default());
    let mut process = Duration::ZERO;
    for txs in blocks {
        let busy = process_time();
        let executed = execute.time(|| chain.execute(txs));
        let Executed { block, changes, events } = &executed;
        let input = CommitBlock { block, changes, events, missed: &[] };
        let prepared = prepare.time(|| chain.store.prepare(&input).expect("prepares"));
        process += process_time().saturating_sub(busy);
        // A second time, alone: it is a part of what came before.
        tree.time(|| chain.store.root_after(changes).expect("a root"));
        let busy = process_time();
        write.time(|| chain.store.commit(prepared, CERTIFICATE).expect("commits"));
        process += process_time().saturating_sub(busy);
    }
    let phases = [&mut execute, &mut tree, &mut prepare, &mut write];
    let [execute, tree, prepare, write] = phases.map(|phase| phase.per_tx(TXS_PER_BLOCK));
    let shown = |(clock, processor): (f64, f64)| format!("{clock:.2} / {processor:.2}");
    println!(
        "{size:>9} {:>15} {:>15} {:>15} {:>15} {:>9.2} {:>9.2} {filling:>9.2}",
        shown(execute),
        shown(tree),
        shown(prepare),
        shown(write),
        execute.0 + prepare.0 + write.0,
        per_tx(process, blocks.len() * TXS_PER_BLOCK)
    );
}
