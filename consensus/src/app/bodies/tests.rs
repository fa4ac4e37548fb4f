//! Which bodies are taken in.

use types::{Address, Keypair};

use super::*;
use crate::ValidatorSet;
use crate::parts::assembler::Limits;
use crate::sign_bytes::{self, BodyFields};

const CHAIN: &str = "chain";
const TIP: u64 = 10;

fn keys() -> Vec<Keypair> {
    (1..=4).map(|seed| Keypair::from_seed(&[seed; 32])).collect()
}

fn tip() -> Tip {
    let members = keys().into_iter().map(|key| (key.public_key(), 1));
    let validators = ValidatorSet::new(members).expect("a set");
    let next_validators = validators.clone();
    Tip { height: TIP, hash: Hash::ZERO, validators, next_validators }
}

/// The key whose turn it is.
fn on_turn(height: u64, round: u32) -> Keypair {
    let address = tip().validators.proposer(height, round).address;
    keys().into_iter().find(|key| key.address() == address).expect("a validator")
}

fn head_of(height: u64, round: u32, proposer: Address, sealed_by: &Keypair) -> Head {
    let value = Hash::new([1; 32]);
    let fields = BodyFields { height, round, proposer, value, size: 9, digest: Hash::ZERO };
    Head::new(&fields, &sealed_by.sign(&sign_bytes::body(CHAIN, &fields)))
}

fn head(height: u64, round: u32) -> Head {
    let key = on_turn(height, round);
    head_of(height, round, key.address(), &key)
}

fn wanted_in_round(round: u32, head: &Head) -> bool {
    is_wanted(&tip(), round, &Verifier::new(CHAIN.into()), head)
}

fn wanted(head: &Head) -> bool {
    wanted_in_round(0, head)
}

#[test]
fn bodies_of_the_next_two_heights_are_taken() {
    let taken = (TIP - 1..=TIP + 4).filter(|height| wanted(&head(*height, 0)));
    assert_eq!(taken.collect::<Vec<_>>(), [TIP + 1, TIP + 2]);
}

#[test]
fn bodies_of_rounds_near_by_are_taken() {
    assert!(wanted(&head(TIP + 1, ROUNDS_AHEAD)));
    assert!(!wanted(&head(TIP + 1, ROUNDS_AHEAD + 1)));
    assert!(wanted_in_round(5, &head(TIP + 1, ROUNDS_AHEAD + 5)));
    assert!(wanted_in_round(5, &head(TIP + 1, 0)), "an earlier round's block may come back");
    assert!(!wanted_in_round(5, &head(TIP + 2, ROUNDS_AHEAD + 5)));
}

#[test]
fn only_the_validator_on_turn_is_listened_to() {
    let (height, turn) = (TIP + 1, on_turn(TIP + 1, 0));
    for other in keys().into_iter().filter(|key| key.address() != turn.address()) {
        assert!(!wanted(&head_of(height, 0, other.address(), &other)));
        assert!(!wanted(&head_of(height, 0, turn.address(), &other)));
    }
    let elsewhere = Verifier::new("another chain".into());
    assert!(!is_wanted(&tip(), 0, &elsewhere, &head(height, 0)));
}

#[test]
fn each_of_the_next_two_heights_has_a_set_of_its_own() {
    let newcomer = Keypair::from_seed(&[9; 32]);
    let alone = ValidatorSet::new([(newcomer.public_key(), 1)]).expect("a set");
    let tip = Tip { next_validators: alone, ..tip() };
    let is_wanted = |head: &Head| is_wanted(&tip, 0, &Verifier::new(CHAIN.into()), head);
    assert!(is_wanted(&head(TIP + 1, 0)) && !is_wanted(&head(TIP + 2, 0)));
    let of_newcomer = |height| head_of(height, 0, newcomer.address(), &newcomer);
    assert!(!is_wanted(&of_newcomer(TIP + 1)) && is_wanted(&of_newcomer(TIP + 2)));
}

#[test]
fn a_round_has_room_for_few_bodies() {
    let limits = Limits { body_bytes_max: 9, streams_max: 1, early_chunks_max: 1 };
    let mut bodies = Bodies::new(Assembler::new(limits));
    for byte in 0..2 {
        let hash = Hash::new([byte; 32]);
        assert!(!bodies.is_crowded(3, hash));
        bodies.judged.insert((3, hash), Validity::Invalid);
    }
    assert!(bodies.is_crowded(3, Hash::new([9; 32])));
    assert!(!bodies.is_crowded(3, Hash::new([1; 32])), "known ones are answered again");
    assert!(!bodies.is_crowded(4, Hash::new([9; 32])));
}

#[test]
fn parked_bodies_wait_for_their_height_and_are_few() {
    let limits = Limits { body_bytes_max: 9, streams_max: 1, early_chunks_max: 1 };
    let mut bodies = Bodies::new(Assembler::new(limits));
    for round in 0..9 {
        for _ in 0..2 {
            bodies.park(Body { head: head(TIP + 2, round), bytes: Vec::new().into() });
        }
    }
    assert_eq!(bodies.parked.len(), PARKED_MAX);
    assert!(bodies.take(TIP + 1).is_empty());
    bodies.prune(TIP + 1);
    assert_eq!(bodies.take(TIP + 2).len(), PARKED_MAX);
    assert!(bodies.parked.is_empty());
}
