//! A pool that is full of transactions without tips, by the rules of v7: what it costs somebody with a tip
//! to get in, beside an empty pool, and that the next block has it. Executed by the ledger's own rules, on
//! a state in memory.
//!
//! `./run cargo bench -p txpool --bench crowded`

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fixtures::{key, times, unsigned};
use txpool::ports::AdmitError;
use txpool::{BlockLimits, Config, Found, Pool, Ports};
use types::build::Envelope;
use types::tx::Transfer;
use types::{Address, Amount, CheckedTx, Code, Keypair};

#[path = "ledger/nothing.rs"]
mod nothing;
#[path = "ledger/rules.rs"]
mod rules;

use nothing::Nothing;
use rules::{Blocks, Draft};

/// Transactions without a tip, each of a sender of its own: as many as a pool of this size takes.
const CROWD: u32 = 100_000;
const COUNT_MAX: usize = 111_111;
const PAYERS: u32 = 2_000;
/// No submission may hold the lock for longer.
const SUBMIT_MAX: Duration = Duration::from_millis(1);
const BLOCK: BlockLimits = BlockLimits { bytes: 4 * 1024 * 1024, count: 20_000 };

fn tx(from: &Keypair, tip: u64) -> CheckedTx {
    let fields = Transfer::new(Address::new([7; 20]), Amount::new(1), Amount::new(tip));
    CheckedTx::trust(unsigned(from, &fields.into(), &Envelope::new(0, 1, None)))
}

fn pool(keys: &[Keypair]) -> Pool {
    let ledger = Box::new(Draft::over(Blocks::of_v7(keys, &key(u64::MAX), 1_000_000)));
    let config = Config { count_max: COUNT_MAX, ..Config::default() };
    Pool::new(config, 0, Ports { ledger, chain: Arc::new(Nothing), events: Arc::new(Nothing) })
}

/// Submits one by one; answers the mean and the time that 99 of 100 stay within.
fn submit_each(pool: &Pool, txs: &[CheckedTx]) -> (Duration, Duration) {
    let times = times(txs.len(), |at| {
        pool.submit(std::slice::from_ref(&txs[at]), 1).remove(0).unwrap();
    });
    let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap();
    (mean, times[times.len() * 99 / 100])
}

fn main() {
    let keys: Vec<Keypair> = (0..CROWD + PAYERS + 2).map(|number| key(number.into())).collect();
    let crowd = usize::try_from(CROWD).unwrap();
    let free: Vec<CheckedTx> = keys[..crowd].iter().map(|key| tx(key, 0)).collect();
    let paid: Vec<CheckedTx> =
        keys[crowd..keys.len() - 1].iter().zip(100..).map(|(key, tip)| tx(key, tip)).collect();
    let (late, paid) = paid.split_last().unwrap();

    let empty = pool(&keys);
    let (mean, most) = submit_each(&empty, paid);
    println!("into an empty pool: {mean:?} each, 99 of 100 within {most:?}");

    let full = pool(&keys);
    let started = Instant::now();
    assert!(full.submit(&free, 1).iter().all(Result::is_ok));
    println!("{CROWD} without a tip: {:?} each", started.elapsed() / CROWD);
    let without_tip = tx(keys.last().unwrap(), 0);
    let answer = full.submit(&[without_tip], 1).remove(0);
    assert!(matches!(answer, Err(AdmitError::Rejected(it)) if it.code() == Code::PoolFull));
    let (mean, most) = submit_each(&full, paid);
    println!("into a full pool: {mean:?} each, 99 of 100 within {most:?}");
    assert!(most < SUBMIT_MAX, "a submission held the pool for {most:?}");
    assert!(matches!(
        full.find(free.last().unwrap().hash()),
        Some(Found::Dropped(it)) if it.reason.code() == Code::Evicted
    ));

    full.submit(std::slice::from_ref(late), 1).remove(0).unwrap();
    let started = Instant::now();
    let block = full.candidates(BLOCK);
    println!("a block of {} transactions: chosen in {:?}", block.len(), started.elapsed());
    assert!(block.contains(late), "who pays is not in the next block");
    assert!(paid.iter().all(|tx| block.contains(tx)), "who pays is not in the next block");
}
