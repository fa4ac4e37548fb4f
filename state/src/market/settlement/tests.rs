//! Each sentence of the rules of settlement and of appeals, and that no money appears or disappears.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

use proptest::prelude::*;
use types::call::{Answer, Bill, Outcome, When};
use types::{Amount, Hash, Prices, Usage};

use super::{Due, settle};
use crate::market::scene::{
    ABSENCE, Does, OUTSIDE, PER_CALL, REVEAL_FEE, Scene, UNREVEALED, WAGE, failure, says, success,
    unable,
};

const FAILS: Does = Does::Says(Answer {
    outcome: Outcome::Failure,
    result_hash: Hash::ZERO,
    usage: Usage { input_tokens: 1_000, output_tokens: 100, fuel: 0 },
    receipt_hash: Hash::ZERO,
});
const NOTHING: Does = Does::Nothing;
const WITHHOLDS: Does = Does::Withholds;

fn money(amount: u64) -> Amount {
    Amount::new(amount)
}

/// The answer `right` of so many, then the answer `wrong` of the rest.
fn split(right: Does, count: usize, wrong: Does, rest: usize) -> Vec<Does> {
    [vec![right; count], vec![wrong; rest]].concat()
}

#[test]
fn each_member_of_the_group_gets_the_calls_prices_for_the_agreed_usage() {
    let scene = Scene::of(3).round(&[says(1), says(1), says(2)]);
    assert_eq!(scene.dues(), [(WAGE, 0), (WAGE, 0), (0, OUTSIDE)]);
}

#[test]
fn nobody_gets_more_than_the_budget() {
    let usage = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, fuel: u64::MAX };
    let all = Does::Says(Answer { usage, ..success(1) });
    let scene = Scene::of(3).round(&[all; 3]);
    let budget = scene.call.terms.budget.get();
    assert_eq!(scene.dues(), [(budget, 0); 3]);
}

#[test]
fn a_group_of_failures_gets_no_more_than_the_price_of_the_call() {
    assert_eq!(Scene::of(3).round(&[FAILS; 3]).dues(), [(PER_CALL, 0); 3]);
    let prices = Prices { per_call: money(0), ..Scene::of(3).call.prices };
    assert_eq!(Scene::of(3).priced(prices).round(&[FAILS; 3]).dues(), [(0, 0); 3]);
}

#[test]
fn a_failure_at_a_price_below_that_of_the_call_does_not_exist() {
    let none = Answer { usage: Usage::default(), ..failure() };
    assert_eq!(Scene::of(1).round(&[Does::Says(none)]).dues(), [(PER_CALL, 0)]);
}

#[test]
fn members_of_a_threshold_get_the_price_of_the_call_whatever_they_say_that_it_took() {
    let scene = Scene::of(3).threshold(2).round(&[says(1), says(2), FAILS]);
    assert_eq!(scene.dues(), [(PER_CALL, 0), (PER_CALL, 0), (0, OUTSIDE)]);
    let failed = Scene::of(3).threshold(2).round(&[FAILS, says(2), FAILS]);
    assert_eq!(failed.dues(), [(PER_CALL, 0), (0, OUTSIDE), (PER_CALL, 0)]);
}

#[test]
fn without_a_group_nobody_is_paid_and_no_answer_costs_anything() {
    let scene = Scene::of(3).round(&[says(1), says(2), says(3)]);
    assert_eq!(scene.dues(), [(0, 0); 3]);
    let bill = scene.settled().bill;
    assert_eq!((bill.wages, bill.royalty, bill.agreeing), (money(0), money(0), 0));
}

#[test]
fn a_success_pays_the_royalty_and_a_failure_does_not() {
    assert_eq!(Scene::of(3).round(&[says(1); 3]).settled().bill.royalty, money(500));
    assert_eq!(Scene::of(3).round(&[FAILS; 3]).settled().bill.royalty, money(0));
    let threshold = Scene::of(3).threshold(1).round(&[says(1), NOTHING, NOTHING]);
    assert_eq!(threshold.settled().bill.royalty, money(500));
}

