//! What holds for every draw of members (docs/protocol.md section 17.2).

use std::collections::BTreeSet;

use proptest::prelude::*;
use state::market::election::{Candidate, Lot, elect};
use types::{Address, Amount, Hash};

const ELECTIONS: u32 = 10_000;

fn candidate(miner: u16, weight: u64) -> Candidate {
    let mut address = [0; 20];
    address[..2].copy_from_slice(&miner.to_be_bytes());
    Candidate { miner: Address::new(address), weight: Amount::new(weight), is_full: false }
}

fn lot(seed: u64) -> Lot {
    let call_id = Hash::digest(&seed.to_be_bytes());
    Lot { call_id, round: 0, randomness: Hash::digest(call_id.as_bytes()) }
}

fn miners(seats: &[Candidate]) -> Vec<Address> {
    seats.iter().map(|seat| seat.miner).collect()
}

/// The number of a draw, as the rule says it.
fn number(lot: &Lot, draw: usize) -> u128 {
    let Lot { call_id, round, randomness } = lot;
    let hash = Hash::digest(format!("elect|{call_id}|{round}|{randomness}|{draw}").as_bytes());
    u128::from_be_bytes(*hash.as_bytes().first_chunk().unwrap())
}

/// In how many of many elections of so many seats each candidate has the last one.
fn wins(candidates: &[Candidate], seats: usize) -> Vec<u32> {
    let mut wins = vec![0; candidates.len()];
    for seed in 0..ELECTIONS {
        let election = elect(&lot(seed.into()), candidates, seats);
        let last = election.seats[seats - 1];
        wins[candidates.iter().position(|it| *it == last).unwrap()] += 1;
    }
    wins
}

/// How far counts are from the chances of many elections: the sum of `(got − expected)² / expected`.
fn chi_square(counts: &[u32], chances: &[f64]) -> f64 {
    let part = |(count, chance): (&u32, &f64)| {
        let expected = chance * f64::from(ELECTIONS);
        (f64::from(*count) - expected).powi(2) / expected
    };
    counts.iter().zip(chances).map(part).sum()
}

#[test]
fn winners_follow_weights_over_ten_thousand_elections() {
    let weights: Vec<u32> = (1..=32).map(|miner| 10_000_000 + miner * miner * 100_000).collect();
    let candidates: Vec<Candidate> =
        weights.iter().zip(0..).map(|(weight, miner)| candidate(miner, (*weight).into())).collect();
    let wins = wins(&candidates, 1);
    let sum: f64 = weights.iter().copied().map(f64::from).sum();
    let chances: Vec<f64> = weights.iter().map(|weight| f64::from(*weight) / sum).collect();
    let distance = chi_square(&wins, &chances);
    // 31 degrees of freedom: one series in a thousand is further away.
    assert!(distance < 61.1, "{distance}");
    assert!(chi_square(&wins, &[1.0 / 32.0; 32]) > 1_000.0, "a draw without weights would show");
}

#[test]
fn later_seats_follow_the_weights_of_those_who_are_left() {
    let three = [candidate(1, 50), candidate(2, 30), candidate(3, 20)];
    let (a, b, c) = (0.5, 0.3, 0.2);
    // Drawn second is whoever is drawn first of those without the first.
    let chances = [
        b * a / (1.0 - b) + c * a / (1.0 - c),
        a * b / (1.0 - a) + c * b / (1.0 - c),
        a * c / (1.0 - a) + b * c / (1.0 - b),
    ];
    let distance = chi_square(&wins(&three, 2), &chances);
    // Two degrees of freedom: one series in a thousand is further away.
    assert!(distance < 13.8, "{distance}");
}

/// The rule word by word: sums over those who are left, in order, for each draw.
fn word_by_word(lot: &Lot, candidates: &[Candidate], seats: usize) -> Vec<Candidate> {
    let mut drawn: Vec<Candidate> = Vec::new();
    for draw in 0..seats {
        let left = || candidates.iter().filter(|it| !drawn.contains(it));
        let sum: u128 = left().map(|it| u128::from(it.weight.get())).sum();
        if sum == 0 {
            break;
        }
        let number = number(lot, draw) % sum;
        let mut running = 0;
        let next = left().find(|it| {
            running += u128::from(it.weight.get());
            running > number
        });
        drawn.push(*next.unwrap());
    }
    drawn
}

fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let weight = prop_oneof![Just(0), 1..100_u64, any::<u64>()];
    prop::collection::btree_map(any::<u16>(), (weight, any::<bool>()), 0..40).prop_map(|all| {
        let of = |(miner, (weight, is_full))| Candidate { is_full, ..candidate(miner, weight) };
        all.into_iter().map(of).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_draw_is_the_rule_word_by_word(
        candidates in candidates(), seed in any::<u64>(), seats in 0..32_usize,
    ) {
        let election = elect(&lot(seed), &candidates, seats);
        prop_assert_eq!(&election.seats, &word_by_word(&lot(seed), &candidates, seats));
        let once: BTreeSet<Address> = miners(&election.seats).into_iter().collect();
        prop_assert_eq!(once.len(), election.seats.len(), "nobody has two seats");
        let weighty = candidates.iter().filter(|it| !it.weight.is_zero()).count();
        prop_assert_eq!(election.seats.len(), seats.min(weighty));
        let free: Vec<_> = candidates.iter().map(|it| Candidate { is_full: false, ..*it }).collect();
        let of_all = elect(&lot(seed), &free, seats);
        prop_assert_eq!(miners(&election.seats), miners(&of_all.seats), "who is full keeps the seat");
    }
}
