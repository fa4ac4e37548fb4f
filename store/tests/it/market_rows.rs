//! What has come and gone in the market costs nobody anything who looks at what is there.

use std::collections::BTreeMap;
use std::env;
use std::time::{Duration, Instant};

use state::market::draw::is_waiting;
use state::market::list::{Filter, list};
use state::market::offers::{Ranked, counting, index_key};
use state::table::{Key, Table, encode_value};
use state::tables::{CallQueue, OffersByExecutor};
use state::{Changes, Read};
use types::agent::ExecutorId;
use types::{Address, Amount, Hash, Offer, Params, Prices};

use crate::fixture::{TestChain, data, open};
use crate::market::{EXECUTORS, LEAST};
use crate::open_runs::{FEW, stepped_over};

const OFFER: Offer = Offer {
    capacity: 3,
    prices: Prices {
        per_call: Amount::ZERO,
        prompt_per_m: Amount::ZERO,
        completion_per_m: Amount::ZERO,
        fuel_per_g: Amount::ZERO,
    },
};

/// Miners with their bonds, all of whom offer for both executors.
type Bonds = BTreeMap<Address, u64>;

/// How many rows come and go, and how long what looks at the rest takes is printed, if this says so.
const ROWS: &str = "OMBRA_MARKET_ROWS";

fn rows(usually: u32) -> u32 {
    env::var(ROWS).map_or(usually, |text| text.parse().unwrap())
}

/// An answer, and how long it took.
fn timed<T>(ask: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let answer = ask();
    (answer, begun.elapsed())
}

fn miner(number: u64) -> Address {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Address::new(bytes)
}

fn params() -> Params {
    Params { min_bond: Amount::new(LEAST), ..Params::default() }
}

/// Commits an empty block that changes these rows besides.
fn commit(chain: &TestChain, rows: impl FnOnce(&mut Changes)) {
    let mut executed = chain.execute(&[]);
    rows(&mut executed.changes);
    chain.commit(&executed);
}

fn place(executor: ExecutorId, bond: u64, miner: Address) -> Vec<u8> {
    index_key(executor, Amount::new(bond), miner).to_bytes()
}

/// A miner's bond changes, and its offers stand elsewhere; without a new bond they are taken back.
fn moves(changes: &mut Changes, bonds: &mut Bonds, miner: Address, bond: Option<u64>) {
    let rows = changes.entry(OffersByExecutor::ID).or_default();
    let before = match bond {
        Some(bond) => bonds.insert(miner, bond),
        None => bonds.remove(&miner),
    };
    for executor in EXECUTORS {
        if let Some(before) = before {
            rows.insert(place(executor, before, miner), None);
        }
        if let Some(bond) = bond {
            let value = encode_value::<OffersByExecutor>(&OFFER);
            rows.insert(place(executor, bond, miner), Some(value));
        }
    }
}

/// The offers that count, found the slow way.
fn expected(bonds: &Bonds) -> Vec<Ranked> {
    let ranked = bonds.iter().map(|(miner, bond)| Ranked {
        miner: *miner,
        bond: Amount::new(*bond),
        offer: OFFER,
    });
    let mut ranked: Vec<Ranked> = ranked.collect();
    ranked.sort_by_key(|it| (std::cmp::Reverse(it.bond), it.miner));
    ranked.truncate(usize::try_from(params().offers_per_executor_max).unwrap());
    ranked
}

fn counting_in(state: &dyn Read) -> [Vec<Ranked>; 2] {
    EXECUTORS.map(|executor| counting(state, executor, &params()).unwrap())
}

/// So many miners, each with a bond a little above the one before.
fn begun(chain: &TestChain, miners: u64) -> Bonds {
    let mut bonds = Bonds::new();
    commit(chain, |changes| {
        for number in 0..miners {
            moves(changes, &mut bonds, miner(number), Some(LEAST + number * 100));
        }
    });
    bonds
}

