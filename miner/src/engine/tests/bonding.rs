//! Runs that their requesters protect: the bond is there before the claim, added to by the policy and
//! no further, and once, whatever dies meanwhile.

use std::path::Path;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use types::tx::{AgentFinish, AgentRequest, MinerBond, Protection};
use types::{Amount, Body, CheckedTx, Hash, Keypair, RunStatus};

use super::support::{Bench, key};
use super::torture::{check_refused, die_or_do, dies_at_every_point, is_worker};
use crate::chain::fake::FakeChain;
use crate::chain::{Held, Ledger as _, Notice, Runs, Stake};
use crate::engine::receipt::Earnings;
use crate::journal::entry::{Outcome, Phase};
use crate::ports::Event;
use crate::testing::comes;

pub(super) const HELD_MS: u64 = 60_000;

pub(super) fn protected(bond: u64, refuse_ms: u64) -> impl FnOnce(&mut AgentRequest) {
    let claim_bond = Some(Amount::new(bond));
    move |request| {
        let refuse_ms = Some(refuse_ms);
        request.protection = Protection { claim_bond, refuse_ms, ..Protection::default() }.into();
    }
}

/// A miner on a chain with bonds.
pub(super) fn bench() -> Bench {
    let bench = Bench::new();
    bench.chain.state.lock().begin_with_v7();
    bench
}

pub(super) fn ask(bench: &Bench, prompt: &str, bond: u64) -> Hash {
    bench.chain.add_run_with(prompt, 10_000, 10, protected(bond, HELD_MS))
}

pub(super) fn stake(bench: &Bench) -> (u64, u64) {
    let Stake { bonded_micro, locked_micro, .. } =
        bench.chain.state.lock().stake(&key().address()).unwrap();
    (bonded_micro, locked_micro)
}

#[tokio::test]
async fn a_miner_bonds_by_itself_before_it_claims_and_gets_its_reward_when_it_is_due() {
    let bench = bench();
    let run = ask(&bench, "x", 50_000);
    bench.finish(1).await;
    assert_eq!(vec!["MINER_BOND", "CLAIM", "STEP", "FINISH"], bench.sent());
    assert_eq!((50_000, 50_000), stake(&bench));
    let view = bench.chain.run_of(&run);
    assert_eq!((RunStatus::Completed, Some(10)), (view.status, view.reward_micro));
    let own = bench.chain.of_miner(&key().address()).await.unwrap();
    assert_eq!(Held { runs: 1, micro: 10 }, Held::of(&own));
    let earned = |it: Earnings| (it.completed, it.earned_micro, it.held_micro, it.refused);
    assert_eq!((1, 0, 10, 0), earned(Earnings::of(&own)));
    let before = bench.chain.state.lock().balance(&key().address());
    bench.chain.pass(2 * HELD_MS);
    assert_eq!(before + 10, bench.chain.state.lock().balance(&key().address()));
    assert_eq!((50_000, 0), stake(&bench));
    let own = bench.chain.of_miner(&key().address()).await.unwrap();
    assert_eq!((1, 10, 0, 0), earned(Earnings::of(&own)));
    // What is free serves the next run, and only what is missing is added.
    bench.clock.0.store(bench.chain.state.lock().now_ms, Ordering::SeqCst);
    ask(&bench, "y", 50_000);
    bench.finish(2).await;
    assert_eq!(vec!["CLAIM", "STEP", "FINISH"], bench.sent()[4..]);
    ask(&bench, "z", 20_000);
    bench.finish(3).await;
    assert_eq!(vec!["MINER_BOND", "CLAIM", "STEP", "FINISH"], bench.sent()[7..]);
    assert_eq!((70_000, 70_000), stake(&bench));
    assert!(bench.chain.state.lock().lost.is_empty());
}

#[tokio::test]
async fn a_refused_reward_is_not_earned() {
    let bench = bench();
    let agent_run_id = ask(&bench, "x", 50_000);
    bench.finish(1).await;
    bench.chain.submit(&fixtures::refuse(agent_run_id));
    let own = bench.chain.of_miner(&key().address()).await.unwrap();
    let Earnings { earned_micro, held_micro, refused, .. } = Earnings::of(&own);
    assert_eq!((0, 0, 1), (earned_micro, held_micro, refused));
    // As much of the bond as the requester paid for it, and the reward.
    assert_eq!((39_990, 0), stake(&bench));
}