#[test]
fn conditional_payments_are_made_if_the_answer_is_that_of_the_condition() {
    let [yes, no] = [1, 2].map(|result| When::Result(Hash::new([result; 32])));
    let call = Scene::of(3).pays(When::Success, 6, 10).pays(yes, 7, 20).pays(no, 8, 40);
    let made = |does: Does| {
        let settled = call.clone().round(&[does; 3]).settled();
        let amounts = settled.conditional.iter().map(|it| it.amount.get()).collect::<Vec<_>>();
        assert_eq!(settled.bill.conditional.get(), amounts.iter().sum::<u64>());
        amounts
    };
    assert_eq!(made(says(1)), [10, 20]);
    assert_eq!(made(says(2)), [10, 40]);
    assert_eq!(made(says(3)), [10]);
    let as_failure = Answer { outcome: Outcome::Failure, ..success(1) };
    assert!(made(Does::Says(as_failure)).is_empty(), "the same hash, but no success");
    assert!(made(NOTHING).is_empty());
    let whole = call.clone().round(&[NOTHING; 3]).settled().bill;
    let refund = call.call.max_fee.get() - 3 * REVEAL_FEE;
    assert_eq!(whole.refund.get(), refund, "what does not fire goes back");
}

#[test]
fn each_reveal_burns_a_fee_that_of_unable_too_and_the_rest_goes_back() {
    let scene = Scene::of(5).round(&[says(1), says(1), says(1), unable(), NOTHING]);
    let bill = scene.settled().bill;
    assert_eq!(bill.burned.get(), 4 * REVEAL_FEE + ABSENCE);
    assert_eq!(bill.refund.get(), scene.call.max_fee.get() - 4 * REVEAL_FEE - 3 * WAGE - 500);
}

#[test]
fn a_round_without_a_group_burns_a_fee_for_each_seat() {
    for does in [vec![], vec![NOTHING; 5], vec![says(1), unable()], vec![WITHHOLDS; 5]] {
        let scene = Scene::of(5).round(&does);
        let bill = scene.settled().bill;
        assert_eq!(bill.burned.get(), 5 * REVEAL_FEE + bill.penalties.get());
        assert_eq!(bill.refund.get(), scene.call.max_fee.get() - 5 * REVEAL_FEE);
    }
}

#[test]
fn what_a_member_does_wrong_costs_what_the_rules_say() {
    let scene =
        Scene::of(7).round(&[says(1), says(1), says(1), says(1), NOTHING, WITHHOLDS, unable()]);
    let lost = scene.lost();
    assert_eq!(lost, [0, 0, 0, 0, ABSENCE, UNREVEALED, 0]);
    let undecided = Scene::of(3).round(&[NOTHING, WITHHOLDS, unable()]);
    assert_eq!(undecided.dues(), [(0, ABSENCE), (0, UNREVEALED), (0, 0)], "without a group too");
}

#[test]
fn nobody_loses_more_than_is_locked() {
    let mut scene = Scene::of(3).final_at_once();
    scene.call.terms.outside_penalty = money(UNREVEALED + 1);
    scene.call.terms.absence_penalty = money(UNREVEALED + 2);
    let lock = scene.lock();
    assert_eq!(lock.get(), UNREVEALED);
    for wrong in [says(2), NOTHING] {
        let settled = scene.clone().round(&[says(1), says(1), wrong]).settled();
        let due = Due { paid: money(0), penalty: lock };
        assert_eq!(settled.dues.last(), Some(&due), "{wrong:?}");
    }
}

#[test]
fn bonds_behind_an_answer_may_add_up_to_more_than_any_amount() {
    let mut scene = Scene::of(3).round(&[says(1); 3]);
    for member in &mut scene.members {
        member.bond = Amount::new(u64::MAX / 2);
    }
    assert_eq!(scene.settled().bill.bond_behind, Amount::MAX);
}

