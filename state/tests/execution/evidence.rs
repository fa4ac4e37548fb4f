//! Evidence: what is refused, and what becomes of a key that signed two things.

use state::tables::ConsensusKeys;
use state::validators;
use types::sign_bytes::Domain;
use types::tx::Evidence;
use types::{Body, Event, Forks, KeyStanding, Params, PublicKey, Signature};

use crate::world::{
    ALICE, BOB, MINER, OTHER_MINER, STRANGER, Swept, V7, Who, World, answer, evidence, evidence_of,
    genesis_hash, signed_by, signed_in, vote,
};

const FOUR: [Who; 4] = [ALICE, BOB, MINER, OTHER_MINER];
/// Those of them that can vote MINER out.
const OTHERS: [Who; 3] = [ALICE, BOB, OTHER_MINER];

/// A chain with the rules of v7, decided by these, each with the power 10.
fn world_of(validators: &[Who]) -> World {
    world_with(Params::default(), V7, validators)
}

fn world_with(params: Params, forks: Forks, validators: &[Who]) -> World {
    let validators: Vec<(Who, u64)> = validators.iter().map(|who| (*who, 10)).collect();
    World::with_forks(params, forks, &validators)
}

fn against(accused: Who) -> Body {
    Body::Evidence(evidence(accused, 1))
}

fn keys(set: &[types::SetMember]) -> Vec<PublicKey> {
    let mut keys: Vec<_> = set.iter().map(|member| member.public_key).collect();
    keys.sort();
    keys
}

fn sorted(who: &[Who]) -> Vec<PublicKey> {
    let mut keys: Vec<_> = who.iter().map(|who| who.public_key()).collect();
    keys.sort();
    keys
}

/// Whether the committed state takes a transaction.
fn is_taken(world: &World, who: Who, body: &Body) -> bool {
    state::check(&world.next_tx(who, body), &*world.base(), &world.context()).is_ok()
}

fn lost(who: Who, height: u64) -> Event {
    Event::ValidatorChanged { public_key: who.public_key(), power: 0, height }
}

/// What the chain remembers of a key.
fn standing(world: &World, who: Who) -> Option<KeyStanding> {
    world.state().get::<ConsensusKeys>(&who.public_key()).unwrap()
}

/// Good evidence whose second signature was spoilt.
fn spoilt(accused: Who) -> Body {
    let second_signature = Signature::new([0; 64]);
    Body::Evidence(Evidence { second_signature, ..evidence(accused, 1) })
}

/// The code with which evidence is refused that `change` has made of good one.
fn code_of(world: &World, change: &dyn Fn(&mut Evidence)) -> &'static str {
    let mut evidence = evidence(MINER, 1);
    change(&mut evidence);
    world.code(ALICE, &Body::Evidence(evidence))
}

#[test]
fn a_key_that_signed_two_things_in_block_1_has_no_power_from_block_3_on() {
    let mut world = world_of(&FOUR);
    world.must(ALICE, &against(MINER));
    let executed = world.next_block();
    let taken = Event::EvidenceTaken { public_key: MINER.public_key(), height: 1 };
    assert_eq!(executed.events.of_transaction(0), Some(&taken));
    assert_eq!(executed.swept(), [lost(MINER, 3)]);
    let now = world.sets();
    assert_eq!(keys(&now.current), sorted(&FOUR));
    assert_eq!(keys(now.next.as_deref().unwrap()), sorted(&OTHERS));
    world.next_block();
    assert_eq!(keys(&world.sets().current), sorted(&OTHERS));
    assert!(validators::is_punished(&*world.base(), &MINER.public_key()).unwrap());
}

#[test]
fn a_punished_key_never_has_power_again() {
    let mut world = world_of(&FOUR);
    world.must(ALICE, &against(MINER));
    // In the same block and ever after.
    for block in 0..4 {
        assert_eq!(world.refused(BOB, &vote(MINER, 5)), "ACCEPTANCE_INVALID");
        // Nobody votes on its leaving either, while it has not left.
        let code = if block == 0 { "ACCEPTANCE_INVALID" } else { "VALIDATOR_UNCHANGED" };
        assert_eq!(world.refused(BOB, &vote(MINER, 0)), code);
        world.next_block();
    }
    let refused = world.rejection(BOB, 0, &vote(MINER, 10));
    let place = (refused.code().as_str(), refused.field());
    assert_eq!(place, ("ACCEPTANCE_INVALID", "candidateKey"));
}