#[tokio::test]
async fn claims_at_the_same_time_do_not_count_on_the_same_bond() {
    let bench = bench();
    bench.change_policy(|policy| policy.bond_micro_max = 80_000);
    let runs = [ask(&bench, "x tools=3", 30_000), ask(&bench, "y tools=3", 30_000)];
    bench.finish(2).await;
    let sent = bench.sent();
    assert_eq!(2, sent.iter().filter(|kind| **kind == "MINER_BOND").count(), "{sent:?}");
    assert_eq!((60_000, 60_000), stake(&bench));
    for run in runs {
        assert_eq!(RunStatus::Completed, bench.status(&run));
    }
    // The third has no room, and waits until a reward is paid.
    let third = ask(&bench, "z", 30_000);
    let decided = || {
        let told = bench.journal.why(&third).unwrap().decisions;
        told.last().is_some_and(|noted| noted.decision.code() == "BOND_LOW")
    };
    bench.during(bench.counters.until(|_| decided())).await;
    assert_eq!(RunStatus::Pending, bench.chain.run_of(&third).status);
    bench.chain.pass(2 * HELD_MS);
    bench.finish(3).await;
    assert_eq!(RunStatus::Completed, bench.chain.run_of(&third).status);
    assert_eq!((60_000, 30_000), stake(&bench));
    assert!(bench.chain.state.lock().lost.is_empty());
}

#[tokio::test]
async fn a_bond_that_is_refused_ends_the_claim_before_it_is_signed() {
    let bench = bench();
    ask(&bench, "x", 50_000);
    bench.chain.state.lock().refuse.push("INSUFFICIENT_BALANCE");
    // It is decided about again, and the second bond is taken.
    bench.finish(1).await;
    assert_eq!(vec!["MINER_BOND", "CLAIM", "STEP", "FINISH"], bench.sent());
    let state = bench.chain.state.lock();
    assert_eq!(vec!["INSUFFICIENT_BALANCE"], state.rejections);
    assert!(state.lost.is_empty(), "{:?}", state.lost);
}

/// A claim of a run that a rival got. The rival has given the run up since, and somebody has sent the claim
/// again.
async fn replay_a_lost_claim(bench: &Bench, run: Hash) {
    let rival = Keypair::from_seed(&[7; 32]);
    bench.chain.state.lock().set_balance(&rival.address(), 60_000);
    bench.chain.act(&rival, &Body::MinerBond(MinerBond { amount: Amount::new(50_000) }));
    bench.chain.until(|state| state.pool.len() == 1).await;
    // The miner's bond is in a block.
    bench.chain.make_block();
    let is_claim = |tx: &CheckedTx| tx.body().type_name() == "AGENT_CLAIM";
    bench.chain.until(|state| state.pool.iter().any(is_claim)).await;
    let lost = bench.chain.state.lock().pool[0].to_json();
    bench.chain.state.lock().rivals.push((run, rival.clone()));
    bench.chain.make_block();
    bench.counters.until(|events| events.contains(&Event::LostRace)).await;
    bench.change_policy(|policy| policy.claiming = false);
    let given_up =
        AgentFinish { status: "failed".to_owned(), ..fixtures::finish(run, 0, [0, 10_000, 0]) };
    bench.chain.act(&rival, &Body::AgentFinish(given_up));
    bench.chain.send(&lost).await.unwrap();
    bench.make_blocks_again();
}

