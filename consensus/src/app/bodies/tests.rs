//! Which bodies are taken in.

use types::sign_bytes::BodyFields;
use types::{Address, Keypair};

use super::*;
use crate::testing::{CHAIN, TIP, domain, key, keys, on_turn, set_of, tip, verifier};

fn head_of(height: u64, round: u32, proposer: Address, sealed_by: &Keypair) -> Head {
    let value = Hash::new([1; 32]);
    let fields = BodyFields { height, round, proposer, value, size: 9, digest: Hash::ZERO };
    Head::new(&fields, Form::Whole, &sealed_by.sign(&domain(CHAIN).body(&fields)))
}

fn head(height: u64, round: u32) -> Head {
    let key = on_turn(height, round);
    head_of(height, round, key.address(), &key)
}

fn wanted_in_round(round: u32, head: &Head) -> bool {
    is_wanted(&tip(), round, &verifier(domain(CHAIN)), head)
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
    let elsewhere = verifier(domain("another chain"));
    assert!(!is_wanted(&tip(), 0, &elsewhere, &head(height, 0)));
}

#[test]
fn each_of_the_next_two_heights_has_a_set_of_its_own() {
    let newcomer = key(9);
    let tip = Tip { next_validators: set_of([9]), ..tip() };
    let is_wanted = |head: &Head| is_wanted(&tip, 0, &verifier(domain(CHAIN)), head);
    assert!(is_wanted(&head(TIP + 1, 0)) && !is_wanted(&head(TIP + 2, 0)));
    let of_newcomer = |height| head_of(height, 0, newcomer.address(), &newcomer);
    assert!(!is_wanted(&of_newcomer(TIP + 1)) && is_wanted(&of_newcomer(TIP + 2)));
}

const LIMITS: Limits = Limits {
    body_bytes_max: 9,
    per_proposer_max: 1,
    light_per_proposer_max: 1,
    early_streams_max: 1,
    per_publisher_max: 1,
    early_chunks_max: 1,
};

#[test]
fn rubbish_behind_a_copied_head_takes_no_room_from_what_its_proposer_sends() {
    let mut bodies = Bodies::new(Assembler::new(LIMITS, ValidatorNodes::default()));
    let whole = Body { head: head(TIP + 2, 0), bytes: Vec::new().into() };
    let fields = whole.head.fields();
    for byte in 0..9 {
        let head = Head::new(&fields, Form::CompactBlock(1), &whole.head.seal());
        bodies.park(Body { head, bytes: vec![byte].into() });
        assert_eq!(bodies.parked.len(), 1);
    }
    let turn = on_turn(TIP + 2, 0).address();
    let round = (1..).find(|round| on_turn(TIP + 1, *round).address() == turn).expect("its turn");
    let other = Body { head: head(TIP + 1, round), bytes: Vec::new().into() };
    bodies.park(other.clone());
    bodies.park(whole.clone());
    let rubbish = Head::new(&fields, Form::CompactBlock(1), &whole.head.seal());
    bodies.park(Body { head: rubbish, bytes: vec![9].into() });
    assert_eq!((bodies.take(TIP + 2), bodies.take(TIP + 1)), (vec![whole], vec![other]));
}

#[test]
fn parked_bodies_wait_for_their_height_and_are_few_of_each_proposer() {
    let mut bodies = Bodies::new(Assembler::new(LIMITS, ValidatorNodes::default()));
    let parked = |bodies: &Bodies, round| {
        let proposer = on_turn(TIP + 2, round).address();
        let all = bodies.parked.iter().map(|body| body.head.fields().proposer);
        all.filter(|other| *other == proposer).count()
    };
    let liar = on_turn(TIP + 2, 0);
    for size in 0..9 {
        let (height, round, proposer) = (TIP + 2, 0, liar.address());
        let value = Hash::new([size; 32]);
        let size = u32::from(size);
        let fields = BodyFields { height, round, proposer, value, size, digest: Hash::ZERO };
        let head = Head::new(&fields, Form::Whole, &liar.sign(&domain(CHAIN).body(&fields)));
        bodies.park(Body { head, bytes: Vec::new().into() });
    }
    assert_eq!(parked(&bodies, 0), PARKED_PER_PROPOSER_MAX);
    for round in 1..4 {
        for _ in 0..2 {
            bodies.park(Body { head: head(TIP + 2, round), bytes: Vec::new().into() });
        }
        assert_eq!(parked(&bodies, round), 1, "the others have room, and the same is kept once");
    }
    assert!(bodies.has_parked(TIP + 2) && !bodies.has_parked(TIP + 1));
    assert!(bodies.take(TIP + 1).is_empty());
    bodies.prune(TIP + 1);
    assert_eq!(bodies.take(TIP + 2).len(), PARKED_PER_PROPOSER_MAX + 3);
    assert!(bodies.parked.is_empty());
}
