//! Words, thresholds, conditions, and the golden bytes of what the state stores.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::codec::{decode, encode};
use crate::testing::{assert_bytes, number, numbers};
use crate::{Address, Amount, Hash, Prices, TxLocation, Usage};

const AT: TxLocation = TxLocation { height: 1, position: 2 };

fn answer(outcome: Outcome) -> Answer {
    let usage = Usage { input_tokens: 3, output_tokens: 4, fuel: 5 };
    Answer { outcome, result_hash: Hash::new([6; 32]), usage, receipt_hash: Hash::new([7; 32]) }
}

#[test]
fn words_are_read_as_they_are_written() {
    for status in CallStatus::ALL {
        assert_eq!(CallStatus::parse(status.as_str()), Some(status));
    }
    for word in Outcome::WORDS {
        assert_eq!(Outcome::parse(word).map(Outcome::as_str), Some(*word));
    }
    assert_eq!(Outcome::parse("Success"), None);
    let written = [Consensus::Majority, Consensus::Threshold(1)].map(Consensus::as_str);
    assert_eq!(written, Consensus::WORDS);
}

#[test]
fn a_majority_is_more_than_half() {
    let needed = [1, 3, 5, 15, 30, 31].map(|size| Consensus::Majority.needed(size));
    assert_eq!(needed, [1, 2, 3, 8, 16, 16]);
    assert_eq!(Consensus::Threshold(2).needed(15), 2);
}

#[test]
fn a_condition_is_a_word_or_a_hash() {
    let hash = Hash::new([0xab; 32]);
    for when in [When::Success, When::Result(hash)] {
        assert_eq!(When::parse(&when.to_string()), Some(when));
    }
    let others = [
        "",
        "Success",
        "failure",
        "result:",
        "result:ab",
        &format!("result:{}", "AB".repeat(32)),
        &format!("Result:{hash}"),
    ];
    for other in others {
        assert_eq!(When::parse(other), None, "{other}");
    }
}

#[test]
fn a_condition_is_met_by_a_success_of_the_majority() {
    let group = |outcome| Group::Same(answer(outcome));
    let [same, other] = [6, 8].map(|byte| When::Result(Hash::new([byte; 32])));
    assert!(When::Success.fires(&group(Outcome::Success)));
    assert!(same.fires(&group(Outcome::Success)));
    assert!(!other.fires(&group(Outcome::Success)));
    assert!(!same.fires(&group(Outcome::Failure)));
    assert!(!When::Success.fires(&group(Outcome::Failure)));
    assert!(!When::Success.fires(&Group::Of(Outcome::Success)));
}

#[test]
fn the_members_digest_depends_on_each_member_and_on_their_order() {
    let member = |seat| CallMember {
        round: 0,
        seat,
        bond: Amount::new(1),
        lock: Amount::new(2),
        commitment: None,
        reveal: None,
        paid: Amount::ZERO,
        penalty: Amount::ZERO,
    };
    let [one, two] = [1, 2].map(|byte| Address::new([byte; 20]));
    let (first, second) = (member(0), member(1));
    let digest = members_digest([(&one, &first), (&two, &second)]);
    assert_ne!(digest, members_digest([(&two, &second), (&one, &first)]));
    assert_ne!(digest, members_digest([(&one, &first)]));
    assert_ne!(digest, members_digest([(&two, &first), (&one, &second)]), "whose records they are");
    let changed = CallMember { penalty: Amount::new(1), ..second };
    assert_ne!(digest, members_digest([(&one, &first), (&two, &changed)]));
    assert_eq!(members_digest([]), Hash::digest(b""));
}

/// Asserts the SHA-256 of a record's bytes, and that they are read again.
fn assert_digest<T>(record: &T, length: usize, digest: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let bytes = encode(record);
    let hash = Hash::digest(&bytes).to_string();
    assert_eq!((bytes.len(), hash.as_str()), (length, digest), "{}", const_hex::encode(&bytes));
    assert_eq!(&decode::<T>(&bytes).unwrap(), record);
}

fn amounts<const N: usize>(first: u64) -> [Amount; N] {
    let mut next = first;
    [(); N].map(|()| {
        next += 1;
        Amount::new(next)
    })
}

fn round() -> CallRound {
    CallRound {
        size: 3,
        members: 2,
        committed: 2,
        revealed: 1,
        elected_in: 18,
        elected_at: 19,
        candidates_hash: Hash::new([20; 32]),
        decided_at: Some(21),
        group: Some(Group::Same(answer(Outcome::Failure))),
        agreeing: 2,
    }
}

