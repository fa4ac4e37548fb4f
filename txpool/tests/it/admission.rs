//! Who gets in, and with which answer.

use std::sync::atomic::Ordering;

use txpool::ports::AdmitError;
use txpool::{Accepted, TxStanding};
use types::{Account, Amount, Code};

use crate::support::make::hashes;
use crate::support::world::{NOW, SKEW};
use crate::support::{Wallet, World};

#[test]
fn a_transaction_sent_again_is_answered_again() {
    let (world, [a, b, _]) = World::of_three();
    let (first, gap) = (a.at(0).transfer(&b, 10), a.at(2).transfer(&b, 10));
    world.pending(&[&first]);
    world.queued(&[&gap]);
    for (tx, standing) in [(&first, TxStanding::Pending), (&gap, TxStanding::Queued)] {
        let expected = Accepted { hash: tx.hash(), standing, is_new: false };
        assert_eq!(Ok(expected), world.submit(tx));
    }
    world.commit(&[&first]);
    let expected = Accepted { hash: first.hash(), standing: TxStanding::Included, is_new: false };
    assert_eq!(Ok(expected), world.submit(&first));
    assert_eq!(3, world.pool.stats().known_total);
}

#[test]
fn nonces_below_the_account_are_stale_and_say_both_values() {
    let (world, [a, b, _]) = World::of_three();
    let first = a.at(0).transfer(&b, 10);
    world.pending(&[&first]);
    world.commit(&[&first]);
    let rejection = world.submit(&a.at(0).transfer(&b, 11)).unwrap_err();
    assert_eq!(Code::NonceStale, rejection.code());
    assert_eq!("Nonce stale: tx=0, state=1", rejection.message());
}

#[test]
fn a_nonce_is_taken_once_whether_pending_or_queued() {
    let (world, [a, b, _]) = World::of_three();
    world.pending(&[&a.at(0).transfer(&b, 10)]);
    world.queued(&[&a.at(2).transfer(&b, 10)]);
    assert_eq!(Code::NonceTaken, world.rejection(&a.at(0).transfer(&b, 11)));
    assert_eq!(Code::NonceTaken, world.rejection(&a.at(2).transfer(&b, 11)));
}

#[test]
fn nonces_are_queued_up_to_sixty_four_beyond_the_last_executable_one() {
    let (world, [a, b, c]) = World::of_three();
    // Nothing executable: the last executable nonce is, as it were, -1.
    world.queued(&[&a.at(63).transfer(&b, 10)]);
    assert_eq!(Code::NonceTooHigh, world.rejection(&a.at(64).transfer(&b, 10)));
    world.pending(&[&c.at(0).transfer(&b, 10)]);
    world.queued(&[&c.at(64).transfer(&b, 10)]);
    assert_eq!(Code::NonceTooHigh, world.rejection(&c.at(65).transfer(&b, 10)));
}

#[test]
fn a_key_that_nobody_has_used_cannot_queue_anything() {
    let (world, [a, b, _]) = World::of_three();
    let fresh = Wallet::new(9);
    assert_eq!(Code::NonceTooHigh, world.rejection(&fresh.at(1).turn(None)));
    // Money that only waits for its block is enough.
    world.pending(&[&a.at(0).transfer(&fresh, 10)]);
    world.queued(&[&fresh.at(1).transfer(&b, 1)]);
}

#[test]
fn a_closed_gap_promotes_everything_behind_it() {
    let (world, [a, b, _]) = World::of_three();
    let txs = a.each(0..4, |it| it.transfer(&b, 10));
    world.queued(&[&txs[3], &txs[1], &txs[2]]);
    world.events();
    world.pending(&[&txs[0]]);
    assert_eq!(hashes(&txs), world.order());
    let words: Vec<_> = world.events().into_iter().map(|(word, _)| word).collect();
    assert_eq!(vec!["pending", "promoted", "promoted", "promoted"], words);
}