#[test]
fn the_appellant_pays_every_seat_at_the_limits_and_deposits_d_for_each_member_of_the_group() {
    let scene = Scene::of(3).round(&[says(1), says(1), says(2)]).appealed();
    let appeal = scene.call.appeal.unwrap();
    let seat = scene.call.terms.budget.get() + REVEAL_FEE;
    assert_eq!(appeal.size, 7);
    assert_eq!(appeal.payment.get(), 7 * seat);
    assert_eq!(appeal.deposit.get(), 2 * scene.dissent());
    let fewer = Scene::of(3).round(&[says(1); 3]).appealed_among(6).call.appeal.unwrap();
    assert_eq!((fewer.size, fewer.payment.get()), (5, 5 * seat));
    assert_eq!(fewer.deposit.get(), 3 * scene.dissent());
}

/// Two say 1 and one says 2; then the second round.
fn appealed(second: &[Does]) -> Scene {
    Scene::of(3).round(&[says(1), says(1), says(2)]).appealed().round(second)
}

#[test]
fn an_appeal_without_a_group_leaves_the_decision_and_no_answer_costs_anything() {
    let second = [says(1), says(2), says(2), says(3), says(4), says(1), says(5)];
    let scene = appealed(&second);
    let paid = |does: &Does| if *does == says(1) { (WAGE, 0) } else { (0, 0) };
    let expected: Vec<(u64, u64)> =
        [says(1), says(1), says(2)].iter().chain(&second).map(paid).collect();
    assert_eq!(scene.dues(), expected, "members of both rounds who gave the answer are paid");
    let (bill, appeal) = (scene.settled().bill, scene.call.appeal.unwrap());
    let cost = 2 * WAGE + 7 * REVEAL_FEE;
    assert_eq!(bill.appellant.get(), appeal.payment.get() - cost + appeal.deposit.get());
    assert_eq!(bill.burned.get(), (3 + 7) * REVEAL_FEE);
    assert_eq!(bill.royalty.get(), 500, "the first decision stands");
}

#[test]
fn an_appeal_without_a_group_costs_those_without_an_answer_half_of_d_rounded_down() {
    let first = [says(1), says(1), says(1), NOTHING, unable()];
    let second = split(says(2), 5, NOTHING, 3);
    let second = [second, vec![WITHHOLDS, unable(), says(1)]].concat();
    let mut scene = Scene::of(5);
    scene.call.terms.dissent_penalty = money(1_000_001);
    let scene = scene.round(&first).appealed().round(&second);
    let lost = scene.lost();
    let half = 500_000;
    assert_eq!(lost[..5], [0, 0, 0, half, half]);
    assert_eq!(lost[5..10], [0; 5]);
    assert_eq!(lost[10..], [half, half, half, half, half, 0]);
    // As much of the deposit is burned: here all of it.
    let (bill, appeal) = (scene.settled().bill, scene.call.appeal.unwrap());
    assert_eq!(bill.penalties.get(), 7 * half);
    assert_eq!(appeal.deposit.get(), 3 * 1_000_001);
    assert_eq!(bill.appellant.get(), appeal.payment.get() - WAGE - 11 * REVEAL_FEE);
}

#[test]
fn of_the_deposit_as_much_is_burned_as_members_lost_who_gave_no_answer() {
    let scene = appealed(&[says(1), says(2), says(3), says(4), says(5), says(6), NOTHING]);
    let (bill, appeal) = (scene.settled().bill, scene.call.appeal.unwrap());
    let half = scene.dissent() / 2;
    let cost = WAGE + 7 * REVEAL_FEE;
    assert_eq!(bill.burned.get(), 10 * REVEAL_FEE + half + half);
    let back = appeal.payment.get() - cost + appeal.deposit.get() - half;
    assert_eq!(bill.appellant.get(), back);
}

#[test]
fn a_confirmed_decision_burns_the_deposit_and_the_rest_of_the_payment_returns() {
    let scene = appealed(&split(says(1), 5, says(2), 2));
    let (bill, appeal, d) = (scene.settled().bill, scene.call.appeal.unwrap(), scene.dissent());
    assert_eq!(bill.appellant.get(), appeal.payment.get() - 5 * WAGE - 7 * REVEAL_FEE);
    assert_eq!(bill.burned.get(), 10 * REVEAL_FEE + appeal.deposit.get() + 3 * d);
    let refund = scene.call.max_fee.get() - 2 * WAGE - 3 * REVEAL_FEE - 500;
    assert_eq!(bill.refund.get(), refund, "an appeal costs the requester nothing");
    assert_eq!(bill.agreeing, 7);
    assert_eq!(bill.bond_behind.get(), 7 * 10_000_000);
}

