//! The published draws, and the ends of the range of one.

use std::collections::BTreeSet;

use types::{Address, Amount};

use super::*;

/// What the specification of the market gives.
const VECTORS: &str = include_str!("vectors.json");

fn candidate(miner: u16, weight: u64) -> Candidate {
    let mut address = [0; 20];
    address[..2].copy_from_slice(&miner.to_be_bytes());
    Candidate { miner: Address::new(address), weight: Amount::new(weight), is_full: false }
}

fn full(miner: u16, weight: u64) -> Candidate {
    Candidate { is_full: true, ..candidate(miner, weight) }
}

fn lot(seed: u64) -> Lot {
    let call_id = Hash::digest(&seed.to_be_bytes());
    Lot { call_id, round: 0, randomness: Hash::digest(call_id.as_bytes()) }
}

fn miners(seats: &[Candidate]) -> Vec<Address> {
    seats.iter().map(|seat| seat.miner).collect()
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(value: &serde_json::Value) -> T {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn draws_give_what_is_published() {
    let all: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
    let vectors = all["elections"].as_array().unwrap();
    assert_eq!(vectors.len(), 4);
    for vector in vectors {
        let candidates: Vec<Candidate> = vector["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| {
                let (miner, weight) = (parsed(&pair[0]), parsed(&pair[1]));
                Candidate { miner, weight, is_full: false }
            })
            .collect();
        let lot = Lot {
            call_id: parsed(&vector["callId"]),
            round: vector["round"].as_u64().unwrap().try_into().unwrap(),
            randomness: parsed(&vector["randomness"]),
        };
        let seats = vector["size"].as_u64().unwrap().try_into().unwrap();
        let election = elect(&lot, &candidates, seats);
        let expected: Vec<Address> =
            vector["members"].as_array().unwrap().iter().map(parsed).collect();
        assert_eq!(miners(&election.seats), expected, "{vector}");
        assert_eq!(election.candidates_hash, parsed(&vector["candidatesHash"]), "{vector}");
    }
}

#[test]
fn the_draw_begins_with_the_first_running_sum_that_exceeds_it() {
    let three = [candidate(1, 10), candidate(2, 0), candidate(3, 5)];
    let found = |number| find(&three, number).map(|place| miners(&three[place..=place]));
    let (first, last) = (Some(vec![three[0].miner]), Some(vec![three[2].miner]));
    assert_eq!((found(0), found(9)), (first.clone(), first));
    assert_eq!((found(10), found(14)), (last.clone(), last));
    assert_eq!(found(15), None);
}

#[test]
fn a_draw_depends_on_call_round_randomness_and_place() {
    let lot = lot(1);
    let numbers = [
        lot.number(0),
        lot.number(1),
        Lot { round: 1, ..lot }.number(0),
        Lot { call_id: Hash::ZERO, ..lot }.number(0),
        Lot { randomness: Hash::ZERO, ..lot }.number(0),
    ];
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len());
}

#[test]
fn the_hash_of_candidates_names_each_with_its_weight_and_a_mark_if_it_is_full() {
    let text = format!("{}|7|{}|8-", candidate(1, 7).miner, candidate(2, 8).miner);
    assert_eq!(candidates_hash(&[candidate(1, 7), full(2, 8)]), Hash::digest(text.as_bytes()));
    assert_eq!(candidates_hash(&[]), Hash::digest(b""));
}

#[test]
fn nobody_is_drawn_from_nobody_and_nobody_without_weight() {
    assert_eq!(elect(&lot(3), &[], 3).seats, []);
    assert_eq!(elect(&lot(3), &[candidate(1, 1)], 0).seats, []);
    let two = [candidate(1, 0), candidate(2, 9)];
    assert_eq!(elect(&lot(3), &two, 15).seats, [candidate(2, 9)]);
}

#[test]
fn weights_whose_sum_has_more_than_64_bits_are_drawn_from() {
    let heavy: Vec<Candidate> = (0..1_024).map(|miner| candidate(miner, u64::MAX)).collect();
    let election = elect(&lot(4), &heavy, 1_024);
    let seats: BTreeSet<Address> = miners(&election.seats).into_iter().collect();
    assert_eq!(seats.len(), 1_024);
}
