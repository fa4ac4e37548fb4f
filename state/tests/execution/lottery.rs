//! What a share of the bonds wins in the draw of committees (docs/market.md sections 7 and 8).

use std::collections::BTreeSet;

use state::market::election::{Candidate, Lot, elect};
use types::{Address, Amount, Hash};

use crate::world::Who;

const MINERS: u8 = 100;
const CALLS: usize = 20_000;
const BOND: u64 = 100_000_000;
/// Four standard deviations of a share of [`CALLS`], at the most.
const SPREAD: f64 = 0.0142;

/// How often a group of miners with equal bonds got most of the seats, and how often at least one.
struct Shares {
    most: f64,
    some: f64,
}

/// The miners by address, with the weight of each, and whether it is full.
fn candidates(of: impl Fn(u8) -> (u64, bool)) -> Vec<Candidate> {
    let candidate = |nth| {
        let (weight, is_full) = of(nth);
        Candidate { miner: Who(nth).address(), weight: Amount::new(weight), is_full }
    };
    let mut candidates: Vec<Candidate> = (0..MINERS).map(candidate).collect();
    candidates.sort_by_key(|candidate| candidate.miner);
    candidates
}

/// Draws committees from miners, of which the first ones belong together; the others are without free
/// capacity if `is_crowded`.
fn shares(group: u8, size: usize, is_crowded: bool) -> Shares {
    let candidates = candidates(|nth| (BOND, is_crowded && nth >= group));
    let group: BTreeSet<Address> = (0..group).map(|nth| Who(nth).address()).collect();
    let (mut most, mut some) = (0_usize, 0_usize);
    for call in 0..CALLS {
        let call_id = Hash::digest(&call.to_be_bytes());
        let lot = Lot { call_id, round: 0, randomness: Hash::digest(call_id.as_bytes()) };
        let election = elect(&lot, &candidates, size);
        let seats = election.members().filter(|it| group.contains(&it.miner)).count();
        most += usize::from(seats > size / 2);
        some += usize::from(seats > 0);
    }
    let share = |count: usize| count as f64 / CALLS as f64;
    Shares { most: share(most), some: share(some) }
}

/// The chance that more than half of the seats go to a group of so many of all miners.
fn chance(group: u8, size: usize) -> f64 {
    let choose = |all: usize, some: usize| {
        (0..some).map(|it| (all - it) as f64 / (it + 1) as f64).product::<f64>()
    };
    let (all, group) = (usize::from(MINERS), usize::from(group));
    (size / 2 + 1..=size)
        .map(|seats| choose(group, seats) * choose(all - group, size - seats) / choose(all, size))
        .sum()
}

fn assert_about(seen: f64, expected: f64, what: &str) {
    assert!((seen - expected).abs() < SPREAD, "{what}: {seen}, expected {expected}");
}

#[test]
fn a_group_decides_as_many_committees_as_its_share_of_the_bonds_wins_by_lot() {
    for (group, size, documented) in [
        (10, 3, 0.028),
        (20, 3, 0.104),
        (30, 3, 0.216),
        (40, 3, 0.352),
        (50, 3, 0.5),
        (20, 7, 0.033),
        (30, 7, 0.126),
        (40, 7, 0.290),
        (30, 15, 0.050),
        (40, 15, 0.213),
    ] {
        let what = format!("{group} of {MINERS} for {size} seats");
        let seen = shares(group, size, false).most;
        assert_about(seen, chance(group, size), &what);
        // The table of docs/market.md section 7 is for very many miners.
        let distance = (seen - documented).abs();
        assert!(distance < 2.0 * SPREAD, "{what}: {seen}, documented {documented}");
    }
}

#[test]
fn a_ring_that_takes_the_others_capacity_gets_no_more_committees() {
    let (free, crowded) = (shares(30, 3, false), shares(30, 3, true));
    println!("with 30 %: {:.3}, and {:.3} with the others busy", free.most, crowded.most);
    assert_about(crowded.most, chance(30, 3), "with the others busy");
    assert!(crowded.most <= free.most, "a seat that stays empty goes to nobody else");
    assert!(crowded.some <= free.some);
}

#[test]
fn one_address_never_has_a_committee_to_itself_whatever_its_bond() {
    let whale = Who(0).address();
    let others = u64::from(MINERS - 1);
    let candidates = candidates(|nth| (if nth == 0 { BOND * others } else { BOND }, false));
    let mut drawn = 0_usize;
    for call in 0..CALLS {
        let call_id = Hash::digest(&call.to_be_bytes());
        let lot = Lot { call_id, round: 0, randomness: Hash::ZERO };
        let election = elect(&lot, &candidates, 3);
        let seats = election.members().filter(|it| it.miner == whale).count();
        assert!(seats <= 1, "call {call}");
        drawn += seats;
    }
    // Half of all bonds: seven of eight committees have it.
    assert_about(drawn as f64 / CALLS as f64, 0.877, "a whale among three");
}