#[test]
fn with_a_final_group_those_who_revealed_another_answer_lose_d_and_the_others_as_usual() {
    let second = [says(1), says(1), says(1), says(1), NOTHING, WITHHOLDS, unable()];
    let scene = appealed(&second);
    let d = scene.dissent();
    let lost = scene.lost();
    assert_eq!(lost, [0, 0, d, 0, 0, 0, 0, ABSENCE, UNREVEALED, 0]);
    let failing = appealed(&split(says(1), 6, FAILS, 1));
    assert_eq!(failing.dues().last(), Some(&(0, d)), "a failure is an answer, too");
}

#[test]
fn an_overturned_decision_pays_those_who_were_right_in_both_rounds() {
    let scene = appealed(&split(says(2), 5, says(1), 2));
    let d = scene.dissent();
    let expected = [vec![(0, d), (0, d), (WAGE, 0)], vec![(WAGE, 0); 5], vec![(0, d); 2]];
    assert_eq!(scene.dues(), expected.concat());
}

#[test]
fn an_overturned_round_is_paid_first_from_what_the_overturned_group_would_have_got() {
    let scene = appealed(&split(says(2), 7, says(1), 0));
    let (bill, appeal, d) = (scene.settled().bill, scene.call.appeal.unwrap(), scene.dissent());
    // Two of the first round were wrong: their wages go to the second round, their penalties pay what is
    // missing there, and half of what is left is the appellant's.
    let (spared, cost) = (2 * WAGE, 7 * WAGE + 7 * REVEAL_FEE);
    let escrow = scene.call.max_fee.get();
    assert_eq!(bill.refund.get(), escrow - spared - WAGE - 3 * REVEAL_FEE - 500);
    let left = 2 * d - (cost - spared);
    assert_eq!(bill.appellant.get(), appeal.payment.get() + appeal.deposit.get() + left / 2);
    assert_eq!(bill.burned.get(), 10 * REVEAL_FEE + left - left / 2);
}

#[test]
fn what_the_overturned_group_would_have_got_and_the_round_does_not_need_goes_back() {
    // The first round bills all of the budget, the second says that there was nothing to do.
    let usage = Usage { input_tokens: 1_000, output_tokens: 100, fuel: 0 };
    let first = Does::Says(Answer { usage, ..success(1) });
    let prices = Prices { per_call: money(0), ..Scene::of(3).call.prices };
    let nothing = Does::Says(Answer { usage: Usage::default(), ..failure() });
    let scene = Scene::of(3).priced(prices).round(&[first; 3]).appealed().round(&[nothing; 7]);
    let bill = scene.settled().bill;
    assert_eq!(bill.wages, money(0));
    assert!(3 * scene.call.terms.budget.get() > 7 * REVEAL_FEE);
    assert_eq!(bill.refund.get(), scene.call.max_fee.get() - 10 * REVEAL_FEE);
    assert_eq!(bill.royalty, money(0), "the royalty is for a success");
}

#[test]
fn the_appellants_payment_is_the_last_source_of_an_overturned_round() {
    let mut scene = Scene::of(3);
    scene.call.terms.dissent_penalty = money(100);
    let scene = scene.round(&[says(1), says(1), says(2)]).appealed();
    let scene = scene.round(&split(says(2), 7, says(1), 0));
    let (bill, appeal) = (scene.settled().bill, scene.call.appeal.unwrap());
    let (spared, wrong, cost) = (2 * WAGE, 200, 7 * WAGE + 7 * REVEAL_FEE);
    let from_payment = cost - spared - wrong;
    let back = appeal.payment.get() + appeal.deposit.get() - from_payment;
    assert_eq!(bill.appellant.get(), back);
    assert_eq!(bill.burned.get(), 10 * REVEAL_FEE, "no penalty is left");
}