#[test]
fn open_votes_for_a_punished_key_are_deleted_and_count_no_more() {
    let mut world = world_of(&FOUR);
    world.all(&[ALICE, BOB], &vote(MINER, 20));
    world.all(&[ALICE, BOB], &vote(Who(9), 20));
    world.next_block();
    // The third vote comes in the block with the evidence, before it.
    world.must(OTHER_MINER, &vote(MINER, 20));
    world.must(STRANGER, &against(MINER));
    assert_eq!(world.next_block().swept(), [lost(MINER, 4)]);
    let open = validators::votes(&*world.base()).unwrap();
    assert_eq!(open.len(), 2);
    assert!(open.iter().all(|((_, candidate), _)| *candidate == Who(9).public_key()));
}

#[test]
fn whoever_proves_it_needs_no_money_and_keeps_its_free_vote() {
    let mut world = world_of(&FOUR);
    world.must(STRANGER, &against(MINER));
    assert_eq!((world.balance(STRANGER), world.account(STRANGER).nonce), (0, 1));
    let before = world.balance(ALICE);
    world.must(ALICE, &against(BOB));
    world.must(ALICE, &vote(Who(9), 1));
    assert_eq!(world.balance(ALICE), before);
    let burned = world.next_block().events.fees().unwrap().burned;
    assert!(burned.is_zero(), "{burned}");
}

#[test]
fn every_kind_of_message_can_be_signed_twice() {
    for (kind, values) in [
        ("proposal", [Some(1), Some(2)]),
        ("prevote", [Some(1), None]),
        ("precommit", [None, Some(2)]),
    ] {
        let mut world = world_of(&FOUR);
        world.must(ALICE, &Body::Evidence(evidence_of(MINER, 1, kind, values)));
    }
    let mut world = world_of(&FOUR);
    let proposed = evidence_of(MINER, 1, "proposal", [Some(1), Some(2)]);
    let in_rounds = Evidence { round: 3, first_valid_round: Some(2), ..proposed };
    world.must(ALICE, &Body::Evidence(signed_by(MINER, in_rounds)));
}

#[test]
fn what_proves_nothing_is_refused() {
    let world = world_of(&FOUR);
    let nothing = Signature::new([0; 64]);
    let cases: [(&str, &dyn Fn(&mut Evidence)); 10] = [
        ("the first signature is of nobody", &|it| it.first_signature = nothing),
        ("the second signature is of nobody", &|it| it.second_signature = nothing),
        ("they are of another height", &|it| it.height = 2),
        ("they are of another round", &|it| it.round = 1),
        ("they are of another kind", &|it| it.kind = "precommit".to_owned()),
        ("another key signed them", &|it| it.validator_key = BOB.public_key()),
        ("the key is of no validator", &|it| {
            it.validator_key = STRANGER.public_key();
            *it = signed_by(STRANGER, it.clone());
        }),
        ("both say the same", &|it| {
            *it = signed_by(MINER, evidence_of(MINER, 1, "prevote", [Some(1), Some(1)]));
        }),
        ("only the valid rounds differ", &|it| {
            let same = evidence_of(MINER, 1, "proposal", [Some(1), Some(1)]);
            *it = signed_by(MINER, Evidence { round: 2, first_valid_round: Some(1), ..same });
        }),
        ("a valid round was not signed", &|it| {
            *it = evidence_of(MINER, 1, "proposal", [Some(1), Some(2)]);
            it.second_valid_round = Some(0);
        }),
    ];
    for (what, change) in cases {
        assert_eq!(code_of(&world, change), "EVIDENCE_INVALID", "{what}");
    }
    let refused = world.rejection(ALICE, 0, &spoilt(MINER));
    let expected = "the signature of validatorKey over its prevote of height 1 and round 0";
    assert_eq!((refused.field(), refused.expected()), ("secondSignature", expected));
}

