//! Parsing and static checks on several threads.

use std::num::NonZeroUsize;

use txpool::lanes::{Lane, Rules};
use types::{CheckedTx, Code, Forks, Params, Rejection};

use crate::support::Wallet;

fn lane(threads: usize) -> Lane {
    let rules = Rules {
        chain_id: "test".to_owned(),
        params: Params::default(),
        forks: Forks { v6: 10, ..Forks::default() },
    };
    Lane::new(rules, NonZeroUsize::new(threads).unwrap()).unwrap()
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
    let one = outcome(&lane(1).check(texts.clone(), 1));
    assert_eq!(400, one.len());
    assert_eq!((Ok(6), Err(Code::Malformed)), (one[6], one[7]));
    assert_eq!((Err(Code::HashMismatch), Err(Code::UnsupportedType)), (one[17], one[27]));
    assert_eq!(Err(Code::ForkNotActive), one[37]);
    assert_eq!(one, outcome(&lane(4).check(texts, 1)));
}

#[test]
fn parsed_transactions_are_verified_like_texts() {
    let lane = lane(3);
    let limits = lane.limits();
    let texts = texts(300);
    let parse = |text: &Vec<u8>| types::Transaction::parse(text, &limits).ok();
    let parsed: Vec<_> = texts.iter().filter_map(parse).collect();
    let expected: Vec<_> = outcome(&lane.check(texts, 1))
        .into_iter()
        .filter(|o| !matches!(o, Err(Code::Malformed | Code::UnsupportedType)))
        .collect();
    assert_eq!(expected, outcome(&lane.verify(parsed, 1)));
}

#[test]
fn nothing_in_nothing_out() {
    assert!(lane(2).check(Vec::<String>::new(), 1).is_empty());
    assert!(lane(2).verify(Vec::new(), 1).is_empty());
}

#[test]
fn many_callers_share_a_lane() {
    let lane = lane(3);
    let texts = texts(200);
    let expected = outcome(&lane.check(texts.clone(), 1));
    std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| outcome(&lane.check(texts.clone(), 1)))).collect();
        for caller in callers {
            assert_eq!(expected, caller.join().unwrap());
        }
    });
}