#[test]
fn penalties_for_silence_are_burned_whatever_becomes_of_an_appeal() {
    let second = [split(says(2), 4, says(1), 1), vec![NOTHING, WITHHOLDS]].concat();
    let (with, without) = (appealed(&second), appealed(&split(says(2), 4, says(1), 1)));
    let (with, without) = (with.settled().bill, without.settled().bill);
    assert_eq!(with.appellant, without.appellant);
    assert_eq!(with.burned.get(), without.burned.get() + ABSENCE + UNREVEALED);
}

#[test]
fn conditional_payments_follow_the_final_answer() {
    let [one, two] = [1, 2].map(|result| When::Result(Hash::new([result; 32])));
    let call = Scene::of(3).pays(one, 6, 10).pays(two, 7, 20);
    let call = call.round(&[says(1), says(1), says(2)]).appealed();
    for (answer, made) in [(2, 20), (1, 10)] {
        let settled = call.clone().round(&[says(answer); 7]).settled();
        assert_eq!(settled.bill.conditional, money(made), "{answer}");
    }
}

#[test]
fn a_call_without_a_decided_round_cannot_be_settled() {
    let scene = Scene::of(3);
    let error = settle(&scene.call, &[]).unwrap_err().to_string();
    assert_eq!(error, "state is inconsistent: a call is settled that has no decided round");
}

// What a simulation of the rules showed, as far as one call shows it.

/// What a member of the first round with this conduct gains, where the other two are honest.
fn gain_among_honest(does: Does) -> i128 {
    let due = Scene::of(3).round(&[says(1), says(1), does]).dues()[2];
    i128::from(due.0) - i128::from(due.1)
}

#[test]
fn who_copies_a_result_stays_away_or_withholds_loses_and_who_answers_earns() {
    // A copier sees at most the result; the receipt of the work it cannot know.
    let copy = Answer { receipt_hash: Hash::new([9; 32]), ..success(1) };
    assert!(gain_among_honest(Does::Says(copy)) < 0);
    assert!(gain_among_honest(NOTHING) < 0);
    assert!(gain_among_honest(WITHHOLDS) < gain_among_honest(NOTHING));
    assert!(gain_among_honest(FAILS) < 0, "and who is too lazy to work");
    assert_eq!(gain_among_honest(unable()), 0);
    assert!(gain_among_honest(says(1)) > 0);
}

/// What an appeal brings its author.
fn gain_of_appellant(scene: &Scene) -> i128 {
    let appeal = scene.call.appeal.unwrap();
    let staked = i128::from(appeal.payment.get()) + i128::from(appeal.deposit.get());
    i128::from(scene.settled().bill.appellant.get()) - staked
}

#[test]
fn a_call_that_nobody_can_compute_in_time_costs_its_author_as_much_as_the_members_it_drew() {
    // The author holds the first round and appeals itself.
    let scene = Scene::of(3).round(&[says(1); 3]).appealed().round(&[NOTHING; 7]);
    let lost = i128::from(scene.settled().bill.penalties.get());
    assert!(-gain_of_appellant(&scene) >= lost.min(i128::from(3 * scene.dissent())));
    assert_eq!(scene.dues()[3..], [(0, scene.dissent() / 2); 7]);
}

fn prices() -> impl Strategy<Value = Prices> {
    let price = |max| prop_oneof![Just(0), 0..=max].prop_map(Amount::new);
    (price(1_000_000_u64), price(50_000_000_000), price(50_000_000_000)).prop_map(
        |(per_call, prompt_per_m, completion_per_m)| Prices {
            per_call,
            prompt_per_m,
            completion_per_m,
            fuel_per_g: Amount::ZERO,
        },
    )
}

/// What a member may do: of few different answers, so that groups come about.
fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        6 => Just(says(1)),
        3 => Just(says(2)),
        1 => (3..6_u8).prop_map(says),
        2 => Just(FAILS),
        1 => Just(unable()),
        1 => Just(NOTHING),
        1 => Just(WITHHOLDS),
    ]
}

