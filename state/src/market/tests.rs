//! Offers, who takes part in a draw, assignments and locks, on a state in memory.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use types::agent::ExecutorId;
use types::{Address, Amount, Bond, Event, Hash, Offer, Params, Prices};

use super::eligible::{Draw, Wanted, candidates};
use super::roster::Roster;
use super::scene::{draft, model};
use super::{assignments, offers};
use crate::bonds;
use crate::draft::Draft;
use crate::error::StorageError;
use crate::memory::Memory;
use crate::table::TableId;
use crate::tables::{Bonds, OfferCounts, Offers, OffersByExecutor};
use crate::view::{self, Range, RawRow, Read};

const LEAST: u64 = 10_000_000;
const CALL: Hash = Hash::new([7; 32]);

fn miner(number: u16) -> Address {
    let mut bytes = [0; 20];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    Address::new(bytes)
}

fn prices(per_call: u64) -> Prices {
    Prices { per_call: Amount::new(per_call), ..Prices::default() }
}

fn offer(per_call: u64, capacity: u64) -> Offer {
    Offer { capacity, prices: prices(per_call) }
}

/// A miner with a bond and an offer for each executor.
fn put(draft: &mut Draft, number: u16, bond: u64, executors: &[ExecutorId]) {
    bonds::add(draft, miner(number), Amount::new(bond)).unwrap();
    for executor in executors {
        offers::put(draft, miner(number), *executor, &offer(5, 1)).unwrap();
    }
}

fn ranking(state: &dyn Read, executor: ExecutorId, params: &Params) -> Vec<Address> {
    let counting = offers::counting(state, executor, params).unwrap();
    counting.into_iter().map(|ranked| ranked.miner).collect()
}

fn bond(draft: &Draft, number: u16) -> Bond {
    draft.get::<Bonds>(&miner(number)).unwrap().unwrap_or_default()
}

/// What a draw of a call for 5 micro is from, and whose seat would stay empty.
fn drawn_from(draft: &Draft, executors: &[ExecutorId], draw: Draw) -> Vec<(Address, bool)> {
    let (prices, excluded) = (prices(5), BTreeSet::new());
    let lock = Amount::new(100);
    names(draft, &Wanted { executors, prices: &prices, lock, excluded: &excluded, draw })
}

fn names(draft: &Draft, wanted: &Wanted<'_>) -> Vec<(Address, bool)> {
    let found = candidates(draft, &Params::default(), wanted).unwrap();
    found.into_iter().map(|it| (it.miner, it.is_full)).collect()
}

#[test]
fn the_largest_bonds_count_and_of_equal_ones_the_lower_addresses() {
    let mut draft = draft();
    for (number, bond) in [(4, 2), (3, 5), (2, 2), (1, 1)] {
        put(&mut draft, number, bond * LEAST, &[model(1)]);
    }
    put(&mut draft, 9, 9 * LEAST, &[model(2)]);
    let params = Params { offers_per_executor_max: 3, ..Params::default() };
    assert_eq!(ranking(&draft, model(1), &params), [3, 2, 4].map(miner));
    assert_eq!(ranking(&draft, model(1), &Params::default()), [3, 2, 4, 1].map(miner));
    assert_eq!(ranking(&draft, ExecutorId::Wasm, &params), []);
}

#[test]
fn an_offer_counts_from_the_least_bond_on() {
    let mut draft = draft();
    put(&mut draft, 1, LEAST, &[model(1)]);
    put(&mut draft, 2, LEAST - 1, &[model(1)]);
    put(&mut draft, 3, 0, &[model(1)]);
    assert_eq!(ranking(&draft, model(1), &Params::default()), [miner(1)]);
    bonds::add(&mut draft, miner(2), Amount::new(1)).unwrap();
    assert_eq!(ranking(&draft, model(1), &Params::default()), [1, 2].map(miner));
    bonds::take_out(&mut draft, miner(1), Amount::new(1), 9).unwrap();
    assert_eq!(ranking(&draft, model(1), &Params::default()), [miner(2)]);
    let any = Params { min_bond: Amount::ZERO, ..Params::default() };
    assert_eq!(ranking(&draft, model(1), &any), [2, 1].map(miner), "nothing is no bond");
}