#[test]
fn what_is_no_message_at_all_is_refused_without_the_state() {
    let world = world_of(&FOUR);
    let cases: [(&str, fn(&mut Evidence)); 7] = [
        ("firstValue", |it| it.first_value = "nil".to_owned()),
        ("secondValue", |it| it.second_value = "NIL".to_owned()),
        ("secondValue", |it| it.second_value = "AB".repeat(32)),
        ("kind", |it| it.kind = "body".to_owned()),
        ("height", |it| it.height = 0),
        ("round", |it| it.round = 1 << 32),
        ("secondValidRound", |it| {
            it.kind = "prevote".to_owned();
            it.second_valid_round = Some(0);
        }),
    ];
    for (field, change) in cases {
        let mut evidence = evidence_of(MINER, 1, "proposal", [Some(1), Some(2)]);
        change(&mut evidence);
        let refused = world.tx(ALICE, 0, &Body::Evidence(evidence)).unwrap_err();
        assert_eq!((refused.code().as_str(), refused.field()), ("INVALID_FIELD", field));
    }
}

#[test]
fn the_same_key_is_punished_once() {
    let mut world = world_of(&FOUR);
    world.must(ALICE, &against(MINER));
    let other = Body::Evidence(evidence_of(MINER, 1, "precommit", [Some(1), None]));
    for _ in 0..3 {
        for body in [against(MINER), other.clone()] {
            assert_eq!(world.refused(BOB, &body), "EVIDENCE_INVALID");
        }
        world.next_block();
    }
}

#[test]
fn a_key_that_has_left_is_punished_when_it_comes_back() {
    let mut world = world_of(&FOUR);
    world.all(&OTHERS, &vote(MINER, 0));
    world.next_block();
    // It still decides the next height.
    assert!(is_taken(&world, ALICE, &against(MINER)));
    world.next_block();
    assert_eq!(world.code(ALICE, &against(MINER)), "EVIDENCE_INVALID");
    world.all(&OTHERS, &vote(MINER, 3));
    world.next_block();
    world.must(ALICE, &against(MINER));
}

#[test]
fn evidence_is_of_v7_and_not_too_old() {
    let params = Params { evidence_age_blocks: 3, ..Params::default() };
    let mut world = world_with(params, Forks { v7: Some(2), ..V7 }, &FOUR);
    assert_eq!(world.code(ALICE, &against(MINER)), "FORK_NOT_ACTIVE");
    world.next_block();
    assert_eq!(world.code(ALICE, &against(MINER)), "EVIDENCE_INVALID");
    let of_2 = Body::Evidence(evidence(MINER, 2));
    for _ in 2..=5 {
        assert!(is_taken(&world, ALICE, &of_2));
        world.next_block();
    }
    let refused = world.rejection(ALICE, 0, &of_2);
    assert_eq!((refused.code().as_str(), refused.expected()), ("EVIDENCE_INVALID", "at least 3"));
}

#[test]
fn what_was_signed_before_v7_proves_nothing_though_the_signatures_are_good() {
    let mut world = world_with(Params::default(), Forks { v7: Some(2), ..V7 }, &FOUR);
    world.next_block();
    // The signatures of then do not name the genesis file: they may be those of another chain.
    let domain = Domain { chain_id: "test".into(), genesis_hash: genesis_hash(), v7_from: Some(2) };
    let early = Body::Evidence(signed_in(&domain, MINER, evidence(MINER, 1)));
    let refused = world.rejection(ALICE, 0, &early);
    assert_eq!((refused.field(), refused.expected()), ("height", "at least 2"));
    world.must(ALICE, &Body::Evidence(signed_in(&domain, MINER, evidence(MINER, 2))));
}

#[test]
fn signatures_are_looked_at_before_who_would_be_left() {
    let alone = world_of(&[MINER]);
    assert_eq!(alone.code(ALICE, &spoilt(MINER)), "EVIDENCE_INVALID");
    let mut two = world_of(&[MINER, BOB]);
    two.must(ALICE, &against(BOB));
    let refused = two.send(ALICE, &spoilt(MINER)).unwrap_err();
    assert_eq!((refused.code().as_str(), refused.field()), ("EVIDENCE_INVALID", "secondSignature"));
}

#[test]
fn somebody_always_stays() {
    let alone = world_of(&[MINER]);
    assert_eq!(alone.code(ALICE, &against(MINER)), "VALIDATOR_SET_LIMIT");
    let mut two = world_of(&[MINER, BOB]);
    two.must(ALICE, &against(MINER));
    // In the same block, and while the punished one still decides.
    assert_eq!(two.refused(ALICE, &against(BOB)), "VALIDATOR_SET_LIMIT");
    two.next_block();
    assert_eq!(two.code(ALICE, &against(BOB)), "VALIDATOR_SET_LIMIT");
}

