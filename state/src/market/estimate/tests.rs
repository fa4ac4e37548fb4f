//! Prices that enough miners accept, and who is counted.

use std::sync::atomic::{AtomicUsize, Ordering};

use types::call::CallLimits;
use types::{Hash, Offer, TxLocation, Usage};

use super::*;
use crate::bonds;
use crate::draft::Draft;
use crate::market::offers;
use crate::market::scene::{draft, model};
use crate::table::TableId;
use crate::view::{Range, RawRow};

const LEAST: u64 = 10_000_000;
const LIMITS: CallLimits = CallLimits {
    usage: Usage { input_tokens: 1_000_000, output_tokens: 0, fuel: 0 },
    result_bytes: 1,
};

fn miner(number: u8) -> Address {
    Address::new([number; 20])
}

fn prices(per_call: u64, prompt_per_m: u64) -> Prices {
    let [per_call, prompt_per_m] = [per_call, prompt_per_m].map(Amount::new);
    Prices { per_call, prompt_per_m, ..Prices::default() }
}

fn offers(draft: &mut Draft, number: u8, executor: ExecutorId, prices: Prices) {
    if draft.get::<Bonds>(&miner(number)).unwrap().is_none() {
        bonds::add(draft, miner(number), Amount::new(LEAST)).unwrap();
    }
    offers::put(draft, miner(number), executor, &Offer { capacity: 1, prices }).unwrap();
}

fn agent(executors: &[ExecutorId]) -> AgentVersion {
    AgentVersion {
        agent_id: Hash::ZERO,
        version: "1.0.0".to_owned(),
        previous: None,
        owner: Address::default(),
        executors: executors.iter().map(ToString::to_string).collect(),
        manifests: Vec::new(),
        selectors: Vec::new(),
        tools: Vec::new(),
        royalty: Amount::new(7),
        is_deterministic: true,
        nesting: 1,
        metadata_hash: Hash::ZERO,
        metadata_bytes: 1,
        registered_at: 0,
        tx: TxLocation { height: 1, position: 0 },
    }
}

fn wish(committee_size: u8) -> Wish {
    let consensus = Consensus::Majority;
    Wish { committee_size, consensus, is_appealable: false, limits: LIMITS }
}

fn found(draft: &Draft, executors: &[ExecutorId], wish: &Wish) -> Estimate {
    let unknown = &mut Known::default();
    estimate((draft, unknown), &Params::default(), &agent(executors), wish).unwrap()
}

#[test]
fn the_cheapest_miners_that_are_enough_with_two_to_spare_set_the_prices() {
    let mut draft = draft();
    for number in 1..=9 {
        offers(&mut draft, number, model(1), prices(100 * u64::from(number), 5));
    }
    let one = found(&draft, &[model(1)], &wish(1));
    assert_eq!((one.prices, one.needed, one.eligible), (prices(300, 5), 1, 3));
    let three = found(&draft, &[model(1)], &wish(3));
    assert_eq!((three.prices, three.needed, three.eligible), (prices(500, 5), 3, 5));
    assert_eq!((three.offering, three.full), (9, 0));
    assert_eq!(three.budget, Amount::new(505), "a million tokens at five");
    assert_eq!(three.floor, Amount::new(3 * (505 + 200) + 7));
    assert_eq!(three.lock, Params::default().unrevealed_penalty);
}

#[test]
fn an_expensive_offer_does_not_set_the_price_while_enough_work_for_less() {
    let mut draft = draft();
    offers(&mut draft, 1, model(1), prices(100, 0));
    offers(&mut draft, 2, model(1), prices(900_000_000, 0));
    let price = |draft: &Draft, committee_size| {
        found(draft, &[model(1)], &wish(committee_size)).prices.per_call.get()
    };
    assert_eq!(price(&draft, 1), 100);
    offers(&mut draft, 3, model(1), prices(400, 0));
    assert_eq!(price(&draft, 1), 400, "four times the lowest is paid for miners to spare");
    offers(&mut draft, 3, model(1), prices(401, 0));
    assert_eq!(price(&draft, 1), 100);
    assert_eq!(price(&draft, 3), 900_000_000, "three are needed");
}