#[test]
fn offers_of_one_miner_are_replaced_and_taken_back_one_by_one() {
    let mut draft = draft();
    put(&mut draft, 1, LEAST, &[model(1), model(2), ExecutorId::Wasm]);
    offers::put(&mut draft, miner(1), model(1), &offer(7, 64)).unwrap();
    let mut expected =
        vec![(ExecutorId::Wasm, offer(5, 1)), (model(1), offer(7, 64)), (model(2), offer(5, 1))];
    assert_eq!(offers::of_miner(&draft, miner(1)).unwrap(), expected);
    assert_eq!(offers::count(&draft, miner(1)).unwrap(), 3);
    let ranked = offers::counting(&draft, model(1), &Params::default()).unwrap();
    assert_eq!(ranked[0].offer, offer(7, 64), "an election reads the last one");
    for _ in 0..2 {
        offers::remove(&mut draft, miner(1), model(1)).unwrap();
    }
    expected.remove(1);
    assert_eq!(offers::of_miner(&draft, miner(1)).unwrap(), expected);
    assert_eq!(ranking(&draft, model(1), &Params::default()), []);
    for executor in [model(2), ExecutorId::Wasm] {
        offers::remove(&mut draft, miner(1), executor).unwrap();
    }
    assert_eq!(draft.get::<OfferCounts>(&miner(1)).unwrap(), None);
}

/// A state that counts the rows that it answers.
struct Counted {
    state: Arc<Memory>,
    rows: AtomicUsize,
}

impl Read for Counted {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.state.get_raw(table, key)
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        let rows = self.state.scan_raw(table, range)?;
        self.rows.fetch_add(rows.len(), Ordering::Relaxed);
        Ok(rows)
    }
}

#[test]
fn an_election_reads_no_more_rows_however_many_strangers_offer() {
    let read_with = |strangers: u16| {
        let mut draft = draft();
        for number in 0..strangers {
            put(&mut draft, number, LEAST, &[model(1), model(2)]);
        }
        let memory = Arc::new(Memory::default());
        memory.apply(&draft.into_changes());
        let counted = Counted { state: memory, rows: AtomicUsize::new(0) };
        let excluded = BTreeSet::new();
        let wanted = Wanted {
            executors: &[model(1), model(2)],
            prices: &prices(5),
            lock: Amount::new(100),
            excluded: &excluded,
            draw: Draw::First,
        };
        assert_eq!(candidates(&counted, &Params::default(), &wanted).unwrap().len(), 256);
        counted.rows.into_inner()
    };
    let rows = read_with(256);
    assert_eq!(rows, 256 * 5, "of each its offers, its assignments and its bond");
    assert_eq!(read_with(5_000), rows);
}

#[test]
fn every_executor_needs_an_offer_whose_prices_the_call_covers() {
    let mut draft = draft();
    put(&mut draft, 1, LEAST, &[model(1), model(2)]);
    put(&mut draft, 2, LEAST, &[model(1)]);
    put(&mut draft, 3, LEAST, &[model(2)]);
    put(&mut draft, 4, LEAST, &[model(1), model(2)]);
    offers::put(&mut draft, miner(4), model(2), &offer(6, 1)).unwrap();
    let free = |number| (miner(number), false);
    let found = |executors: &[ExecutorId]| drawn_from(&draft, executors, Draw::First);
    assert_eq!(found(&[model(1), model(2)]), [free(1)]);
    assert_eq!(found(&[model(2), model(1), model(2)]), [free(1)]);
    assert_eq!(found(&[model(1)]), [free(1), free(2), free(4)]);
    assert_eq!(found(&[model(1), model(3)]), []);
    assert_eq!(found(&[]), []);
}

#[test]
fn requester_and_earlier_members_are_not_drawn_from() {
    let mut draft = draft();
    for number in 1..=3 {
        put(&mut draft, number, LEAST, &[model(1)]);
    }
    let wanted = Wanted {
        executors: &[model(1)],
        prices: &prices(5),
        lock: Amount::ZERO,
        excluded: &[1, 3].map(miner).into(),
        draw: Draw::First,
    };
    assert_eq!(names(&draft, &wanted), [(miner(2), false)]);
}

#[test]
fn who_has_no_capacity_keeps_a_place_in_the_first_draw_and_takes_part_in_that_of_an_appeal() {
    let mut draft = draft();
    put(&mut draft, 1, LEAST, &[model(1), model(2)]);
    put(&mut draft, 2, LEAST, &[model(1)]);
    let full = [(miner(1), true), (miner(2), false)];
    assignments::assign(&mut draft, miner(1), &[model(1)]).unwrap();
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::First), full);
    assert_eq!(drawn_from(&draft, &[model(2)], Draw::First), [(miner(1), false)]);
    assert_eq!(drawn_from(&draft, &[model(2), model(1)], Draw::First), [(miner(1), true)]);
    let free = full.map(|(miner, _)| (miner, false));
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::Appeal), free);
    offers::put(&mut draft, miner(1), model(1), &offer(5, 2)).unwrap();
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::First), free);
    assignments::assign(&mut draft, miner(1), &[model(1)]).unwrap();
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::First), full);
    assignments::unassign(&mut draft, miner(1), &[model(1)]).unwrap();
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::First), free);
}

