//! Parsing and static checks on several threads.

use std::num::NonZeroUsize;
use std::sync::Arc;

use fixtures::{evidence, sign_evidence};
use txpool::ports::AdmitError;
use txpool::verifier::{Rules, Verifier};
use types::sign_bytes::Domain;
use types::tx::{Evidence, NIL};
use types::{Body, CheckedTx, Code, Forks, Hash, Params, Rejection, Signature};

use crate::support::world::NOW;
use crate::support::{Wallet, World};

fn verifier(threads: usize) -> Verifier {
    let rules = Rules {
        chain_id: "test".to_owned(),
        params: Params::default(),
        forks: Forks { v6: 10, ..Forks::default() },
        genesis_hash: Hash::ZERO,
    };
    Verifier::new(rules, NonZeroUsize::new(threads).unwrap()).unwrap()
}

/// Valid texts with a few that are wrong in different ways.
fn texts(count: u64) -> Vec<Vec<u8>> {
    let (a, b) = (Wallet::new(1), Wallet::new(2));
    let text = |nonce: u64| {
        let text = a.at(nonce).transfer(&b, nonce).to_json();
        match nonce % 40 {
            7 => "{".to_owned(),
            17 => text.replace("\"amount\":\"", "\"amount\":\"1"),
            27 => text.replacen("TRANSFER", "X", 1),
            37 => a.at(nonce).turn(None).to_json(),
            _ => text,
        }
    };
    (0..count).map(|nonce| text(nonce).into_bytes()).collect()
}

fn outcome(answers: &[Result<CheckedTx, Rejection>]) -> Vec<Result<u64, Code>> {
    let outcome = |answer: &Result<CheckedTx, Rejection>| match answer {
        Ok(tx) => Ok(tx.nonce()),
        Err(rejection) => Err(rejection.code()),
    };
    answers.iter().map(outcome).collect()
}

#[test]
fn answers_are_in_order_and_the_same_for_any_number_of_threads() {
    let texts = texts(400);
    let one = outcome(&verifier(1).check(texts.clone(), 1));
    assert_eq!(400, one.len());
    assert_eq!((Ok(6), Err(Code::Malformed)), (one[6], one[7]));
    assert_eq!((Err(Code::HashMismatch), Err(Code::UnsupportedType)), (one[17], one[27]));
    assert_eq!(Err(Code::ForkNotActive), one[37]);
    assert_eq!(one, outcome(&verifier(4).check(texts, 1)));
}

#[test]
fn parsed_transactions_are_verified_like_texts() {
    let verifier = verifier(3);
    let limits = verifier.limits();
    let texts = texts(300);
    let parse = |text: &Vec<u8>| types::Transaction::parse(text, &limits).ok();
    let parsed: Vec<_> = texts.iter().filter_map(parse).collect();
    let expected: Vec<_> = outcome(&verifier.check(texts, 1))
        .into_iter()
        .filter(|o| !matches!(o, Err(Code::Malformed | Code::UnsupportedType)))
        .collect();
    assert_eq!(expected, outcome(&verifier.verify(parsed, 1)));
}

#[test]
fn nothing_in_nothing_out() {
    assert!(verifier(2).check(Vec::<String>::new(), 1).is_empty());
    assert!(verifier(2).verify(Vec::new(), 1).is_empty());
}

#[test]
fn many_callers_share_a_verifier() {
    let verifier = verifier(3);
    let texts = texts(200);
    let expected = outcome(&verifier.check(texts.clone(), 1));
    std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| outcome(&verifier.check(texts.clone(), 1)))).collect();
        for caller in callers {
            assert_eq!(expected, caller.join().unwrap());
        }
    });
}

