//! What requesters could do so that the chain burns a miner's bond: it loses none of it where another end
//! of the run is there, and no more of it on a day than the policy says.

use std::sync::atomic::Ordering;

use types::RunStatus;

use super::bonding::{HELD_MS, ask, bench, stake};
use super::support::{Bench, key};
use crate::journal::entry::{Outcome, Phase};
use crate::ports::Event;

/// The miner's bond after the reward of its run is paid.
fn stake_after(bench: &Bench) -> (u64, u64) {
    bench.chain.pass(2 * HELD_MS);
    stake(bench)
}

#[tokio::test]
async fn a_model_that_says_nothing_costs_no_bond() {
    let bench = bench();
    let run = ask(&bench, "silent", 50_000);
    bench.finish(1).await;
    assert_eq!(vec!["MINER_BOND", "CLAIM", "STEP", "FINISH"], bench.sent());
    assert_eq!(RunStatus::Failed, bench.status(&run));
    assert_eq!(Some("the model said nothing"), bench.answer(&run).as_deref());
    let ended = Outcome::Ended { status: RunStatus::Failed, reward_micro: 0 };
    assert_eq!(Phase::Over(ended), bench.entry(&run).phase);
    assert_eq!((50_000, 0), stake_after(&bench));
}

#[tokio::test]
async fn a_run_whose_step_the_chain_keeps_refusing_does_not_lapse() {
    let bench = bench();
    let run = ask(&bench, "x", 50_000);
    bench.chain.state.lock().bad_steps = 5;
    let is_over = |_: &[Event]| bench.journal.entry(&run).unwrap().is_some_and(|it| it.is_over());
    bench.during(bench.counters.until(is_over)).await;
    assert_eq!(Phase::Over(Outcome::GivenBack), bench.entry(&run).phase);
    assert_eq!(vec!["MINER_BOND", "CLAIM", "FINISH"], bench.sent());
    // What it costs to give a run up before its first step.
    assert_eq!((49_900, 0), stake_after(&bench));
}

#[tokio::test]
async fn an_answer_that_the_chain_keeps_refusing_is_left_out() {
    let bench = bench();
    let run = ask(&bench, "x", 50_000);
    bench.chain.state.lock().bad_finishes = 5;
    bench.finish(1).await;
    let view = bench.chain.run_of(&run);
    assert_eq!((RunStatus::Failed, Some(10)), (view.status, view.reward_micro));
    let why = "the chain rejects what this miner reports of the run";
    assert_eq!(Some(why), bench.answer(&run).as_deref());
    assert_eq!((50_000, 0), stake_after(&bench));
}

#[tokio::test]
async fn a_long_answer_waits_for_a_lower_base_fee_and_no_longer_than_the_run_can() {
    // In a blob, and without one.
    let cases = [(20_004, true), (20_004, false), (10_004, true), (10_004, false)];
    for (bytes, is_patient) in cases {
        let bench = bench();
        bench.chain.state.lock().told_base_fee = 1_001;
        let run = ask(&bench, &format!("long={}", bytes - 4), 50_000);
        let happens = async {
            let stepped = |events: &[Event]| events.contains(&Event::Step { tokens: 10 });
            bench.counters.until(stepped).await;
            let asked = || bench.chain.state.lock().fees_read;
            let before = asked();
            assert!(crate::testing::comes(|| asked() > before + 2).await);
            assert_eq!(RunStatus::Running, bench.status(&run));
            if is_patient {
                bench.chain.state.lock().told_base_fee = 1_000;
            } else {
                // So long before the deadline nothing is begun that may have to wait.
                let left_ms = 2 * bench.config.deadline_margin_ms;
                let deadline_ms = bench.chain.run_of(&run).deadline_ms.unwrap();
                bench.clock.0.store(deadline_ms - left_ms, Ordering::SeqCst);
            }
            bench.counters.until_finished(1).await;
        };
        bench.during(happens).await;
        let view = bench.chain.run_of(&run);
        assert_eq!(Some(10), view.reward_micro);
        if is_patient {
            assert_eq!(RunStatus::Completed, view.status);
        } else {
            assert_eq!(RunStatus::Failed, view.status);
            let why = format!("the answer has {bytes} bytes, and would come into a block too late");
            assert_eq!(Some(why), bench.answer(&run));
        }
        assert_eq!((50_000, 0), stake_after(&bench), "{bytes}, patient: {is_patient}");
    }
}

#[tokio::test]
async fn what_requesters_burn_of_the_bond_ends_the_days_claims_that_need_a_bond() {
    let bench = bench();
    bench.change_policy(|policy| policy.spend_micro_per_day_max = 20_020);
    let day_ms = 86_400_000;
    let happens = async {
        // Each costs the reward, 10 micro, and as much as the requester pays for it.
        for (runs, prompt) in [(1, "first"), (2, "second")] {
            let run = ask(&bench, prompt, 50_000);
            bench.counters.until_finished(runs).await;
            bench.chain.submit(&fixtures::refuse(run));
        }
        assert!(crate::testing::comes(|| burned(&bench) == 20_020).await, "{}", burned(&bench));
        let third = ask(&bench, "third", 50_000);
        bench.counters.until_decided("SPENT_TODAY").await;
        // Without a bond nothing is at stake.
        bench.chain.add_run("fourth", 9_000, 5);
        bench.counters.until_finished(3).await;
        assert_eq!(RunStatus::Pending, bench.status(&third));
        bench.clock.0.fetch_add(day_ms, Ordering::SeqCst);
        assert_eq!(0, burned(&bench));
        bench.chain.pass(day_ms);
        ask(&bench, "fifth", 50_000);
        bench.counters.until_finished(4).await;
    };
    bench.during(happens).await;
    assert!(bench.chain.state.lock().lost.is_empty());
}

#[tokio::test]
async fn what_an_operator_takes_out_of_the_bond_is_not_lost() {
    let bench = bench();
    let is_bonded = |bench: &Bench| stake(bench).0 == 50_000;
    let happens = async {
        ask(&bench, "x", 50_000);
        bench.counters.until_finished(1).await;
        assert!(is_bonded(&bench));
        bench.chain.pass(2 * HELD_MS);
        // It has seen the bond.
        bench.chain.add_run("y", 9_000, 5);
        bench.counters.until_finished(2).await;
        let amount = types::Amount::new(20_000);
        let unbond = types::Body::MinerUnbond(types::tx::MinerUnbond { amount });
        bench.chain.act(&key(), &unbond);
        bench.chain.add_run("z", 9_000, 5);
        bench.counters.until_finished(3).await;
    };
    bench.during(happens).await;
    assert_eq!(30_000, stake(&bench).0);
    assert_eq!(0, burned(&bench));
}

/// What counts as lost today.
fn burned(bench: &Bench) -> u64 {
    bench.journal.burned_micro(bench.clock.0.load(Ordering::SeqCst)).unwrap()
}