#[test]
fn who_looks_for_offers_steps_over_none_that_has_moved() {
    let (dir, chain) = TestChain::fresh(1);
    let mut bonds = begun(&chain, 600);
    let latest = chain.store.latest();
    assert_eq!(counting_in(&*latest)[0], expected(&bonds));
    for block in 0..u64::from(rows(2_000) / 50) {
        // Those in the middle of what counts, a little up and down.
        commit(&chain, |changes| {
            for number in 400..450 {
                let bond = LEAST + number * 100 + block;
                moves(changes, &mut bonds, miner(number), Some(bond));
            }
        });
        let (found, deleted) = stepped_over(|| counting_in(&*latest));
        assert_eq!(found, [expected(&bonds), expected(&bonds)]);
        assert!(deleted <= FEW, "{deleted} rows after block {block}");
    }
    let snapshot = chain.store.snapshot();
    println!("two executors, newest state: {:?}", timed(|| counting_in(&*latest)).1);
    println!("two executors, a snapshot: {:?}", timed(|| counting_in(&snapshot)).1);
    let executor = Some(EXECUTORS[0]);
    let filter = Filter { executor, ..Filter::default() };
    let page = || list(&snapshot, &params(), &filter, None, 100).unwrap();
    println!("a page of offers: {:?}", timed(page).1);
    let pin = chain.store.pin().unwrap();
    let states: [&dyn Read; 2] = [&snapshot, &pin];
    for state in states {
        let (found, deleted) = stepped_over(|| counting_in(state));
        assert_eq!(found, [expected(&bonds), expected(&bonds)]);
        assert!(deleted <= FEW, "{deleted} rows");
    }
    drop((snapshot, pin, latest));
    drop(chain);
    // After a restart it is read once more.
    let store = open(&data(&dir));
    let read = || stepped_over(|| counting_in(&*store.latest()));
    let ((_, deleted), took) = timed(read);
    println!("two executors, after a restart: {took:?}");
    assert!(deleted > FEW, "this counts work");
    let (found, deleted) = stepped_over(|| counting_in(&*store.latest()));
    assert_eq!((found, deleted), ([expected(&bonds), expected(&bonds)], 0));
}

#[test]
fn a_snapshot_or_a_pin_finds_the_offers_of_its_own_height() {
    let (_dir, chain) = TestChain::fresh(1);
    let mut bonds = begun(&chain, 300);
    let store = chain.store.clone();
    let mut held = Vec::new();
    for block in 0..20 {
        held.push((store.snapshot(), store.pin().unwrap(), expected(&bonds)));
        if block % 3 == 0 {
            counting_in(&*store.latest());
        }
        commit(&chain, |changes| {
            for number in 0..15 {
                let number = (number * 37 + block * 11) % 330;
                let bond = (number % 4 != 0).then_some(LEAST + number * 90 + block);
                moves(changes, &mut bonds, miner(number), bond);
            }
        });
        held.reverse();
        held.truncate(3);
        held.reverse();
        for (snapshot, pin, expected) in &held {
            assert_eq!(counting_in(snapshot)[1], *expected, "after block {block}");
            assert_eq!(counting_in(pin)[1], *expected, "after block {block}");
        }
        assert_eq!(counting_in(&*store.latest())[1], expected(&bonds));
    }
}

#[test]
fn so_many_are_taken_away_that_those_behind_count() {
    let (_dir, chain) = TestChain::fresh(1);
    let mut bonds = begun(&chain, 5_000);
    let latest = chain.store.latest();
    assert_eq!(counting_in(&*latest)[0], expected(&bonds));
    // More than are kept in memory, from the largest bond on; then they come back.
    for _ in 0..4 {
        let last = bonds.values().max().copied().unwrap();
        let is_largest = |bond: u64| bond + 99_000 > last;
        let largest = bonds.iter().filter(|(_, bond)| is_largest(**bond));
        let gone: Vec<Address> = largest.map(|(miner, _)| *miner).collect();
        assert!(gone.len() > 900 && gone.len() > expected(&bonds).len());
        commit(&chain, |changes| {
            gone.iter().for_each(|miner| moves(changes, &mut bonds, *miner, None));
        });
        assert_eq!(counting_in(&*latest)[0], expected(&bonds));
    }
    commit(&chain, |changes| {
        for number in 0..5_000 {
            moves(changes, &mut bonds, miner(number), Some(LEAST + (5_000 - number) * 7));
        }
    });
    assert_eq!(counting_in(&*latest)[0], expected(&bonds));
}

#[test]
fn who_asks_whether_an_election_waits_steps_over_none_that_was_held() {
    let (_dir, chain) = TestChain::fresh(1);
    let waits = || stepped_over(|| is_waiting(&*chain.store.latest()).unwrap());
    let many = rows(1_000);
    let queue = |waiting: bool, height: u64| {
        commit(&chain, |changes| {
            let rows = changes.entry(CallQueue::ID).or_default();
            for position in 0..many {
                let value = waiting.then(|| encode_value::<CallQueue>(&Hash::ZERO));
                rows.insert((height, position).to_bytes(), value);
            }
        });
    };
    queue(true, 1);
    assert!(waits().0);
    queue(false, 1);
    let ((is_waiting, deleted), took) = timed(waits);
    println!("elections, the first time: {took:?}");
    assert_eq!((is_waiting, deleted >= u64::from(many)), (false, true), "this counts work");
    let (answer, took) = timed(waits);
    println!("elections, from then on: {took:?}");
    assert_eq!(answer, (false, 0));
    queue(true, 2);
    assert_eq!(waits(), (true, 0));
}
