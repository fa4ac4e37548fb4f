//! How long each question that strangers may ask holds the lock of a full pool. Nobody may make others
//! wait for the pool for longer than a millisecond by one question, so this program fails if any takes
//! longer. `state/benches/checks.rs` has what the ledger's part of a question costs.
//!
//! `./run cargo bench -p txpool --bench questions`

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

mod ledger;

use std::hint::black_box;
use std::time::Duration;

use fixtures::{key, times, transfer, unsigned};
use txpool::{Config, Pool};
use types::build::Envelope;
use types::{Address, CheckedTx, Hash, Keypair};

use ledger::ports;

/// The longest that a question may take.
const QUESTION_MAX: Duration = Duration::from_millis(1);
/// How often each is asked, each time about other senders; the median counts, because the machine has
/// other work, too.
const TIMES: usize = 21;
/// As much as a pool takes by default: of many senders one each, or of few as much as each may have.
const SENDERS: u64 = 200_000;
const FEW_SENDERS: u64 = 97;
const PER_SENDER: u64 = 2_048;
/// The largest page, and the names that the pool looks up at a time.
const PAGE: usize = 500;
const NAMES: usize = 256;

fn tx(from: &Keypair, nonce: u64) -> CheckedTx {
    let body = transfer(Address::new([7; 20]), 1);
    CheckedTx::trust(unsigned(from, &body, &Envelope::new(nonce, 1, None)))
}

/// The middle one of the times that a question took, asked once with each number.
fn median(ask: impl FnMut(usize)) -> Duration {
    times(TIMES, ask)[TIMES / 2]
}

fn main() {
    println!("a full pool, microseconds, the median of {TIMES}");
    let many: Vec<CheckedTx> = (0..SENDERS).map(|number| tx(&key(number), 1)).collect();
    let few: Vec<Keypair> = (0..FEW_SENDERS).map(key).collect();
    let few = (0..PER_SENDER).flat_map(|nonce| few.iter().map(move |key| tx(key, nonce))).collect();
    let worst = [("many senders, queued", many), ("few senders, executable", few)]
        .map(|(what, txs)| questions(what, &txs));
    let worst = worst.into_iter().max().unwrap();
    assert!(worst < QUESTION_MAX, "a question took {worst:?}");
}

/// Asks a pool with these transactions everything; answers the longest time.
fn questions(what: &str, txs: &[CheckedTx]) -> Duration {
    let pool = Pool::new(Config::default(), 0, ports(None));
    assert!(pool.submit(txs, 1).iter().all(Result::is_ok));
    println!("{what}: {} transactions", txs.len());
    let mut senders: Vec<Address> = txs.iter().map(|tx| tx.from()).collect();
    senders.sort_unstable();
    senders.dedup();
    let sender = |number: usize| senders[(senders.len() - 1) * number / TIMES];
    let hashes: Vec<Vec<Hash>> = (0..TIMES)
        .map(|number| {
            txs.iter().skip(number).step_by(txs.len() / NAMES).map(|it| it.hash()).collect()
        })
        .collect();
    let figures = [
        ("a page of the content", median(|it| drop(pool.content(Some(sender(it)), PAGE)))),
        ("a page of the names", median(|it| drop(pool.names(Some(sender(it)))))),
        ("what one sender has", median(|it| drop(pool.content_from(sender(it))))),
        ("the first executable ones", median(|_| drop(pool.pending(PAGE)))),
        ("an account", median(|it| drop(black_box(pool.account(sender(it)))))),
        ("counts", median(|_| drop(pool.status()))),
        ("figures", median(|_| drop(pool.stats()))),
        ("which of 256 it has", median(|it| drop(pool.holds(&hashes[it])))),
        ("256 transactions by name", median(|it| drop(pool.lookup_all(&hashes[it])))),
    ];
    for (name, took) in figures {
        println!("  {name:32} {:>8.1}", took.as_secs_f64() * 1e6);
    }
    figures.into_iter().map(|(_, took)| took).max().unwrap()
}