#[test]
fn whoever_leaves_with_the_next_block_is_nobody_beside_whom_a_key_can_be_punished() {
    let mut world = world_of(&[MINER, BOB]);
    world.all(&[MINER, BOB], &vote(BOB, 0));
    world.next_block();
    // Both decide this block, and MINER alone the one after the next.
    let refused = world.rejection(ALICE, 0, &against(MINER));
    assert_eq!((refused.code().as_str(), refused.field()), ("VALIDATOR_SET_LIMIT", "validatorKey"));
    world.must(ALICE, &against(BOB));
    assert_eq!(world.next_block().swept(), [], "it has left already");
    let punished = KeyStanding { alone_until: None, punished_at: Some(2) };
    assert_eq!(standing(&world, BOB), Some(punished));
}

#[test]
fn votes_to_take_a_punished_key_back_are_deleted_though_it_had_left_already() {
    let mut world = world_of(&FOUR);
    world.all(&OTHERS, &vote(MINER, 0));
    world.next_block();
    world.all(&[ALICE, BOB], &vote(MINER, 7));
    world.must(STRANGER, &against(MINER));
    world.next_block();
    assert_eq!(validators::votes(&*world.base()).unwrap(), []);
}

#[test]
fn a_vote_that_would_remove_the_last_one_is_passed_over() {
    let mut world = world_of(&[MINER, BOB]);
    world.all(&[MINER, BOB], &vote(BOB, 0));
    world.must(ALICE, &against(MINER));
    assert_eq!(world.next_block().swept(), [lost(MINER, 3)]);
    world.next_block();
    assert_eq!(keys(&world.sets().current), sorted(&[BOB]));
}

#[test]
fn what_a_validator_signed_while_it_decided_alone_proves_nothing() {
    let mut world = world_of(&[MINER]);
    world.must(MINER, &vote(BOB, 10));
    world.next_block();
    // Block 2 is the last one that it decides alone, though somebody else is to come.
    assert_eq!(world.code(ALICE, &against(MINER)), "VALIDATOR_SET_LIMIT");
    let activated = Event::ValidatorSetActivated { height: 3 };
    assert!(world.next_block().events.end.contains(&activated));
    let alone = KeyStanding { alone_until: Some(2), punished_at: None };
    assert_eq!(standing(&world, MINER), Some(alone));
    for height in [1, 2] {
        let body = Body::Evidence(evidence(MINER, height));
        assert_eq!(world.code(ALICE, &body), "VALIDATOR_SET_LIMIT", "{height}");
    }
    assert!(is_taken(&world, ALICE, &Body::Evidence(evidence(BOB, 1))));
    world.must(ALICE, &Body::Evidence(evidence(MINER, 3)));
    world.next_block();
    let both = KeyStanding { alone_until: Some(2), punished_at: Some(3) };
    assert_eq!(standing(&world, MINER), Some(both));
}

#[test]
fn before_v7_nothing_is_noted_of_a_validator_that_decided_alone() {
    let mut world = world_with(Params::default(), Forks { v7: None, ..V7 }, &[MINER]);
    world.must(MINER, &vote(BOB, 10));
    world.next_blocks(3);
    assert_eq!(keys(&world.sets().current), sorted(&[MINER, BOB]));
    assert_eq!(standing(&world, MINER), None);
}

#[test]
fn what_validators_signed_beside_each_other_counts_after_others_have_come() {
    let mut world = world_of(&FOUR);
    world.all(&[ALICE, BOB, MINER], &vote(Who(9), 10));
    world.next_blocks(2);
    for who in FOUR {
        assert!(is_taken(&world, STRANGER, &against(who)), "{who:?}");
        assert_eq!(standing(&world, who), None, "{who:?}");
    }
}

#[test]
fn a_pool_keeps_one_of_two_and_none_once_a_block_has_one() {
    let mut world = world_of(&FOUR);
    let mut pending = world.pool();
    let [first, second] = [ALICE, BOB].map(|who| world.tx(who, 0, &against(MINER)).unwrap());
    pending.admit(&first).unwrap();
    assert_eq!(answer(pending.admit(&second)), "EVIDENCE_INVALID");
    world.push(&first).unwrap();
    assert_eq!(answer(world.builder().push(&second)), "EVIDENCE_INVALID");
    let executed = world.next_block();
    // What waits is checked again.
    assert!(!world.tell(&mut pending, &executed.block.transactions, &executed));
    assert_eq!(answer(pending.check(&second)), "EVIDENCE_INVALID");
}