#[test]
fn a_promoted_transaction_that_is_refused_is_dropped_and_its_successors_stay_queued() {
    let (world, [a, b, _]) = World::of_three();
    let (too_much, after) = (a.at(1).transfer(&b, 2_000_000), a.at(2).transfer(&b, 10));
    world.queued(&[&too_much, &after]);
    world.pending(&[&a.at(0).transfer(&b, 10)]);
    assert_eq!(Some(Code::InsufficientBalance), world.drop_code(&too_much));
    assert!(world.is_queued(&after));
    world.pending(&[&a.at(1).transfer(&b, 10)]);
    assert!(world.is_pending(&after));
}

#[test]
fn earlier_pending_spends_are_reserved() {
    let (a, b) = (Wallet::new(1), Wallet::new(2));
    let world = World::new(txpool::Config::default(), &[(&a, 100)]);
    world.pending(&[&a.at(0).transfer(&b, 60)]);
    assert_eq!(Code::InsufficientBalance, world.rejection(&a.at(1).transfer(&b, 41)));
    world.pending(&[&a.at(1).transfer(&b, 40)]);
    assert_eq!(Account { balance: Amount::ZERO, nonce: 2 }, world.account(&a));
    assert_eq!(Account { balance: Amount::new(100), nonce: 0 }, world.account(&b));
}

#[test]
fn the_clock_skew_is_allowed_to_the_millisecond() {
    let (world, [a, b, _]) = World::of_three();
    let latest = NOW + SKEW;
    assert_eq!(Code::ClockSkew, world.rejection(&a.at(0).time(latest + 1).transfer(&b, 1)));
    assert_eq!(Code::ClockSkew, world.rejection(&a.at(1).time(latest + 1).transfer(&b, 1)));
    world.pending(&[&a.at(0).time(latest).transfer(&b, 1)]);
}

#[test]
fn the_rules_of_the_ledger_come_before_those_of_the_pool() {
    let (world, [a, b, _]) = World::of_three();
    let late = a.at(0).time(NOW + SKEW + 1);
    assert_eq!(Code::InsufficientBalance, world.rejection(&late.transfer(&b, 2_000_000)));
    assert_eq!(Code::NonceTooHigh, world.rejection(&a.at(64).time(u64::MAX >> 11).transfer(&b, 1)));
}

#[test]
fn one_bad_transaction_never_affects_another() {
    let (world, [a, b, c]) = World::of_three();
    let txs =
        [a.at(0).transfer(&b, 1), b.at(0).transfer(&a, u64::MAX >> 1), c.at(0).transfer(&b, 1)];
    let code = |error: &AdmitError| match error {
        AdmitError::Rejected(reason) => reason.code(),
        AdmitError::Fault(fault) => panic!("{fault}"),
    };
    let answers = world.pool.submit(&txs, NOW);
    let codes: Vec<_> = answers.iter().map(|a| a.as_ref().err().map(code)).collect();
    assert_eq!(vec![None, Some(Code::InsufficientBalance), None], codes);
}

#[test]
fn a_refused_transaction_changes_nothing() {
    let (world, [a, b, _]) = World::of_three();
    let before = (world.account(&a), world.pool.status());
    assert_eq!(Code::InsufficientBalance, world.rejection(&a.at(0).transfer(&b, 2_000_000)));
    assert_eq!(before, (world.account(&a), world.pool.status()));
    assert!(world.events().is_empty());
    assert_eq!(0, world.pool.stats().senders);
}

#[test]
fn a_fault_of_the_ledger_is_no_answer_about_the_transaction() {
    let (world, [a, b, _]) = World::of_three();
    world.chain.is_broken.store(true, Ordering::SeqCst);
    let answers = world.pool.submit(&[a.at(0).transfer(&b, 1)], NOW);
    let [Err(AdmitError::Fault(fault))] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!("the store has failed", fault.to_string());
    assert_eq!(0, world.pool.pending_count());
    // It is nobody else's: the pool goes on.
    world.chain.is_broken.store(false, Ordering::SeqCst);
    world.pending(&[&a.at(0).transfer(&b, 1)]);
}