fn call() -> Call {
    let address = |byte| Address::new([byte; 20]);
    let [per_call, prompt_per_m, completion_per_m, fuel_per_g] = amounts(10);
    let [
        budget,
        royalty,
        min_bond,
        dissent_penalty,
        absence_penalty,
        unrevealed_penalty,
        outside_penalty,
        reveal_fee,
    ] = amounts(20);
    let [wages, paid, conditional, refund, back, burned, penalties, bond_behind] = amounts(40);
    let [payment, deposit, amount, max_fee] = amounts(60);
    Call {
        call_id: Hash::new([1; 32]),
        agent_id: Hash::new([2; 32]),
        agent_version: "1.2.3".to_owned(),
        owner: address(3),
        requester: address(4),
        request: AT,
        created_at: 5,
        payload_hash: Hash::new([6; 32]),
        conversation_id: Some(Hash::new([7; 32])),
        consensus: Consensus::Threshold(2),
        committee_size: 3,
        is_appealable: true,
        prices: Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g },
        limits: CallLimits {
            usage: Usage { input_tokens: 8, output_tokens: 9, fuel: 10 },
            result_bytes: 11,
        },
        max_fee,
        timeout_ms: 12,
        on_result: vec![Conditional { when: When::Result(Hash::ZERO), to: address(13), amount }],
        terms: CallTerms {
            budget,
            royalty,
            min_bond,
            dissent_penalty,
            absence_penalty,
            unrevealed_penalty,
            outside_penalty,
            reveal_fee,
            reveal_ms: 14,
            appeal_ms: 15,
        },
        status: CallStatus::Success,
        deadline: Some(CallDeadline { at: 16, height: 17 }),
        rounds: vec![round()],
        appeal: Some(Appeal { appellant: address(22), tx: AT, size: 7, payment, deposit }),
        bill: Some(Bill {
            wages,
            royalty: paid,
            conditional,
            refund,
            appellant: back,
            burned,
            penalties,
            agreeing: 5,
            bond_behind,
        }),
        members_digest: Hash::new([23; 32]),
    }
}

#[test]
fn calls_have_these_bytes() {
    let digest = "c06d310bd3d9a63b4f1410ae9023022a0e6c53611f4014d753548f55e67876c3";
    assert_digest(&call(), 777, digest);
    let open = Call {
        conversation_id: None,
        on_result: Vec::new(),
        deadline: None,
        rounds: Vec::new(),
        appeal: None,
        bill: None,
        ..call()
    };
    assert_eq!(decode::<Call>(&encode(&open)).unwrap(), open);
}

#[test]
fn members_have_these_bytes() {
    let member = CallMember {
        round: 1,
        seat: 2,
        bond: Amount::new(3),
        lock: Amount::new(4),
        commitment: Some(Commitment { hash: Hash::new([5; 32]), tx: AT }),
        reveal: Some(Reveal { answer: answer(Outcome::Unable), tx: AT }),
        paid: Amount::new(6),
        penalty: Amount::new(7),
    };
    let digest = "453dc577f4ee081f29ab795bc580996c5b2076f1f0d060eabee1c26611c67685";
    assert_digest(&member, 184, digest);
    let silent = CallMember { commitment: None, reveal: None, ..member };
    assert_eq!(decode::<CallMember>(&encode(&silent)).unwrap(), silent);
}

#[test]
fn each_change_of_a_call_has_the_bytes_that_databases_hold() {
    let (who, agent) = (Address::new([0xa2; 20]), Hash::new([0xb7; 32]));
    let address = "a2".repeat(20);
    let bill = Bill {
        wages: Amount::new(1),
        royalty: Amount::new(2),
        conditional: Amount::new(3),
        refund: Amount::new(4),
        appellant: Amount::new(5),
        burned: Amount::new(6),
        penalties: Amount::new(7),
        agreeing: 8,
        bond_behind: Amount::new(9),
    };
    let changes = [
        (
            CallChange::Requested { requester: who, agent_id: agent, escrow: Amount::new(1) },
            format!("{address} {} {}", "b7".repeat(32), number(1)),
        ),
        (
            CallChange::Elected { round: 1, members: vec![who, who], until: 3 },
            format!("01 {} {address} {address} {}", number(2), number(3)),
        ),
        (
            CallChange::Unassigned { requester: who, refund: Amount::new(1) },
            format!("{address} {}", number(1)),
        ),
        (CallChange::Committed { round: 1, member: who }, format!("01 {address}")),
        (CallChange::Revealing { until: 3 }, number(3)),
        (
            CallChange::Revealed { round: 1, member: who, answer: answer(Outcome::Failure) },
            format!(
                "01 {address} 01000000 {} {} {}",
                "06".repeat(32),
                numbers([3, 4, 5]),
                "07".repeat(32)
            ),
        ),
        (
            CallChange::Decided { round: 1, status: CallStatus::TimedOut, agreeing: 2 },
            "01 05000000 02".to_owned(),
        ),
        (
            CallChange::Appealed {
                appellant: who,
                size: 7,
                payment: Amount::new(1),
                deposit: Amount::new(2),
            },
            format!("{address} 07 {}", numbers([1, 2])),
        ),
        (
            CallChange::Settled { requester: who, status: CallStatus::Success, bill },
            format!("{address} 03000000 {} 08 {}", numbers([1, 2, 3, 4, 5, 6, 7]), number(9)),
        ),
        (
            CallChange::AppealFailed {
                appellant: who,
                status: CallStatus::Failed,
                returned: Amount::new(1),
                until: 2,
            },
            format!("{address} 04000000 {}", numbers([1, 2])),
        ),
    ];
    for (variant, (change, fields)) in (0_u8..).zip(changes) {
        assert_bytes(&change, &format!("{variant:02x}000000 {fields}"));
    }
    assert!(decode::<CallChange>(&[10, 0, 0, 0]).is_err());
}
