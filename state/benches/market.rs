//! What an election takes: the draw alone, and finding the candidates on a state in memory, with many
//! strangers who offer, too. Prints microseconds, the median of many. The most that a draw among 256
//! candidates for 15 seats may take is 100, and the program ends with a failure if it takes longer.
//!
//! `./run cargo bench -p state --bench market`

#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use fixtures::times;
use state::market::election::{Candidate, Lot, elect};
use state::market::eligible::{Draw, Wanted, candidates};
use state::market::offers::index_key;
use state::market::roster::Roster;
use state::tables::{Bonds, Offers, OffersByExecutor};
use state::{Draft, Memory};
use types::agent::ExecutorId;
use types::{Address, Amount, Bond, Hash, Offer, Params, Prices};

const CANDIDATES: u32 = 256;
const SEATS: usize = 15;
const STRANGERS: u32 = 100_000;
const LIMIT: Duration = Duration::from_micros(100);
const TIMES: usize = 201;
const EXECUTOR: ExecutorId = ExecutorId::Wasm;
const LEAST: u64 = 10_000_000;

fn main() -> ExitCode {
    let drawn: Vec<Candidate> = (0..CANDIDATES)
        .map(|number| Candidate {
            miner: miner(number),
            weight: Amount::new(LEAST + u64::from(number) * 1_000),
            is_full: number % 9 == 0,
        })
        .collect();
    let lot = Lot { call_id: Hash::ZERO, round: 0, randomness: Hash::digest(b"a block") };
    let draw = median(|| drop(black_box(elect(&lot, &drawn, SEATS))));
    println!("draw {SEATS} of {CANDIDATES}: {draw:?}");
    for miners in [CANDIDATES, STRANGERS] {
        let state = state_of(miners);
        let excluded = BTreeSet::new();
        let wanted = Wanted {
            executors: &[EXECUTOR],
            prices: &Prices::default(),
            lock: Amount::new(1_000_000),
            excluded: &excluded,
            draw: Draw::First,
        };
        let find = || candidates(&*state, &Params::default(), &wanted).unwrap();
        assert_eq!(find().len(), 256);
        let took = median(|| drop(black_box(find())));
        println!("candidates where {miners} miners offer: {took:?}");
        let mut roster = Roster::default();
        let again = median(|| {
            drop(black_box(roster.candidates(&*state, &Params::default(), &wanted).unwrap()));
        });
        println!("the same for a later election of the block: {again:?}");
    }
    if draw > LIMIT {
        println!("a draw takes longer than {LIMIT:?}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn miner(number: u32) -> Address {
    let mut bytes = [0; 20];
    let hash = Hash::digest(&number.to_be_bytes());
    bytes.copy_from_slice(hash.as_bytes().get(..20).unwrap());
    Address::new(bytes)
}

/// So many miners with the same bond and an offer for nothing.
fn state_of(miners: u32) -> Arc<Memory> {
    let mut draft = Draft::new(Arc::new(Memory::default()));
    let offer = Offer { capacity: 1, prices: Prices::default() };
    let bonded = Amount::new(LEAST);
    for miner in (0..miners).map(miner) {
        draft.put::<Bonds>(&miner, &Bond { bonded, locked: Amount::ZERO });
        draft.put::<Offers>(&(miner, EXECUTOR), &offer);
        draft.put::<OffersByExecutor>(&index_key(EXECUTOR, bonded, miner), &offer);
    }
    let memory = Arc::new(Memory::default());
    memory.apply(&draft.into_changes());
    memory
}

fn median(mut action: impl FnMut()) -> Duration {
    times(TIMES, |_| action())[TIMES / 2]
}