#[test]
fn what_the_state_refuses_is_refused_before_its_signature_is_looked_at() {
    let verifier = verifier(2);
    let [rich, poor, other, late] = [1, 2, 3, 4].map(Wallet::new);
    let world = World::new(txpool::Config::default(), &[(&rich, 1_000)]);
    let included = rich.at(0).transfer(&other, 1);
    world.pending(&[&included]);
    let forged = |text: String| {
        let (front, _) = text.rsplit_once("\"signature\":\"").expect("a signature");
        format!("{front}\"signature\":\"{}\"}}", "7".repeat(128)).into_bytes()
    };
    let of = |tx: &CheckedTx| tx.to_json();
    let texts = vec![
        forged(of(&poor.at(0).transfer(&other, 1))),
        forged(of(&poor.at(5).transfer(&other, 1))),
        forged(of(&rich.at(0).transfer(&poor, 7))),
        forged(of(&rich.at(1).transfer(&poor, 5_000))),
        forged(of(&rich.at(1).transfer(&poor, 5))),
        of(&rich.at(1).transfer(&poor, 5)).into_bytes(),
        of(&rich.at(90).transfer(&poor, 5)).into_bytes(),
        of(&included).into_bytes(),
        of(&poor.at(0).transfer(&other, 2)).into_bytes(),
        of(&other.at(9).transfer(&other, 1)).into_bytes(),
        // The sender may have 2,047 more in the pool, and 64 is the window.
        forged(of(&rich.at(1 + 2_047 + 63).transfer(&other, 5))),
        forged(of(&rich.at(1 + 2_047 + 64).transfer(&late, 5))),
        // What is refused pays nobody, and money changes no nonce.
        forged(of(&late.at(0).transfer(&other, 1))),
        forged(of(&poor.at(2_048 + 64).transfer(&other, 1))),
    ];
    let pool = Arc::new(world.pool);
    let expected = vec![
        Err(Code::InsufficientBalance),
        Err(Code::NonceTooHigh),
        Err(Code::NonceTaken),
        Err(Code::InsufficientBalance),
        // What could be taken has to be signed.
        Err(Code::BadSignature),
        Ok(1),
        // Those before it may come with it.
        Ok(90),
        Ok(0),
        // The one before gives it the money.
        Ok(0),
        // It has some, waiting to be included, so it may wait too.
        Ok(9),
        Err(Code::BadSignature),
        Err(Code::NonceTooHigh),
        Err(Code::InsufficientBalance),
        Err(Code::NonceTooHigh),
    ];
    assert_eq!(expected, outcome(&verifier.check_after_glance(texts.clone(), 1, &pool)));
    let alone = outcome(&verifier.check(texts, 1));
    assert_eq!(vec![Err(Code::BadSignature); 5], alone[..5], "clients get the first rejection");
    let good = pool.submit(&[rich.at(1).transfer(&poor, 5)], NOW);
    assert!(good.iter().all(Result::is_ok), "a look takes nothing");
}

/// Evidence against a validator about block 1 of the chain of a test.
fn evidence_against(accused: &Wallet) -> Evidence {
    let domain = Domain { chain_id: "test".into(), genesis_hash: Hash::ZERO, v7_from: Some(0) };
    let values = [Hash::ZERO.to_string(), NIL.to_owned()];
    let said = evidence(accused.0.public_key(), 1, "prevote", values);
    sign_evidence(&accused.0, &domain, said)
}

#[test]
fn the_pool_need_not_look_at_the_signatures_in_evidence() {
    let (world, [a, b]) = World::v7(txpool::Config::default());
    let accused = Wallet::new(201);
    let good = evidence_against(&accused);
    let forged = Evidence { second_signature: Signature::new([0; 64]), ..good.clone() };
    let texts: Vec<String> = [&a, &b]
        .iter()
        .zip([good, forged])
        .map(|(it, body)| it.at(0).text(&Body::Evidence(body)))
        .collect();
    let pool = Arc::new(world.pool);
    for checked in
        [verifier(2).check(texts.clone(), 1), verifier(2).check_after_glance(texts, 1, &pool)]
    {
        let txs: Vec<CheckedTx> = checked.into_iter().map(Result::unwrap).collect();
        assert!(txs.iter().all(|tx| tx.is_judged()));
        let refused = pool.submit(&txs, NOW).into_iter().map(|answer| match answer {
            Err(AdmitError::Rejected(reason)) => (reason.code(), reason.field().to_owned()),
            other => unreachable!("{other:?}"),
        });
        let alone = (Code::ValidatorSetLimit, "height".to_owned());
        let unsigned = (Code::EvidenceInvalid, "secondSignature".to_owned());
        assert_eq!(vec![alone, unsigned], refused.collect::<Vec<_>>());
    }
}