/// A call with one round or two, all of whose seats are taken or not.
fn scene() -> impl Strategy<Value = Scene> {
    let round = |max| prop::collection::vec(does(), 0..=max);
    let conditional = prop::collection::vec((0..4_u8, 0..2_000_000_u64), 0..4);
    let kind = prop_oneof![Just(None), (1..8_u8).prop_map(Some)];
    (0..8_u8, kind, prices(), conditional, round(15_usize), round(31), any::<bool>()).prop_map(
        |(half, threshold, prices, conditional, mut first, mut second, is_appealed)| {
            let size = 2 * half + 1;
            let mut scene = Scene::of(size).priced(prices);
            if let Some(needed) = threshold {
                scene = scene.threshold(needed.min(size));
            } else {
                for (result, amount) in conditional {
                    let hash = Hash::new([result; 32]);
                    let when = if result == 0 { When::Success } else { When::Result(hash) };
                    scene = scene.pays(when, 6, amount);
                }
            }
            first.truncate(size.into());
            let scene = scene.round(&first);
            let has_group = scene.call.rounds[0].group.is_some();
            if threshold.is_some() || !has_group || !is_appealed {
                return scene;
            }
            second.truncate(usize::from(2 * size + 1));
            if second.is_empty() {
                return scene;
            }
            scene.appealed().round(&second)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8_192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn payments_burns_and_refunds_are_what_was_paid_in(scene in scene()) {
        let settled = scene.settled();
        let sum = |amounts: &[Amount]| amounts.iter().map(|it| u128::from(it.get())).sum::<u128>();
        let paid: Vec<Amount> = settled.dues.iter().map(|due| due.paid).collect();
        let lost: Vec<Amount> = settled.dues.iter().map(|due| due.penalty).collect();
        let others: Vec<Amount> = settled.conditional.iter().map(|it| it.amount).collect();
        let stakes = scene.call.appeal.map_or(0, |it| sum(&[it.payment, it.deposit]));
        let Bill { royalty, refund, appellant, burned, .. } = settled.bill;
        let paid_out = sum(&paid) + sum(&others) + sum(&[royalty, refund, appellant, burned]);
        prop_assert_eq!(sum(&[scene.call.max_fee]) + stakes + sum(&lost), paid_out);
        prop_assert_eq!(sum(&[settled.bill.wages]), sum(&paid));
        prop_assert_eq!(sum(&[settled.bill.conditional]), sum(&others));
        prop_assert_eq!(sum(&[settled.bill.penalties]), sum(&lost));
    }

    #[test]
    fn nobody_is_paid_and_punished_or_loses_more_than_is_locked(scene in scene()) {
        let settled = scene.settled();
        prop_assert_eq!(settled.dues.len(), scene.members.len());
        for (member, due) in scene.members.iter().zip(&settled.dues) {
            prop_assert!(due.penalty <= member.lock);
            prop_assert!(due.paid <= scene.call.terms.budget);
            prop_assert!(due.paid.is_zero() || due.penalty.is_zero());
        }
    }

    #[test]
    fn an_appellant_who_is_right_gains_at_every_price_and_one_who_is_wrong_loses_the_deposit(
        half in 0..8_u8, prices in prices(), wrong in 0..8_usize, right in 1..31_usize,
    ) {
        let size = 2 * half + 1;
        let members = usize::from(size);
        let most = members / 2 + 1;
        let first = Scene::of(size).priced(prices)
            .round(&split(says(1), most, says(2), members - most)).appealed();
        let second = usize::from(2 * size + 1);
        let right = right.clamp(second / 2 + 1, second);
        let rest = wrong.min(second - right);
        let overturned = first.clone().round(&split(says(2), right, says(3), rest));
        prop_assert!(gain_of_appellant(&overturned) > 0, "{:?}", overturned.settled().bill);
        let upheld = first.round(&split(says(1), right, says(2), rest));
        let deposit = i128::from(upheld.call.appeal.unwrap().deposit.get());
        prop_assert!(gain_of_appellant(&upheld) <= -deposit);
    }
}