#[test]
fn whose_bond_would_be_locked_by_more_than_half_is_full_in_the_first_draw_alone() {
    let mut draft = draft();
    put(&mut draft, 1, LEAST, &[model(1)]);
    let lock = |draft: &mut Draft, amount| {
        bonds::lock_for_call(draft, CALL, miner(1), Amount::new(amount)).unwrap()
    };
    lock(&mut draft, LEAST / 2 - 100);
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::First), [(miner(1), false)]);
    lock(&mut draft, 1);
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::First), [(miner(1), true)]);
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::Appeal), [(miner(1), false)]);
    lock(&mut draft, LEAST / 2 + 99);
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::Appeal), [(miner(1), false)]);
}

#[test]
fn assignments_outlive_the_offer_and_are_not_taken_away_twice() {
    let mut draft = draft();
    put(&mut draft, 1, LEAST, &[model(1)]);
    let both = [model(1), ExecutorId::Wasm];
    assignments::assign(&mut draft, miner(1), &both).unwrap();
    offers::remove(&mut draft, miner(1), model(1)).unwrap();
    offers::put(&mut draft, miner(1), model(1), &offer(5, 1)).unwrap();
    assert_eq!(drawn_from(&draft, &[model(1)], Draw::First), [(miner(1), true)]);
    assignments::unassign(&mut draft, miner(1), &both).unwrap();
    assert_eq!(assignments::open(&draft, miner(1), ExecutorId::Wasm).unwrap(), 0);
    let fault = assignments::unassign(&mut draft, miner(1), &both).unwrap_err();
    assert!(matches!(fault, StorageError::Inconsistent { .. }));
}

#[test]
fn what_a_call_locks_is_given_back_but_for_what_is_burned_and_never_more() {
    let mut draft = draft();
    put(&mut draft, 1, LEAST, &[model(1)]);
    put(&mut draft, 2, LEAST - 1, &[model(1)]);
    let amount = Amount::new(1_000);
    let locked = bonds::lock_for_call(&mut draft, CALL, miner(1), amount).unwrap();
    assert_eq!(locked, Event::CallBondLocked { call_id: CALL, miner: miner(1), amount });
    assert_eq!(bond(&draft, 1), Bond { bonded: Amount::new(LEAST), locked: amount });
    let too_much = bonds::lock_for_call(&mut draft, CALL, miner(1), Amount::new(LEAST));
    assert!(too_much.is_err(), "more is locked than there is");

    let supply = crate::supply(&draft).unwrap();
    let share = (amount, Amount::new(300));
    let event = bonds::release_of_call(&mut draft, CALL, miner(1), share).unwrap();
    let (unlocked, burned) = (Amount::new(700), Amount::new(300));
    assert_eq!(event, Event::CallBondUnlocked { call_id: CALL, miner: miner(1), unlocked, burned });
    assert_eq!(bond(&draft, 1), Bond { bonded: Amount::new(LEAST - 300), locked: Amount::ZERO });
    let now = crate::supply(&draft).unwrap();
    assert_eq!(now.burned.get() - supply.burned.get(), 300);
    assert_eq!(supply.bonded.get() - now.bonded.get(), 300);
    let any = Params { min_bond: Amount::ZERO, ..Params::default() };
    assert_eq!(ranking(&draft, model(1), &any), [2, 1].map(miner), "its offers have moved");

    bonds::lock_for_call(&mut draft, CALL, miner(2), amount).unwrap();
    let event = bonds::release_of_call(&mut draft, CALL, miner(2), (amount, Amount::MAX)).unwrap();
    let (miner, unlocked) = (miner(2), Amount::ZERO);
    assert_eq!(event, Event::CallBondUnlocked { call_id: CALL, miner, unlocked, burned: amount });
}

