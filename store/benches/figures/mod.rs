//! What the benchmarks of the store have in common: arguments, times, and chains of agent runs that
//! are made on another thread.

use std::fs;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use types::CheckedTx;

use crate::fixture::{Wallet, whole_run};

/// Transactions of a whole run.
pub(crate) const TXS_PER_RUN: usize = 11;

/// The value after a name on the command line.
pub(crate) fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

/// A number on the command line.
pub(crate) fn number(name: &str, default: usize) -> usize {
    argument(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Times of one phase, block by block.
#[derive(Default)]
pub(crate) struct Phase {
    clock: Vec<Duration>,
    processor: Vec<Duration>,
}

impl Phase {
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (start, busy) = (Instant::now(), processor_time());
        let answer = work();
        self.clock.push(start.elapsed());
        self.processor.push(processor_time().saturating_sub(busy));
        answer
    }

    /// Microseconds per transaction in the median block: clock, and processor time of this thread.
    pub(crate) fn per_tx(&mut self, txs_per_block: usize) -> (f64, f64) {
        let median = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            per_tx(times.get(times.len() / 2).copied().unwrap_or_default(), txs_per_block)
        };
        (median(&mut self.clock), median(&mut self.processor))
    }
}

/// Microseconds per transaction.
pub(crate) fn per_tx(time: Duration, txs: usize) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(u32::try_from(txs).expect("a small number"))
}

/// How long this thread has run.
pub(crate) fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// How long all threads of this process have run, those of the database included.
pub(crate) fn process_time() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    // User and system time in hundredths of a second.
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Who takes part in the runs.
#[derive(Clone, Copy)]
pub(crate) struct People {
    pub(crate) users: usize,
    pub(crate) miners: usize,
}

impl People {
    pub(crate) fn count(self) -> u64 {
        u64::try_from(self.users + self.miners).expect("a small number")
    }

    /// Blocks of so many whole runs each, made on a thread of their own.
    pub(crate) fn blocks(
        self,
        runs_per_block: usize,
        blocks: usize,
        wallet: fn(u64) -> Wallet,
    ) -> Receiver<Vec<CheckedTx>> {
        let (sender, receiver) = sync_channel(2);
        thread::spawn(move || {
            let mut wallets: Vec<Wallet> = (0..self.count()).map(wallet).collect();
            let (users, miners) = wallets.split_at_mut(self.users);
            let mut run = 0;
            for _ in 0..blocks {
                let mut txs = Vec::with_capacity(runs_per_block * TXS_PER_RUN);
                for _ in 0..runs_per_block {
                    let user = &mut users[run % self.users];
                    let miner = &mut miners[run % self.miners];
                    let number = u64::try_from(run).expect("a small number");
                    txs.extend(whole_run(number, user, miner).1);
                    run += 1;
                }
                if sender.send(txs).is_err() {
                    return;
                }
            }
        });
        receiver
    }
}