#[test]
fn each_price_covers_the_offers_for_every_executor() {
    let mut draft = draft();
    for number in 1..=4 {
        offers(&mut draft, number, model(1), prices(10, 1));
        offers(&mut draft, number, model(2), prices(3, 20));
    }
    offers(&mut draft, 5, model(1), prices(1, 1));
    let both = found(&draft, &[model(1), model(2)], &wish(1));
    assert_eq!((both.prices, both.eligible, both.offering), (prices(10, 20), 4, 4));
}

#[test]
fn who_is_busy_or_has_too_little_free_is_not_counted_but_told() {
    let mut draft = draft();
    for number in 1..=5 {
        offers(&mut draft, number, model(1), prices(10, 0));
    }
    assignments::assign(&mut draft, miner(1), &[model(1)]).unwrap();
    let most = Amount::new(LEAST - 99_999);
    bonds::lock_for_call(&mut draft, Hash::ZERO, miner(2), most).unwrap();
    let some = found(&draft, &[model(1)], &wish(3));
    assert_eq!((some.eligible, some.full), (3, 2), "the lock is 100,000");
    let appealable = Wish { is_appealable: true, ..wish(1) };
    let none = found(&draft, &[model(1)], &appealable);
    assert_eq!((none.needed, none.eligible, none.full), (4, 3, 2));
    assert_eq!(none.lock, Params::default().dissent_penalty);
}

#[test]
fn a_threshold_asks_those_who_work_for_a_price_a_call_alone() {
    let mut draft = draft();
    offers(&mut draft, 1, model(1), prices(9, 0));
    offers(&mut draft, 2, model(1), prices(1, 1));
    let consensus = Consensus::Threshold(1);
    let told = found(&draft, &[model(1)], &Wish { consensus, ..wish(1) });
    assert_eq!((told.prices, told.eligible, told.offering), (prices(9, 0), 1, 1));
}

#[test]
fn prices_that_are_named_are_judged_and_nobody_is_told_of_where_nobody_offers() {
    let mut draft = draft();
    offers(&mut draft, 1, model(1), prices(10, 0));
    let judge = |prices| {
        let (params, agent) = (Params::default(), agent(&[model(1)]));
        let unknown = &mut Known::default();
        at_prices((&draft, unknown), &params, &agent, (&wish(1), &prices)).unwrap()
    };
    let judged = |per_call| judge(prices(per_call, 0)).unwrap();
    assert_eq!((judged(9).eligible, judged(10).eligible, judged(10).offering), (0, 1, 1));
    assert_eq!(judge(Prices { per_call: Amount::MAX, ..prices(0, 1) }), None);
    let nobody = found(&draft, &[ExecutorId::Wasm], &wish(3));
    assert_eq!(nobody, Estimate { needed: 3, ..Estimate::default() });
}

/// A state that counts the rows that are read of it.
struct Counting<'a>(&'a Draft, AtomicUsize);

impl Read for Counting<'_> {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.get_raw(table, key)
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        let rows = self.0.scan_raw(table, range)?;
        self.1.fetch_add(rows.len(), Ordering::Relaxed);
        Ok(rows)
    }
}

#[test]
fn what_is_known_is_not_read_again() {
    let mut draft = draft();
    for number in 1..=4 {
        offers(&mut draft, number, model(1), prices(10, 1));
        offers(&mut draft, number, model(2), prices(3, 20));
    }
    let (counting, mut known) = (Counting(&draft, AtomicUsize::new(0)), Known::default());
    let mut ask = |executors: &[ExecutorId]| {
        let before = counting.1.load(Ordering::Relaxed);
        let state: (&dyn Read, _) = (&counting, &mut known);
        let told = estimate(state, &Params::default(), &agent(executors), &wish(1)).unwrap();
        (told, counting.1.load(Ordering::Relaxed) - before)
    };
    let (one, both) = ([model(1)], [model(1), model(2)]);
    // Of each of the four miners its offer and its assignments, and once its bond.
    assert_eq!((found(&draft, &one, &wish(1)), 12), ask(&one));
    assert_eq!((found(&draft, &one, &wish(1)), 0), ask(&one));
    assert_eq!((found(&draft, &both, &wish(1)), 8), ask(&both));
    assert_eq!((found(&draft, &both, &wish(1)), 0), ask(&both));
}
