//! Replay: a chain of W2 blocks (whole agent runs of 11 transactions) is written through the real
//! execution, and then executed again from its own storage into a second database, as
//! `ombra db verify` does it: read, decoded, certificates and signatures checked, executed, state
//! tree and indexes built, committed.
//!
//! `./run cargo bench -p store --bench replay -- [ARGUMENTS]`; the arguments are `--runs N`,
//! `--per-block N`, `--threads N` and `--rounds N`.
//!
//! Prints transactions per second, and microseconds of processor time per transaction of the whole
//! process, which other work on the machine hardly blurs.

#![expect(clippy::print_stdout, reason = "the figures are the output")]

#[expect(dead_code, reason = "shared by benchmarks, each of which uses a part of it")]
mod figures;
#[path = "../tests/it/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
mod fixture;

use std::num::NonZeroUsize;
use std::time::Instant;

use store::tools::{self, Certificates, Replay, V7Height};
use store::{Options, Store};
use types::{Address, Hash, SetMember};

use crate::figures::{People, TXS_PER_RUN, number, per_tx, process_time};
use crate::fixture::{TIME, TestChain, Wallet, genesis_changes, genesis_hash, rules};

const PEOPLE: People = People { users: 200, miners: 200 };

/// Accepts every certificate: what one costs is a signature for each validator.
struct Anything;

impl Certificates for Anything {
    fn verify(
        &self,
        _: V7Height,
        _: Option<&[SetMember]>,
        _: u64,
        _: &Hash,
        _: &[u8],
    ) -> Result<Vec<Address>, String> {
        Ok(Vec::new())
    }
}

fn main() {
    let (per_block, rounds) = (number("--per-block", 64), number("--rounds", 3));
    let blocks = number("--runs", 6_400).div_ceil(per_block);
    let threads = number("--threads", std::thread::available_parallelism().map_or(1, usize::from));
    let dir = tempfile::tempdir().expect("a folder");
    let store = Store::open(&dir.path().join("data"), Options::default()).expect("opens");
    let chain = TestChain::with(store, PEOPLE.count());
    for txs in PEOPLE.blocks(per_block, blocks, Wallet::new) {
        chain.block(&txs);
    }
    let txs = blocks * per_block * TXS_PER_RUN;
    println!("{blocks} blocks of {per_block} runs, {txs} transactions, {threads} threads");

    let changes = genesis_changes(&chain.wallets);
    let replay = Replay {
        chain: rules(),
        genesis_hash: genesis_hash(),
        genesis_time: TIME,
        genesis_changes: &changes,
        certificates: &Anything,
        threads: NonZeroUsize::new(threads).expect("at least one thread"),
    };
    for round in 0..rounds {
        let copy = dir.path().join(format!("copy-{round}"));
        let target = Store::open(&copy, Options::default()).expect("opens");
        let (start, busy) = (Instant::now(), process_time());
        let height = chain.tip().height;
        let tip = tools::rebuild(&chain.store, &target, height, &replay, &mut |_, _| ());
        let (clock, processor) = (start.elapsed(), process_time().saturating_sub(busy));
        assert_eq!(tip.expect("a sound chain"), chain.tip());
        println!(
            "{:>8.0} tx/s   {:>6.2} us of clock   {:>6.2} us of processor per transaction",
            1e6 / per_tx(clock, txs),
            per_tx(clock, txs),
            per_tx(processor, txs)
        );
        drop(target);
        std::fs::remove_dir_all(copy).expect("is there");
    }
}