#[tokio::test]
async fn a_lost_claim_that_somebody_sends_again_is_given_up_and_keeps_the_bond() {
    for is_told in [true, false] {
        let mut bench = bench();
        if is_told {
            bench.config.poll_ms = 600_000;
        }
        bench.chain.state.lock().is_halted = true;
        let run = ask(&bench, "x", 50_000);
        let (notices, receiver) = mpsc::channel(1);
        let given_back = || bench.entry(&run).phase == Phase::Over(Outcome::GivenBack);
        let happens = async {
            replay_a_lost_claim(&bench, run).await;
            if is_told {
                notices.send(Notice::Claimed { run, miner: key().address() }).await.unwrap();
            }
            assert!(comes(given_back).await, "told: {is_told}, {:?}", bench.entry(&run).phase);
        };
        bench.during_with(receiver, happens).await;
        let view = bench.chain.run_of(&run);
        assert_eq!(RunStatus::Pending, view.status);
        assert!(view.excluded.contains(&key().address()), "it can be sent again no more");
        assert_eq!(vec!["MINER_BOND", "CLAIM", "FINISH"], bench.sent(), "told: {is_told}");
        assert_eq!((49_900, 0), stake(&bench), "told: {is_told}");
    }
}

#[tokio::test]
async fn a_step_has_no_more_tokens_than_the_run_allows() {
    let bench = Bench::understanding();
    bench.chain.state.lock().begin_with_v7();
    let run = bench.chain.add_run_with("tale=30", 10_000, 10, |request| {
        let max_tokens_per_step = Some(8);
        request.protection = Protection { max_tokens_per_step, ..Protection::default() }.into();
    });
    bench.finish(1).await;
    let view = bench.chain.run_of(&run);
    assert_eq!((RunStatus::Completed, 4, 30), (view.status, view.steps, view.tokens));
    assert!(bench.chain.state.lock().lost.is_empty());
}

#[tokio::test]
async fn a_high_base_fee_holds_a_transaction_up_and_does_not_end_it() {
    let bench = bench();
    ask(&bench, "x", 50_000);
    bench.chain.state.lock().refuse.extend(["FEE_ABOVE_MAX"; 7]);
    bench.finish(1).await;
    assert_eq!(vec!["MINER_BOND", "CLAIM", "STEP", "FINISH"], bench.sent());
}

/// A long answer costs its place, and the money of this miner is in its bond.
#[tokio::test]
async fn an_answer_that_cannot_be_paid_ends_the_run_without_it_and_keeps_the_bond() {
    let bench = bench();
    ask(&bench, "x", 50_000);
    bench.finish(1).await;
    bench.chain.pass(2 * HELD_MS);
    bench.clock.0.store(bench.chain.state.lock().now_ms, Ordering::SeqCst);
    bench.chain.state.lock().set_balance(&key().address(), 5);
    let long = ask(&bench, "long=10000", 50_000);
    bench.finish(2).await;
    let expected = "the answer has 10004 bytes and its place was refused: INSUFFICIENT_BALANCE";
    let answer = bench.answer(&long);
    assert_eq!((RunStatus::Failed, Some(expected)), (bench.status(&long), answer.as_deref()));
    bench.chain.pass(2 * HELD_MS);
    assert_eq!((50_000, 0), stake(&bench));
}

/// A chain on which somebody asks for a protected run.
fn chain(folder: &Path) -> FakeChain {
    let chain = FakeChain::new();
    chain.state.lock().begin_with_v7();
    chain.add_run_with("x", 10_000, 10, protected(50_000, HELD_MS));
    chain.with_file(&folder.join("chain"))
}

/// Works until the run is settled.
fn work(folder: &Path, point: u64) {
    die_or_do(folder, point, async {
        let bench = Bench::at(folder, chain(folder), None);
        let is_over = |_: &[Event]| {
            bench.chain.state.lock().runs().iter().all(|run| run.status == RunStatus::Completed)
        };
        bench.during(bench.counters.until(is_over)).await;
    });
}

fn check(folder: &Path, deaths: &str) {
    let bench = Bench::at(folder, chain(folder), None);
    assert_eq!(vec!["MINER_BOND", "CLAIM", "STEP", "FINISH"], bench.sent(), "{deaths}");
    assert_eq!((50_000, 50_000), stake(&bench), "{deaths}");
    check_refused(folder, deaths);
}

#[test]
fn a_miner_that_dies_around_a_bond_bonds_once() {
    const NAME: &str = "engine::tests::bonding::a_miner_that_dies_around_a_bond_bonds_once";
    if !is_worker(work) {
        dies_at_every_point(NAME, 12, check);
    }
}
