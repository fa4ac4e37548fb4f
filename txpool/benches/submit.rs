//! What the pool itself costs per transaction, beside executing it: submit, candidates, commit,
//! journal. The ledger here does almost nothing, so that the figures are the pool's own.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

mod ledger;

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use fixtures::key;
use txpool::verifier::{Rules, Verifier};
use txpool::{BlockLimits, Committed, Config, Pool, Touched};
use types::build::{Envelope, build_tx};
use types::{Address, CheckedTx, Forks, Hash, Keypair, Params};

use ledger::ports;

const SENDERS: u32 = 2_000;
const PER_SENDER: u64 = 50;
const BATCH: usize = 50;
const BLOCK: BlockLimits = BlockLimits { bytes: 4 * 1024 * 1024, count: usize::MAX };

/// Signed transfers, the senders in turn.
fn texts() -> Vec<String> {
    let keys: Vec<Keypair> = (0..SENDERS).map(|number| key(number.into())).collect();
    let to = Address::new([7; 20]);
    let text =
        |nonce, key| build_tx(key, &fixtures::transfer(to, nonce), &Envelope::new(nonce, 1, None));
    (0..PER_SENDER).flat_map(|nonce| keys.iter().map(move |key| text(nonce, key))).collect()
}

fn report(what: &str, count: usize, time: Duration) {
    let micros = time.as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap());
    println!("{what:<44} {micros:>8.3} us/tx   ({count} transactions)");
}

/// Time that this thread spent on a processor, so that a busy machine does not spoil the figures;
/// where the system does not say, time.
struct Clock {
    started: Instant,
    on_processor: Option<Duration>,
}

impl Clock {
    fn start() -> Self {
        Self { started: Instant::now(), on_processor: on_processor() }
    }

    fn elapsed(&self) -> Duration {
        match (on_processor(), self.on_processor) {
            (Some(now), Some(before)) => now.saturating_sub(before),
            _ => self.started.elapsed(),
        }
    }
}

fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split(' ').nth(1)?.parse::<u64>().ok()?.checked_mul(4096)
}

fn main() {
    let rules = Rules {
        chain_id: "bench".to_owned(),
        params: Params::default(),
        forks: Forks::default(),
        genesis_hash: Hash::ZERO,
    };
    let before = resident_bytes();
    let texts = texts();
    let count = texts.len();
    for threads in [1, 2] {
        let verifier = Verifier::new(rules.clone(), NonZeroUsize::new(threads).unwrap()).unwrap();
        let start = Instant::now();
        let clock = Clock::start();
        let valid: usize = texts
            .chunks(1_000)
            .map(|batch| verifier.check(batch.to_vec(), 1).iter().flatten().count())
            .sum();
        assert_eq!(count, valid);
        let elapsed = if threads == 1 { clock.elapsed() } else { start.elapsed() };
        report(&format!("verifier: parse and verify, {threads} threads"), count, elapsed);
    }

    let verifier = Verifier::new(rules, NonZeroUsize::MIN).unwrap();
    let txs: Vec<CheckedTx> = verifier.check(texts, 1).into_iter().map(Result::unwrap).collect();
    let directory = tempfile::tempdir().unwrap();
    let pool = Pool::with_journal(Config::default(), 0, ports(None), directory.path()).unwrap();
    pool.restore(&verifier, 1, 1).unwrap();

    let start = Clock::start();
    for batch in txs.chunks(BATCH) {
        assert!(pool.submit(batch, 1).iter().all(Result::is_ok));
    }
    report("pool: submit in batches of 50", count, start.elapsed());
    if let (Some(before), Some(after)) = (before, resident_bytes()) {
        let each = after.saturating_sub(before) / u64::try_from(count).unwrap();
        let bytes = pool.stats().bytes / count;
        println!("memory: at most {each} bytes per pooled transaction of {bytes} bytes");
    }

    let start = Clock::start();
    let written = pool.flush_journal().unwrap().written;
    report("pool: journal flush", written, start.elapsed());

    drop(txs);
    let (mut choosing, mut committing) = (Duration::ZERO, Duration::ZERO);
    let touched = Touched::default();
    while pool.pending_count() > 0 {
        let start = Clock::start();
        let included = pool.candidates(BLOCK);
        choosing += start.elapsed();
        let start = Clock::start();
        pool.committed(&Committed { included: &included, touched: &touched }, 1).unwrap();
        committing += start.elapsed();
    }
    report("pool: candidates of 4 MiB blocks", count, choosing);
    report("pool: committed", count, committing);
}
