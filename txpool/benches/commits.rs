//! How long a block holds the lock of a full pool by the rules of v7: with senders that are all ready to
//! pay the same, and with such whose every next transaction is ready to pay more, so that each one that a
//! block takes changes what all that come after it wait for.
//!
//! `./run cargo bench -p txpool --bench commits`

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

mod ledger;

use std::time::{Duration, Instant};

use fixtures::{key, transfer, unsigned};
use txpool::{Committed, Config, Pool, Touched};
use types::build::Envelope;
use types::{Address, Amount, Bid, CheckedTx, Keypair};

use ledger::ports;

/// Nearly as much as a pool takes by default beside the tenth that is kept for steps.
const SENDERS: u32 = 87;
const PER_SENDER: u64 = 2_048;
/// How many of each sender a block takes, and how many blocks come.
const PER_BLOCK: u64 = 20;
const BLOCKS: u64 = 21;

fn tx(from: &Keypair, nonce: u64, highest: u64) -> CheckedTx {
    let body = transfer(Address::new([7; 20]), 1);
    let bid = Bid { max_base_fee: Some(Amount::new(highest)), ..Bid::default() };
    let envelope = Envelope { bid, ..Envelope::new(nonce, 1, None) };
    CheckedTx::trust(unsigned(from, &body, &envelope))
}

fn main() {
    let blocks = BLOCKS * PER_BLOCK;
    println!(
        "{SENDERS} senders, {PER_SENDER} each; a block takes {PER_BLOCK} of each; median of {BLOCKS}"
    );
    let keys: Vec<Keypair> = (0..SENDERS).map(|number| key(number.into())).collect();
    for (what, step) in [("all ready to pay the same", 0), ("each ready to pay more", 1)] {
        let of_nonce =
            |nonce| keys.iter().map(move |key| tx(key, nonce, 10_000 + step * nonce)).collect();
        let lists: Vec<Vec<CheckedTx>> = (0..PER_SENDER).map(of_nonce).collect();
        let all: Vec<CheckedTx> = lists.iter().flatten().cloned().collect();
        let pool = Pool::new(Config::default(), 0, ports(Some(1_000)));
        let refused = pool.submit(&all, 1).into_iter().find_map(Result::err);
        assert!(refused.is_none(), "{refused:?}");
        let mut times: Vec<Duration> = (0..blocks)
            .step_by(usize::try_from(PER_BLOCK).unwrap())
            .map(|first| {
                let from = usize::try_from(first).unwrap();
                let until = usize::try_from(first + PER_BLOCK).unwrap();
                let included: Vec<CheckedTx> = lists[from..until].concat();
                let touched = Touched::default();
                let block = Committed { included: &included, touched: &touched };
                let started = Instant::now();
                pool.committed(&block, 1).unwrap();
                started.elapsed()
            })
            .collect();
        times.sort_unstable();
        let median = times[times.len() / 2];
        let txs = u32::try_from(PER_BLOCK).unwrap() * SENDERS;
        println!("{what}: {median:?} a block, {:?} a transaction", median / txs);
    }
}