/// What changes where offers stand.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add(u16, u64),
    TakeOut(u16, u64),
    Burn(u16, u64),
    Put(u16, u8, u64),
    Remove(u16, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (miner, executor, amount) = (0..6_u16, 0..4_u8, 0..4_u64);
    prop_oneof![
        (miner.clone(), amount.clone()).prop_map(|(it, by)| Step::Add(it, by)),
        (miner.clone(), amount.clone()).prop_map(|(it, by)| Step::TakeOut(it, by)),
        (miner.clone(), amount.clone()).prop_map(|(it, by)| Step::Burn(it, by)),
        (miner.clone(), executor.clone(), amount).prop_map(|(it, of, by)| Step::Put(it, of, by)),
        (miner, executor).prop_map(|(it, of)| Step::Remove(it, of)),
    ]
}

fn take(draft: &mut Draft, step: Step) {
    let some = Amount::new;
    match step {
        Step::Add(number, by) => bonds::add(draft, miner(number), some(by)).unwrap(),
        Step::TakeOut(number, by) => {
            let by = some(by).min(bond(draft, number).free());
            bonds::take_out(draft, miner(number), by, 9).unwrap();
        }
        Step::Burn(number, by) => {
            let by = some(by).min(bond(draft, number).free());
            if !by.is_zero() {
                bonds::lock_for_call(draft, CALL, miner(number), by).unwrap();
                bonds::release_of_call(draft, CALL, miner(number), (by, by)).unwrap();
            }
        }
        Step::Put(number, executor, price) => {
            offers::put(draft, miner(number), model(executor), &offer(price, 1)).unwrap();
        }
        Step::Remove(number, executor) => {
            offers::remove(draft, miner(number), model(executor)).unwrap();
        }
    }
}

/// All rows of a table.
fn rows<T: crate::table::Table>(state: &dyn Read) -> Vec<view::Row<T>> {
    view::scan::<T>(state, Range { from: &[], to: None, limit: usize::MAX }).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn offers_stand_where_bonds_put_them_whatever_changes_the_bonds(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut draft = draft();
        for step in steps {
            take(&mut draft, step);
        }
        let mut expected = BTreeMap::new();
        let mut counts: BTreeMap<Address, u32> = BTreeMap::new();
        for ((miner, executor), offer) in rows::<Offers>(&draft) {
            let bonded = draft.get::<Bonds>(&miner).unwrap().unwrap_or_default().bonded;
            expected.insert((executor, u64::MAX - bonded.get(), miner), offer);
            *counts.entry(miner).or_default() += 1;
        }
        let found: BTreeMap<_, _> = rows::<OffersByExecutor>(&draft).into_iter().collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(rows::<OfferCounts>(&draft).into_iter().collect::<BTreeMap<_, _>>(), counts);
    }
}

proptest! {
    #[test]
    fn elections_of_one_block_find_the_same_candidates_as_if_each_read_for_itself(
        miners in prop::collection::vec((1_u64..4, 0_u64..8, 1_u64..4, 1_u8..8), 1..12),
        elections in prop::collection::vec((0_u16..12, 1_u8..4, 4_u64..8, any::<bool>()), 1..20),
    ) {
        let (mut draft, mut roster) = (draft(), Roster::default());
        for (number, (bond, price, capacity, runs)) in (0_u16..).zip(miners) {
            let bonded = Amount::new(bond * LEAST / 2);
            bonds::add(&mut draft, miner(number), bonded).unwrap();
            for executor in (1..4).filter(|bit| runs & (1 << (bit - 1)) != 0).map(model) {
                offers::put(&mut draft, miner(number), executor, &offer(price, capacity)).unwrap();
            }
        }
        for (first, executors, price, is_first) in elections {
            let executors: Vec<ExecutorId> = (1..=executors).map(model).collect();
            let (lock, excluded) = (Amount::new(LEAST / 3), BTreeSet::from([miner(first)]));
            let draw = if is_first { Draw::First } else { Draw::Appeal };
            let prices = prices(price);
            let wanted =
                Wanted { executors: &executors, prices: &prices, lock, excluded: &excluded, draw };
            // What a call asks for may be of before a vote.
            let min_bond = Amount::new(price * LEAST / 8);
            let params = Params { min_bond, ..Params::default() };
            let read = candidates(&draft, &params, &wanted).unwrap();
            prop_assert_eq!(&roster.candidates(&draft, &params, &wanted).unwrap(), &read);
            for member in read.iter().filter(|it| !it.is_full).take(2) {
                assignments::assign(&mut draft, member.miner, &executors).unwrap();
                let free = draft.get::<Bonds>(&member.miner).unwrap().unwrap_or_default().free();
                bonds::lock(&mut draft, member.miner, lock.min(free)).unwrap();
                roster.take(member.miner, &executors, lock);
            }
        }
    }
}
