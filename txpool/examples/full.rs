//! What a full pool takes of memory while ever better paying transactions come in the place of others, and
//! what a validator's vote in a block costs it. Executed by the ledger's own rules, on a state in memory.
//!
//! `./run cargo run --release -p txpool --example full -- [POOL] [ADMISSIONS]`, by default
//! 100000 and 1000000.
//!
//! Resident memory is that of the process beyond what it had before the pool was filled: the pool, its
//! draft, and what the allocator keeps.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use txpool::{Committed, Config, Pool, Ports, Touched};
use types::build::Envelope;
use types::tx::Transfer;
use types::{Address, Amount, Bid, Body, CheckedTx, Hash, Keypair};

#[path = "../benches/ledger/nothing.rs"]
mod nothing;
#[path = "../benches/ledger/rules.rs"]
mod rules;

use nothing::Nothing;
use rules::{Blocks, Draft};

const NOW_MS: u64 = 1_000_000;
/// What each account has, in micro: enough for the tips of the last round.
const MONEY: u64 = 1_000_000_000;
/// So many lines are printed.
const LINES: usize = 20;

fn key(number: usize) -> Keypair {
    Keypair::from_seed(Hash::digest(&number.to_be_bytes()).as_bytes())
}

/// Of ten transactions five are transfers, three say something, and two ask for a run. A text has 20 to
/// 2,000 bytes.
fn body(from: &Keypair, number: usize, tip: u64) -> Body {
    let text = "what is to be said ".repeat(number % 100 + 1);
    match number % 10 {
        0..5 => Transfer::new(Address::new([7; 20]), Amount::new(1), Amount::new(tip)).into(),
        5..8 => fixtures::turn(&text).into(),
        _ => fixtures::request(from.address(), 0, &text, 100_000, 10).into(),
    }
}

fn signed(from: &Keypair, nonce: u64, timestamp: u64, (body, tip): (&Body, u64)) -> CheckedTx {
    let tip = Some(Amount::new(tip)).filter(|_| !matches!(body, Body::Transfer(_)));
    let bid = Bid { max_base_fee: None, tip };
    let envelope = Envelope { bid, ..Envelope::new(nonce, timestamp, None) };
    CheckedTx::trust(fixtures::unsigned(from, body, &envelope))
}

/// A transaction that offers so much for each KiB.
fn offer(from: &Keypair, number: usize, rate: u64, round: u64) -> CheckedTx {
    let tx = |tip| signed(from, 0, NOW_MS - round, (&body(from, number, tip), tip));
    let size = u64::try_from(tx(rate).content_bytes()).unwrap() + 16;
    tx((rate * size).div_ceil(1_024))
}

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1_024
}

/// Commits a block of these transactions and tells the pool; answers how long the pool took until it was
/// done with it, and how often it built its draft anew.
fn commit(
    pool: &Pool,
    blocks: &Mutex<Blocks>,
    proposer: &Keypair,
    txs: &[CheckedTx],
) -> (Duration, u64) {
    let touched = {
        let mut blocks = blocks.lock();
        let time = blocks.chain.tip().timestamp + 1_000;
        let mut block = blocks.chain.begin(proposer, time).unwrap();
        txs.iter().for_each(|tx| block.push(tx).unwrap());
        let executed = block.finish().unwrap();
        blocks.chain.append(&executed).unwrap();
        blocks.last = txs.to_vec();
        Touched::by(&executed.events)
    };
    let (started, before) = (Instant::now(), pool.stats().rebuilds_total);
    pool.committed(&Committed { included: txs, touched: &touched }, NOW_MS).unwrap();
    while pool.settle(NOW_MS).unwrap() {}
    (started.elapsed(), pool.stats().rebuilds_total - before)
}

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<usize>().unwrap());
    let size = args.next().unwrap_or(100_000);
    let admissions = args.next().unwrap_or(1_000_000);
    let validator = key(usize::MAX);
    let keys: Vec<Keypair> = (0..2 * size).map(key).collect();
    let blocks = Blocks::of_v7(&keys, &validator, MONEY);
    let ledger = Box::new(Draft::over(Arc::clone(&blocks)));
    // Nine tenths are for all but steps and ends of runs.
    let config = Config { count_max: (size * 10).div_ceil(9), ..Config::default() };
    let bytes_max = config.bytes_max;
    let ports = Ports { ledger, chain: Arc::new(Nothing), events: Arc::new(Nothing) };
    let pool = Pool::new(config, 0, ports);

    let before = resident();
    println!(
        "a pool of {size} transactions and {bytes_max} bytes, {admissions} admissions after it"
    );
    println!("admitted   pooled     bytes pooled  resident MiB  resident/pooled  each");
    let (mut rate, mut admitted, mut most) = (10, 0_usize, 0_usize);
    let (mut refused, mut took) = (0_usize, Duration::ZERO);
    let line = ((size + admissions) / LINES).max(1);
    'rounds: for round in 0.. {
        // Those of the round before are evicted by those of this one, so their nonces are free again.
        let half = if round % 2 == 0 { &keys[..size] } else { &keys[size..] };
        for (number, from) in half.iter().enumerate() {
            if admitted >= size + admissions {
                break 'rounds;
            }
            let tx = offer(from, number, rate, round);
            let started = Instant::now();
            let answer = pool.submit(std::slice::from_ref(&tx), NOW_MS).remove(0);
            took += started.elapsed();
            refused += usize::from(answer.is_err());
            admitted += 1;
            if admitted % line == 0 || admitted == size {
                let (stats, taken) = (pool.stats(), resident().saturating_sub(before));
                most = most.max(taken);
                let pooled = stats.pending + stats.waiting + stats.queued;
                let (mib, each) = (taken >> 20, took / u32::try_from(admitted).unwrap());
                let tenths = taken * 10 / stats.bytes.max(1);
                let ratio = format!("{}.{}", tenths / 10, tenths % 10);
                println!(
                    "{admitted:<10} {pooled:<10} {:<13} {mib:<13} {ratio:<16} {each:?}",
                    stats.bytes
                );
            }
        }
        rate = rate * 9 / 8 + 6;
    }
    let stats = pool.stats();
    assert!(admissions == 0 || stats.evicted_total > 0, "nothing was evicted");
    println!(
        "most: {} MiB for {bytes_max} bytes allowed; {} evicted, {refused} refused, draft built anew {} times",
        most >> 20,
        stats.evicted_total,
        stats.rebuilds_total
    );

    let (one, _) = commit(&pool, &blocks, &validator, &pool.pending(1));
    let vote = signed(&validator, 0, NOW_MS, (&fixtures::fork_vote("v8", 200_000), 0));
    let (with_vote, rebuilds) =
        commit(&pool, &blocks, &validator, &[&pool.pending(1)[..], &[vote]].concat());
    let started = Instant::now();
    pool.chain_moved(NOW_MS).unwrap();
    while pool.settle(NOW_MS).unwrap() {}
    let anew = started.elapsed();
    println!(
        "a block with one transaction: {one:?}; with a vote: {with_vote:?}, draft built anew {rebuilds} times; building it anew: {anew:?}"
    );
}
