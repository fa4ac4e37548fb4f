//! The engine on a fake chain: what it sends, what it never sends twice, how it ends.

mod blobs;
mod bonding;
mod flood;
mod hostile;
mod losses;
pub(crate) mod support;
mod sweep;
mod throughput;
pub(crate) mod torture;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent::backend::breaker::Guarded;
use agent::backend::{BackendError, Health};
use agent::clock::Clock;
use agent::messages::ToolSpec;
use fixtures::{cancel, step};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use types::tx::AgentRequest;
use types::{Hash, Keypair, Params, RunStatus};
use wallet::{Envelope, Signed};

use super::receipt::{Earnings, receipt};
use super::{PolicyNews, Reread, budget, follow_policy};
use crate::chain::fake::{CHAIN, claim};
use crate::chain::{Ledger as _, Notice, Runs};
use crate::journal::Spent;
use crate::journal::entry::{Day, Outcome, Parcel, Phase, Purpose};
use crate::outbox::UNDER_WAY_MAX;
use crate::policy::{Decision, PolicyFile, Reason, Unit};
use crate::ports::{Ending, Event};
use crate::testing::comes;
use support::{Bench, TestClock, key};

#[tokio::test]
async fn a_run_is_claimed_worked_on_and_settled() {
    let bench = Bench::new();
    let run = bench.settle("tools=2 once=1", 10_000, 10).await;
    assert_eq!(vec!["CLAIM", "STEP", "STEP", "STEP", "FINISH"], bench.sent());
    assert_eq!((RunStatus::Completed, 3, 33), (run.status, run.steps, run.tokens));
    assert_eq!(Some(33), run.reward_micro);
    let answer = bench.chain.state.lock().answer(&run.id);
    assert_eq!(Some("done"), answer.final_answer_inline.as_deref());
    assert_eq!((9_667, 300), (answer.user_refund.get(), answer.network_fee.get()));
    let ended = Outcome::Ended { status: RunStatus::Completed, reward_micro: 33 };
    assert_eq!(Phase::Over(ended), bench.entry(&run.id).phase);
    assert_eq!(vec!["pure0", "once0", "pure1"], *bench.tools.calls.lock());
}

#[tokio::test]
async fn a_clock_that_is_ahead_makes_no_transaction_that_pools_would_have_wait() {
    let bench = Bench::new();
    let head_ms = bench.chain.head().await.unwrap().block_ms;
    bench.clock.0.store(head_ms + 300_000, Ordering::SeqCst);
    bench.settle("tools=1", 10_000, 10).await;
    let latest_ms = bench.chain.head().await.unwrap().block_ms + 60_000;
    let signed_ms = bench.signed_ms();
    assert!(!signed_ms.is_empty());
    assert!(signed_ms.iter().all(|ms| *ms <= latest_ms), "{signed_ms:?}, {latest_ms}");
}

#[tokio::test]
async fn a_clock_that_is_behind_makes_no_deadline_later() {
    let mut bench = Bench::new();
    // The chain makes blocks at the time that this clock had.
    bench.clock.0.fetch_sub(119_000, Ordering::SeqCst);
    bench.config.deadline_margin_ms = 119_900;
    let run = bench.settle("stall", 10_000, 3).await;
    assert_eq!(RunStatus::Timeout, run.status);
    assert_eq!(vec!["CLAIM", "FINISH"], bench.sent());
}

#[tokio::test]
async fn a_run_that_ends_soon_is_not_claimed_with_a_clock_that_is_behind() {
    let bench = Bench::new();
    let run = bench.chain.add_run("x", 10_000, 3);
    bench.chain.pass(Params::default().pending_ttl_ms - 3_000);
    bench.until_decided("TOO_LATE").await;
    assert_eq!(RunStatus::Pending, bench.status(&run));
    assert!(bench.sent().is_empty());
}

#[tokio::test]
async fn a_step_reports_its_output_and_its_calls() {
    let bench = Bench::new();
    bench.settle("tools=1 once=1", 10_000, 10).await;
    let step = bench.chain.state.lock().step_bodies().remove(0);
    assert_eq!(Hash::digest(b"round 0"), step.output_hash);
    let calls = step.tool_calls.unwrap();
    assert_eq!(("pure", "once"), (&*calls[0].name, &*calls[1].name));
    assert_eq!(Hash::digest(br#"{"round":0}"#), calls[0].args_hash);
    assert_eq!(Hash::digest(b"result of once0"), calls[1].result_hash);
    assert_eq!((true, 5), (calls[0].ok, calls[0].duration_ms));
}

#[tokio::test]
async fn a_receipt_hashes_to_what_is_on_the_chain() {
    let bench = Bench::new();
    let run = bench.settle("tools=1", 10_000, 10).await.id;
    let mut receipt = receipt(&bench.journal, &run).unwrap().unwrap();
    let steps = bench.chain.steps(&run).await.unwrap();
    assert!(receipt.differences(&steps).is_empty());
    assert_eq!(Some("done"), receipt.answer.as_deref());
    receipt.steps[0].calls[0].result.push('.');
    receipt.steps[1].output.push('.');
    let found: Vec<_> =
        receipt.differences(&steps).into_iter().map(|it| (it.step, it.what)).collect();
    assert_eq!(vec![(0, "resultHash".to_owned()), (1, "outputHash".to_owned())], found);
    receipt.steps.pop();
    assert_eq!("the number of steps", receipt.differences(&steps)[0].what);
}

/// What is kept of a run that is over: its end in the receipt, the answer, and the line of `why`.
fn kept(bench: &Bench, run: &Hash) -> (String, Option<String>, String) {
    let receipt = receipt(&bench.journal, run).unwrap().unwrap();
    let line = crate::operate::tell::why(&bench.journal, run).unwrap().unwrap();
    (receipt.ended.unwrap().status, receipt.answer, line.state.unwrap())
}

#[tokio::test]
async fn a_receipt_has_the_reason_of_a_run_that_ended_early() {
    let mut slow = Bench::new();
    slow.config.deadline_margin_ms = 119_900;
    let timeout = "no answer of the model before the deadline of the chain";
    let limit = "no answer within the 3 steps of maxSteps";
    let money = "the escrow does not pay for another step";
    let cases = [
        (slow, "stall", 10_000, RunStatus::Timeout, 0, timeout),
        (Bench::new(), "tools=9", 10_000, RunStatus::Failed, 3, limit),
        (Bench::new(), "tools=9", 120, RunStatus::InsufficientFunds, 1, money),
    ];
    for (bench, prompt, escrow, status, steps, why) in cases {
        let run = bench.settle(prompt, escrow, 3).await;
        let steps_run = usize::try_from(run.steps).unwrap();
        assert_eq!((status, steps), (run.status, steps_run), "{prompt}");
        let sent = [vec!["CLAIM"], vec!["STEP"; steps], vec!["FINISH"]].concat();
        assert_eq!(sent, bench.sent(), "{prompt}");
        let (ended, told, line) = kept(&bench, &run.id);
        assert_eq!((status.as_str(), bench.answer(&run.id)), (&*ended, told.clone()), "{prompt}");
        assert_eq!(Some(why), told.as_deref(), "{prompt}");
        let reward = run.reward_micro.unwrap();
        assert_eq!(format!("ended as {ended}, reward {reward} micro: {why}"), line);
    }
}

#[tokio::test]
async fn a_receipt_has_the_reason_also_where_the_miner_died_after_the_settlement_was_signed() {
    let mut bench = Bench::new();
    bench.config.deadline_margin_ms = 119_900;
    bench.chain.state.lock().is_halted = true;
    let run = bench.chain.add_run("stall", 10_000, 3);
    let is_finish = |tx: &types::CheckedTx| tx.body().type_name() == "AGENT_FINISH";
    let signed = async {
        bench.chain.until(|state| state.pool.len() == 1).await;
        bench.chain.make_block();
        bench.chain.until(|state| state.pool.iter().any(is_finish)).await;
    };
    bench.during(signed).await;
    bench.make_blocks_again();
    assert_eq!(RunStatus::Timeout, bench.status(&run));
    bench.finish(1).await;
    let (ended, told, _) = kept(&bench, &run);
    let why = "no answer of the model before the deadline of the chain";
    assert_eq!(("timeout", Some(why)), (&*ended, told.as_deref()));
}

#[tokio::test]
async fn a_receipt_says_of_a_run_that_the_chain_ended_that_it_was_not_the_miner() {
    let (bench, run) = stopped_in_the_middle().await;
    bench.chain.pass(Params::default().step_ttl_ms + 1_000);
    bench.finish(1).await;
    let (ended, told, line) = kept(&bench, &run);
    let why = "a deadline of the chain ended the run before this miner did";
    assert_eq!(("timeout", Some(why)), (&*ended, told.as_deref()));
    assert!(line.ends_with(&format!(": {why}")), "{line}");
}

/// A rival gets the run whose claim has this place in the pool, where these many are.
async fn lose_a_claim(bench: &Bench, claims: usize, place: usize) -> Hash {
    bench.chain.until(|state| state.pool.len() == claims).await;
    let lost = bench.chain.state.lock().pool[place].body().agent_run_id().unwrap();
    bench.chain.state.lock().rivals.push((lost, Keypair::from_seed(&[7; 32])));
    bench.chain.make_block();
    lost
}

#[tokio::test]
async fn a_lost_race_leaves_no_gap_in_the_nonces() {
    let (bench, ids) = halted(2);
    let happens = async {
        // Both claims are under way: something must take the nonce of the one that is lost.
        let lost = lose_a_claim(&bench, 2, 0).await;
        bench.chain.state.lock().is_halted = false;
        bench.counters.until_finished(1).await;
        lost
    };
    let lost = bench.during(happens).await;
    let won = ids.into_iter().find(|run| *run != lost).unwrap();
    assert_eq!(vec!["TRANSFER", "CLAIM", "STEP", "FINISH"], bench.sent());
    assert_eq!(vec![0, 1, 2, 3], bench.nonces());
    assert_eq!(RunStatus::Completed, bench.status(&won));
    let refused = Outcome::ClaimRefused("RUN_NOT_PENDING".into());
    assert_eq!(Phase::Over(refused), bench.entry(&lost).phase);
    assert!(bench.counters.events.lock().contains(&Event::LostRace));
    let day = bench.journal.day(1_000_000).unwrap();
    assert_eq!((1, 1), (day.claims, day.lost));
}

#[tokio::test]
async fn a_claim_of_another_in_the_pool_is_not_raced_until_it_lapses_or_is_ten_seconds_old() {
    for lapses in [true, false] {
        let bench = Bench::new();
        bench.change_policy(|policy| policy.claiming = false);
        let run = bench.chain.add_run("x", 10_000, 10);
        let miner = Keypair::from_seed(&[7; 32]).address();
        let (notices, receiver) = mpsc::channel(4);
        let happens = async {
            notices.send(Notice::Claim { run, miner }).await.unwrap();
            notices.send(Notice::Claim { run: Hash::ZERO, miner }).await.unwrap();
            bench.counters.until_decided("PAUSED").await;
            bench.counters.events.lock().clear();
            bench.change_policy(|policy| policy.claiming = true);
            bench.counters.until_decided("RIVAL_CLAIM").await;
            if lapses {
                notices.send(Notice::Open(run)).await.unwrap();
            } else {
                bench.clock.0.fetch_add(10_000, Ordering::SeqCst);
            }
            bench.counters.until_finished(1).await;
        };
        bench.during_with(receiver, happens).await;
        assert_eq!(vec!["CLAIM", "STEP", "FINISH"], bench.sent(), "lapses: {lapses}");
    }
}

#[tokio::test]
async fn claims_that_never_come_into_a_block_keep_a_miner_from_a_run_once() {
    let bench = Bench::new();
    bench.change_policy(|policy| policy.claiming = false);
    let run = bench.chain.add_run("x", 10_000, 10);
    let (notices, receiver) = mpsc::channel(4);
    let claim = |seed| Notice::Claim { run, miner: Keypair::from_seed(&[seed; 32]).address() };
    let happens = async {
        notices.send(claim(7)).await.unwrap();
        notices.send(claim(7)).await.unwrap();
        bench.counters.until_decided("PAUSED").await;
        // The second one comes just before the first one counts no more.
        bench.clock.0.fetch_add(9_000, Ordering::SeqCst);
        notices.send(claim(8)).await.unwrap();
        notices.send(Notice::Claim { run: Hash::ZERO, miner: key().address() }).await.unwrap();
        bench.change_policy(|policy| policy.claiming = true);
        bench.counters.until_decided("RIVAL_CLAIM").await;
        bench.clock.0.fetch_add(1_000, Ordering::SeqCst);
        bench.counters.until_finished(1).await;
    };
    bench.during_with(receiver, happens).await;
    assert_eq!(vec!["CLAIM", "STEP", "FINISH"], bench.sent());
}

#[tokio::test]
async fn a_notice_leads_to_a_claim_without_waiting_for_the_poll() {
    let mut bench = Bench::new();
    bench.config.poll_ms = 600_000;
    let (notices, receiver) = mpsc::channel(4);
    bench.chain.add_run("nonsense", 10_000, 10);
    let happens = async {
        // The first listing finds only nonsense; the run comes after it.
        bench.counters.until_decided("UNREADABLE").await;
        let run = bench.chain.add_run("x", 10_000, 10);
        notices.send(Notice::Open(run)).await.unwrap();
        bench.counters.until_finished(1).await;
    };
    bench.during_with(receiver, happens).await;
}

#[tokio::test]
async fn an_escrow_that_is_used_up_ends_the_run_and_pays_what_was_done() {
    // (escrow, steps, tokens)
    let cases = [(209, 1, 10), (210, 1, 10), (215, 2, 15), (220, 2, 20), (221, 2, 21)];
    for (escrow, steps, tokens) in cases {
        let run = Bench::new().settle("tools=1", escrow, 10).await;
        assert_eq!((steps, tokens), (run.steps, run.tokens), "{escrow}");
        let status =
            if escrow == 221 { RunStatus::Completed } else { RunStatus::InsufficientFunds };
        assert_eq!(status, run.status, "{escrow}");
        assert_eq!(Some(tokens), run.reward_micro, "{escrow}: every token is paid");
    }
}

/// The answer of a run whose model tells a tale of 30 words, at most 8 in a step, and how it ends.
async fn tale(escrow: u64, steps_max: u64) -> (RunStatus, u64, u64, String) {
    let mut bench = Bench::understanding();
    bench.config.output_tokens_max = 8;
    let run = bench.settle("tale=30", escrow, steps_max).await;
    assert_eq!(Some(run.tokens), run.reward_micro, "every token is paid");
    let receipt = receipt(&bench.journal, &run.id).unwrap().unwrap();
    let steps = bench.chain.steps(&run.id).await.unwrap();
    assert!(receipt.differences(&steps).is_empty(), "each step has the hash of its own part");
    (run.status, run.steps, run.tokens, bench.answer(&run.id).unwrap())
}

fn words(count: usize) -> String {
    (0..count).map(|word| format!("w{word} ")).collect()
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_gone_on_with_in_the_next_step() {
    assert_eq!((RunStatus::Completed, 4, 30, words(30)), tale(10_000, 10).await);
}

#[tokio::test]
async fn a_step_has_no_more_tokens_than_the_chain_takes() {
    let settled = async |escrow| {
        let bench = Bench::understanding();
        bench.chain.change_params(|params| params.max_output_tokens_per_step = 8);
        let run = bench.settle("tale=30", escrow, 10).await;
        (bench, run)
    };
    let (bench, run) = settled(10_000).await;
    assert_eq!((RunStatus::Completed, 4, 30), (run.status, run.steps, run.tokens));
    assert_eq!(Some(30), run.reward_micro);
    assert_eq!(Some(words(30)), bench.answer(&run.id));
    assert!(bench.chain.state.lock().lost.is_empty());
    // The escrow, and not the chain's limit, ends this one: 300 micro of fees, 21 tokens.
    let (_, run) = settled(321).await;
    assert_eq!((RunStatus::InsufficientFunds, 3, 21), (run.status, run.steps, run.tokens));
}

#[tokio::test]
async fn what_there_is_of_an_answer_is_told_when_the_steps_or_the_money_end() {
    let cut = |count, why: &str| format!("{}\n\n[cut off: {why}]", words(count));
    let steps = cut(16, "no answer within the 2 steps of maxSteps");
    assert_eq!((RunStatus::Failed, 2, 16, steps), tale(10_000, 2).await);
    // Two steps and five tokens of a third.
    let money = cut(21, "the escrow paid for 5 more tokens, and the answer was cut there");
    assert_eq!((RunStatus::InsufficientFunds, 3, 21, money), tale(321, 10).await);
    // The second step ends with the escrow.
    let money = cut(16, "the escrow paid for 8 more tokens, and the answer was cut there");
    assert_eq!((RunStatus::InsufficientFunds, 2, 16, money), tale(216, 10).await);
    // Something is left, but not for the fee of a step.
    let money = cut(16, "the escrow does not pay for another step");
    assert_eq!((RunStatus::InsufficientFunds, 2, 16, money), tale(316, 10).await);
}

#[tokio::test]
async fn what_there_is_of_an_answer_is_told_when_the_model_cannot_go_on() {
    let mut bench = Bench::understanding();
    bench.config.output_tokens_max = 8;
    let run = bench.chain.add_run("tale=30", 10_000, 10);
    let stepped = |events: &[Event]| events.contains(&Event::Step { tokens: 8 });
    let too_long =
        BackendError::TooLong { tokens_min: 9, output_tokens: 8, context_tokens_max: 16 };
    bench.during(bench.counters.until(stepped)).await;
    *bench.model.failures.lock() = vec![too_long];
    bench.finish(1).await;
    let view = bench.chain.run_of(&run);
    assert_eq!(RunStatus::Failed, view.status);
    let told = usize::try_from(view.tokens).unwrap();
    let why = "the conversation does not fit the model's context";
    assert_eq!(Some(format!("{}\n\n[cut off: {why}]", words(told))), bench.answer(&run));
}

#[tokio::test]
async fn a_prompt_without_room_is_not_claimed() {
    let bench = Bench::new();
    bench.model.room_bytes.store(20, Ordering::SeqCst);
    let long = bench.chain.add_run("a prompt that is too long for the model", 9_000, 5);
    let short = bench.chain.add_run("short", 8_000, 5);
    bench.finish(1).await;
    assert_eq!(RunStatus::Completed, bench.status(&short));
    assert_eq!(RunStatus::Pending, bench.status(&long));
    assert_eq!("PROMPT_TOO_LONG", bench.decision(&long).code());
}

#[tokio::test]
async fn a_prompt_needs_room_for_no_more_than_a_step_may_have() {
    let bench = Bench::new();
    bench.model.room_bytes.store(20, Ordering::SeqCst);
    bench.chain.change_params(|params| params.max_output_tokens_per_step = 8);
    let run = bench.chain.add_run("a prompt that is too long for the model", 9_000, 5);
    bench.until_decided("PROMPT_TOO_LONG").await;
    let reason = Reason::PromptTooLong { got: 39, max: 12, unit: Unit::Tokens };
    assert_eq!(Decision::Skip(reason), bench.decision(&run));
}

#[tokio::test]
async fn nothing_is_claimed_while_the_node_catches_up() {
    let bench = Bench::new();
    bench.chain.state.lock().is_syncing = true;
    let run = bench.chain.add_run("x", 9_000, 5);
    let happens = async {
        bench.counters.until_decided("NODE_SYNCING").await;
        assert!(bench.sent().is_empty());
        bench.chain.state.lock().is_syncing = false;
        bench.counters.until_finished(1).await;
    };
    bench.during(happens).await;
    assert_eq!(RunStatus::Completed, bench.status(&run));
}

fn spec(name: &str) -> ToolSpec {
    let parameters = serde_json::json!({ "type": "object" });
    ToolSpec { name: name.into(), description: String::new(), parameters }
}

/// A run that was stopped in the middle, when its model was offered the tool `pure`.
async fn stopped_in_the_middle() -> (Bench, Hash) {
    let bench = Bench::new();
    *bench.offer.lock() = vec![spec("pure")];
    let run = bench.chain.add_run("tools=150", 90_000, 190);
    bench.during(bench.counters.until(|events| steps_of(events) > 0)).await;
    (bench, run)
}

fn steps_of(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Step { .. })).count()
}

#[tokio::test]
async fn a_run_whose_tools_changed_is_ended_and_says_so() {
    let (bench, run) = stopped_in_the_middle().await;
    bench.offer.lock().push(spec("new"));
    bench.finish(1).await;
    let view = bench.chain.run_of(&run);
    assert_eq!(RunStatus::Failed, view.status);
    assert_eq!(Some(view.tokens), view.reward_micro);
    let why = "the tools that the model was offered are not the same any more";
    assert_eq!(Some(why), bench.answer(&run).as_deref());
}

#[tokio::test]
async fn a_run_whose_tools_stay_away_after_a_restart_is_offered_what_it_was() {
    let (bench, run) = stopped_in_the_middle().await;
    bench.offer.lock().clear();
    *bench.tools.missing.lock() = vec!["pure".into(), "http://the.server/mcp".into()];
    let before = steps_of(&bench.counters.events.lock());
    bench.during(bench.counters.until(|events| steps_of(events) > before + 1)).await;
    let offer = Some(agent::tools::offer_hash(&[spec("pure")]));
    let steps = bench.journal.steps(&run).unwrap();
    assert!(!steps.is_empty() && steps.iter().all(|step| step.tools == offer), "{steps:?}");
}

#[tokio::test]
async fn a_run_whose_model_was_not_asked_yet_waits_for_its_tools() {
    let (bench, ids) = halted(1);
    *bench.offer.lock() = vec![spec("pure")];
    bench.during(bench.chain.until(|state| state.pool.len() == 1)).await;
    bench.make_blocks_again();
    bench.offer.lock().clear();
    *bench.tools.missing.lock() = vec!["pure".into()];
    let happens = async {
        bench.tools.asked_for_missing(5).await;
        assert_eq!(0, bench.model.asked.load(Ordering::SeqCst), "the model is not asked");
        *bench.offer.lock() = vec![spec("pure")];
        bench.tools.missing.lock().clear();
        bench.counters.until_finished(1).await;
    };
    bench.during(happens).await;
    assert_eq!(RunStatus::Completed, bench.status(&ids[0]));
}

#[tokio::test]
async fn a_server_that_cut_the_conversation_fails_the_run() {
    let run = Bench::new().settle("tools=2 shrink", 10_000, 9).await;
    assert_eq!((RunStatus::Failed, 1), (run.status, run.steps));
}

#[tokio::test]
async fn a_failure_is_waited_out_or_ends_the_run_in_words_without_the_servers_address() {
    let url = || "http://secret".to_owned();
    let stalled = BackendError::Stalled { url: url(), silent_ms: 1 };
    let failed = |status| BackendError::Failed { url: url(), status, body: "x".into() };
    let refused = BackendError::Refused { url: url(), status: 400, body: "secret".into() };
    let (done, given_up) = ((RunStatus::Completed, "done"), "the model could not be asked");
    let refuses = "the model's server refuses the request";
    // (the failures, the last one first, how often the model is asked, how the run ends)
    let cases = [
        ("it may pass", vec![stalled; 3], 4, done),
        // Long before the deadline.
        ("the question always fails", vec![failed(500); 9], 5, (RunStatus::Failed, given_up)),
        // What stands before the server may be away for longer.
        ("a proxy", [vec![failed(502); 6], vec![failed(500); 4]].concat(), 11, done),
        ("it stays", vec![refused], 1, (RunStatus::Failed, refuses)),
    ];
    for (name, failures, asked, (status, answer)) in cases {
        let bench = Bench::new();
        *bench.model.failures.lock() = failures;
        let run = bench.settle("x", 10_000, 3).await;
        assert_eq!(
            (status, Some(answer)),
            (run.status, bench.answer(&run.id).as_deref()),
            "{name}"
        );
        assert_eq!(asked, bench.model.asked.load(Ordering::SeqCst), "{name}");
    }
}

#[tokio::test]
async fn after_a_run_whose_questions_failed_the_next_one_is_claimed_when_the_rest_is_over() {
    let mut bench = Bench::new();
    bench.backend = Arc::new(Guarded::new(bench.model.clone(), bench.clock.clone()));
    // The question, and the harmless one after it.
    *bench.model.failures.lock() = vec![BackendError::Model("broken".into()); 2];
    let failed = bench.chain.add_run("a", 10_000, 3);
    let happens = async {
        bench.counters.until_finished(1).await;
        let next = bench.chain.add_run("b", 10_000, 3);
        bench.counters.until_decided("BACKEND_DOWN").await;
        bench.clock.0.fetch_add(5_000, Ordering::SeqCst);
        bench.counters.until_finished(2).await;
        next
    };
    let next = bench.during(happens).await;
    assert_eq!(RunStatus::Failed, bench.status(&failed));
    assert_eq!(RunStatus::Completed, bench.status(&next));
}

#[tokio::test]
async fn a_call_that_cannot_be_read_is_a_step_and_the_model_is_asked_again() {
    let run = Bench::new().settle("garbled", 10_000, 5).await;
    assert_eq!((RunStatus::Completed, 2), (run.status, run.steps));
}

#[tokio::test]
async fn a_blob_of_several_chunks_is_written_in_order() {
    let bench = Bench::new();
    let run = bench.settle("long=900000", 50_000, 5).await.id;
    let state = bench.chain.state.lock();
    let (record, bytes) = state.blob(&state.answer(&run).final_answer_blob_id.unwrap()).unwrap();
    assert_eq!((3, 900_004), (record.received, bytes.len()));
}

#[tokio::test]
async fn without_money_for_blobs_a_step_goes_without_and_a_long_answer_fails() {
    let bench = Bench::new();
    bench.chain.state.lock().set_balance(&key().address(), 50);
    let short = bench.chain.add_run("think", 50_000, 5);
    let long = bench.chain.add_run("think long=20000", 50_000, 5);
    bench.finish(2).await;
    assert_eq!(RunStatus::Completed, bench.status(&short));
    assert_eq!(RunStatus::Failed, bench.status(&long));
    let state = bench.chain.state.lock();
    assert!(state.step_bodies().iter().all(|step| step.thought_blob_id.is_none()));
    let answer = state.answer(&long).final_answer_inline.unwrap();
    assert_eq!("the answer has 20004 bytes and its blob was refused: INSUFFICIENT_BALANCE", answer);
}

#[tokio::test]
async fn turns_are_written_where_the_operator_wants_them() {
    let mut bench = Bench::new();
    bench.config.turns = true;
    bench.settle("tools=1", 10_000, 5).await;
    let turn = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    let expected =
        [turn("assistant", "round 0"), turn("tool", "result of pure0"), turn("assistant", "done")];
    assert_eq!(expected.as_slice(), bench.chain.state.lock().turns());
    let order = ["CLAIM", "STEP", "CHAT_TURN", "CHAT_TURN", "STEP", "CHAT_TURN", "FINISH"];
    assert_eq!(order.as_slice(), bench.sent());
}

#[tokio::test]
async fn turns_that_cannot_be_paid_do_not_hold_up_the_work() {
    let mut bench = Bench::new();
    bench.config.turns = true;
    bench.chain.state.lock().set_balance(&key().address(), 150);
    assert_eq!(RunStatus::Completed, bench.settle("tools=1", 10_000, 5).await.status);
    assert_eq!(1, bench.chain.state.lock().turns().len());
}

#[tokio::test]
async fn a_claim_that_the_journal_does_not_have_is_settled() {
    let bench = Bench::new();
    let (lost, ahead) = (bench.chain.add_run("a", 9_000, 5), bench.chain.add_run("b", 8_000, 5));
    let elsewhere =
        [claim(lost, &key()), claim(ahead, &key()), step(ahead, 0, 30), step(ahead, 1, 40)];
    elsewhere.iter().for_each(|body| bench.chain.act(&key(), body));
    bench.finish(2).await;
    assert_eq!(vec!["FINISH", "FINISH"], bench.sent()[elsewhere.len()..]);
    let reward = |run| bench.chain.run_of(run).reward_micro;
    assert_eq!((Some(0), Some(70)), (reward(&lost), reward(&ahead)));
    assert_eq!(RunStatus::Failed, bench.status(&ahead));
}

#[tokio::test]
async fn a_step_that_the_journal_does_not_have_ends_the_run() {
    let bench = Bench::new();
    let run = bench.chain.add_run("stall", 9_000, 5);
    bench.during(bench.counters.until(|events| events.contains(&Event::Claimed))).await;
    bench.chain.act(&key(), &step(run, 0, 5));
    bench.finish(1).await;
    assert_eq!(RunStatus::Failed, bench.status(&run));
    assert_eq!(vec!["CLAIM", "STEP", "FINISH"], bench.sent());
}

#[tokio::test]
async fn a_node_that_is_away_or_forgets_gets_the_same_bytes_again() {
    let bench = Bench::new();
    (bench.chain.state.lock().away, bench.chain.state.lock().forgets) = (7, 3);
    bench.settle("tools=1", 9_000, 5).await;
    assert_eq!(vec!["CLAIM", "STEP", "STEP", "FINISH"], bench.sent());
    assert!(bench.chain.state.lock().rejections.is_empty());
    assert!(!bench.counters.events.lock().contains(&Event::LostRace));
}

#[tokio::test]
async fn rejections_that_pass_are_waited_out_and_a_taken_nonce_is_replaced() {
    for code in ["SENDER_LIMIT", "POOL_FULL", "EVICTED", "NONCE_STALE", "NONCE_TAKEN"] {
        let bench = Bench::new();
        bench.chain.state.lock().refuse = vec![code];
        bench.settle("x", 9_000, 5).await;
        assert_eq!(vec!["CLAIM", "STEP", "FINISH"], bench.sent(), "{code}");
        assert!(!bench.counters.events.lock().contains(&Event::LostRace), "{code}");
    }
}

#[tokio::test]
async fn a_run_that_the_chain_keeps_refusing_is_given_up_and_the_next_one_is_taken() {
    let bench = Bench::new();
    bench.change_policy(|policy| policy.runs_max = 1);
    bench.chain.state.lock().bad_steps = 5;
    bench.chain.state.lock().bad_finishes = 5;
    let stuck = bench.chain.add_run("stuck", 20_000, 5);
    let next = bench.chain.add_run("next", 10_000, 5);
    bench.finish(1).await;
    let code = "SETTLEMENT_MISMATCH".to_owned();
    assert_eq!(Phase::Over(Outcome::Stuck(code)), bench.entry(&stuck).phase);
    assert_eq!(RunStatus::Completed, bench.status(&next));
    assert_eq!(vec!["CLAIM", "CLAIM", "STEP", "FINISH"], bench.sent());
}

#[tokio::test]
async fn slots_are_reserved_before_the_claim() {
    let bench = Bench::new();
    bench.change_policy(|policy| policy.runs_max = 1);
    for prompt in ["a tools=1", "b tools=1", "c tools=1"] {
        bench.chain.add_run(prompt, 9_000, 5);
    }
    bench.finish(3).await;
    let one = ["CLAIM", "STEP", "STEP", "FINISH"];
    assert_eq!([one, one, one].concat(), bench.sent());
}

/// Runs of equal worth, and a chain that makes blocks only when it is told to.
fn halted(runs: usize) -> (Bench, Vec<Hash>) {
    let bench = Bench::new();
    bench.chain.state.lock().is_halted = true;
    let ids = (0..runs).map(|number| bench.chain.add_run(&format!("run {number}"), 9_000, 5));
    let ids = ids.collect();
    (bench, ids)
}

/// A chain that makes a block whenever so many transactions wait.
async fn blocks_of(bench: &Bench, transactions: usize) {
    loop {
        bench.chain.until(|state| state.pool.len() == transactions).await;
        bench.chain.make_block();
    }
}

#[tokio::test]
async fn transactions_of_several_runs_are_under_way_together() {
    let (bench, _) = halted(4);
    let before = bench.chain.state.lock().height();
    let happens = async {
        tokio::select! {
            () = blocks_of(&bench, 4) => unreachable!("it makes blocks for ever"),
            () = bench.counters.until_finished(4) => (),
        }
    };
    bench.during(happens).await;
    let kinds = [["CLAIM"; 4], ["STEP"; 4], ["FINISH"; 4]].concat();
    assert_eq!(kinds, bench.sent());
    let blocks = bench.chain.state.lock().height() - before;
    assert_eq!(3, blocks, "a block for each of three steps of the work");
}

#[tokio::test]
async fn a_bound_is_kept_on_what_is_under_way() {
    let (bench, _) = halted(20);
    bench.change_policy(|policy| policy.runs_max = 20);
    let happens = async {
        bench.chain.until(|state| state.pool.len() == UNDER_WAY_MAX).await;
        let reserved = |it: &&Event| **it == Event::Decided("CLAIM");
        bench.counters.until(|events| events.iter().filter(reserved).count() == 20).await;
        assert_eq!(UNDER_WAY_MAX, bench.chain.state.lock().pool.len());
        assert_eq!(UNDER_WAY_MAX, bench.journal.outbox().unwrap().len());
        bench.make_blocks_again();
        bench.counters.until_finished(20).await;
    };
    bench.during(happens).await;
    assert!(bench.chain.state.lock().rejections.is_empty());
}

/// Plays that a rival gets one of four runs while all four claims are in the pool.
async fn one_is_lost(lost: usize) -> Bench {
    let (bench, ids) = halted(4);
    let happens = async {
        lose_a_claim(&bench, 4, lost).await;
        bench.chain.state.lock().is_halted = false;
        bench.counters.until_finished(3).await;
    };
    bench.during(happens).await;
    let done = |id: &&Hash| bench.status(id) == RunStatus::Completed;
    assert_eq!(3, ids.iter().filter(done).count());
    assert_eq!(vec!["RUN_NOT_PENDING"], bench.chain.state.lock().lost);
    assert!(bench.journal.outbox().unwrap().is_empty());
    bench.check_nonces();
    bench
}

#[tokio::test]
async fn a_lost_claim_does_not_hold_up_those_behind_it() {
    for lost in 0..4 {
        let bench = one_is_lost(lost).await;
        let fillers = bench.sent().into_iter().filter(|kind| *kind == "TRANSFER").count();
        assert!(fillers <= 1, "{lost}: {:?}", bench.sent());
        let claims = bench.sent().into_iter().filter(|kind| *kind == "CLAIM").count();
        assert_eq!(3, claims, "{lost}: no claim is made twice");
    }
}

/// A miner that died when the claims of `runs` runs were under way, and those with these nonces were
/// known to be lost: it had done nothing about that. The chain makes blocks again.
async fn died_with_gaps(runs: usize, nonces: &[u64]) -> Bench {
    let (bench, _) = halted(runs);
    bench.during(bench.chain.until(|state| state.pool.len() == runs)).await;
    for parcel in bench.journal.outbox().unwrap() {
        if !nonces.contains(&parcel.nonce) {
            continue;
        }
        let entry = bench.entry(&parcel.run);
        let lost = entry.at(Phase::Over(Outcome::ClaimRefused("RUN_NOT_PENDING".into())));
        let spent = Spent { now_ms: 1_000_000, add: Day::default() };
        bench.journal.resolve(Some(&lost), parcel.nonce, spent).await.unwrap();
        bench.chain.state.lock().pool.retain(|tx| tx.nonce() != parcel.nonce);
        bench.chain.submit(&cancel(parcel.run));
    }
    bench.chain.state.lock().is_halted = false;
    bench
}

#[tokio::test]
async fn a_miner_that_is_stopped_with_gaps_fills_them_at_its_next_start() {
    let cases = [
        (3, &[0][..], &["TRANSFER", "CLAIM", "CLAIM"][..]),
        (4, &[0, 2], &["TRANSFER", "CLAIM", "TRANSFER", "CLAIM"]),
    ];
    for (runs, gaps, sent) in cases {
        let bench = died_with_gaps(runs, gaps).await;
        bench.finish(2).await;
        assert_eq!(*sent, bench.sent()[..runs], "{gaps:?}");
        assert!(bench.chain.state.lock().rejections.is_empty(), "{gaps:?}");
        assert!(bench.journal.outbox().unwrap().is_empty(), "{gaps:?}");
    }
}

#[tokio::test]
async fn a_miner_that_died_before_it_sent_a_filler_sends_it_with_one_for_the_gap_above() {
    let bench = died_with_gaps(3, &[0, 1]).await;
    let (timestamp, chain_id) = (bench.clock.now_ms(), Some(CHAIN.into()));
    let envelope = Envelope::new(0, timestamp, chain_id);
    let signed = Signed::new(&key(), &envelope, &fixtures::transfer(key().address(), 0));
    let (hash, text) = (signed.hash(), signed.text().to_owned());
    let filler = Parcel { nonce: 0, hash, text, run: Hash::ZERO, purpose: Purpose::Filler };
    bench.journal.sign(None, &filler).await.unwrap();
    bench.finish(1).await;
    assert_eq!(vec!["TRANSFER", "TRANSFER", "CLAIM"], bench.sent()[..3]);
    assert!(bench.chain.state.lock().rejections.is_empty());
    assert!(bench.journal.outbox().unwrap().is_empty());
}

#[tokio::test]
async fn a_node_that_is_behind_does_not_make_the_miner_sign_a_nonce_again() {
    let bench = Bench::new();
    bench.chain.state.lock().nonces_behind = 1;
    bench.settle("tools=2", 9_000, 5).await;
    assert!(bench.chain.state.lock().rejections.is_empty());
    assert_eq!(vec!["CLAIM", "STEP", "STEP", "STEP", "FINISH"], bench.sent());
}

#[tokio::test]
async fn claims_under_way_count_for_the_limit_of_a_day() {
    let (bench, _) = halted(4);
    bench.change_policy(|policy| policy.claims_per_day_max = 2);
    let happens = async {
        bench.counters.until_decided("CLAIMS_TODAY").await;
        bench.chain.until(|state| state.pool.len() == 2).await;
        bench.make_blocks_again();
        bench.counters.until_finished(2).await;
    };
    bench.during(happens).await;
    assert_eq!(2, bench.sent().into_iter().filter(|kind| *kind == "CLAIM").count());
}

#[tokio::test]
async fn a_day_has_its_limit_of_claims() {
    let bench = Bench::new();
    let day_ms = 24 * 60 * 60 * 1_000;
    bench.chain.change_params(|params| params.pending_ttl_ms = 2 * day_ms);
    bench.change_policy(|policy| (policy.claims_per_day_max, policy.runs_max) = (1, 1));
    bench.chain.add_run("a", 9_000, 5);
    bench.chain.add_run("b", 8_000, 5);
    bench.until_decided("CLAIMS_TODAY").await;
    assert_eq!(vec!["CLAIM", "STEP", "FINISH"], bench.sent());
    // The next day.
    bench.clock.0.fetch_add(day_ms, Ordering::SeqCst);
    bench.chain.pass(day_ms);
    bench.finish(2).await;
    assert_eq!(6, bench.sent().len());
}

#[tokio::test]
async fn nothing_is_claimed_while_the_back_end_is_down_and_why_says_so() {
    let bench = Bench::new();
    *bench.model.health.lock() = Health::Down("refused".into());
    let run = bench.chain.add_run("x", 9_000, 5);
    let happens = async {
        let down = |it: &&Event| **it == Event::Decided("BACKEND_DOWN");
        bench.counters.until(|events| events.iter().filter(down).count() >= 3).await;
        *bench.model.health.lock() = Health::Ready;
        bench.counters.until_finished(1).await;
    };
    bench.during(happens).await;
    let why = bench.journal.why(&run).unwrap();
    let codes: Vec<_> = why.decisions.iter().map(|noted| noted.decision.code()).collect();
    assert_eq!(vec!["BACKEND_DOWN", "CLAIM"], codes);
    assert!(why.decisions[0].times >= 3);
    let down = Reason::BackendDown { why: "refused".into() };
    assert_eq!("the back end is down: refused", down.to_string());
    assert!(why.entry.unwrap().is_over());
}

#[tokio::test]
async fn a_policy_that_changes_on_disk_is_followed_until_it_is_faulty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("miner.toml");
    std::fs::write(&path, "[policy]\nruns_max = 2").unwrap();
    let (file, policy) = PolicyFile::open(&path).unwrap();
    let sender = watch::Sender::new(Arc::new(policy));
    let mut seen = sender.subscribe();
    let stop = CancellationToken::new();
    let every = Duration::from_millis(5);
    let news: Arc<Mutex<PolicyNews>> = Arc::default();
    let told: (_, Arc<dyn Clock>) = (news.clone(), Arc::new(TestClock(Arc::new(7.into()))));
    let also: Reread = Box::new(|text| match text.contains("[other]") {
        true => Err(crate::policy::PolicyError::Other("the other table is wrong".into())),
        false => Ok(()),
    });
    let task = tokio::spawn(follow_policy(file, (sender, also), told, every, stop.clone()));
    std::fs::write(&path, "[policy]\nruns_max = 0").unwrap();
    let told_of_a_fault = async |wanted: bool| {
        let came = comes(|| news.lock().refused.is_some() == wanted).await;
        assert!(came, "{:?}", news.lock());
    };
    told_of_a_fault(true).await;
    let refused = "policy.runs_max is 0; expected 1 to 256";
    assert_eq!(PolicyNews { read_ms: 7, refused: Some(refused.into()) }, *news.lock());
    std::fs::write(&path, "[policy]\nruns_max = 3").unwrap();
    let wait = seen.wait_for(|policy| policy.runs_max != 2);
    let now = tokio::time::timeout(Duration::from_secs(10), wait).await.unwrap().unwrap().runs_max;
    assert_eq!(3, now);
    assert_eq!(PolicyNews { read_ms: 7, refused: None }, *news.lock());
    // A fault in what is read beside the policy keeps both as they are.
    std::fs::write(&path, "[policy]\nruns_max = 4\n[other]").unwrap();
    told_of_a_fault(true).await;
    assert_eq!(Some("the other table is wrong".into()), news.lock().refused);
    assert_eq!(3, seen.borrow().runs_max);
    std::fs::write(&path, "[policy]\nruns_max = 3").unwrap();
    told_of_a_fault(false).await;
    // A file that is away for a moment.
    std::fs::rename(&path, path.with_extension("old")).unwrap();
    told_of_a_fault(true).await;
    std::fs::rename(path.with_extension("old"), &path).unwrap();
    told_of_a_fault(false).await;
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn requests_that_cannot_be_worked_on_are_not_claimed() {
    let bench = Bench::new();
    *bench.tools.missing.lock() = vec!["fly".into()];
    let nonsense = bench.chain.add_run("nonsense", 9_000, 5);
    let flies = bench.chain.add_run("flies", 8_000, 5);
    bench.chain.add_blob("binary", &[0xff]);
    let prompt_blob = |request: &mut AgentRequest| request.prompt_blob_id = Some("binary".into());
    let blob = bench.chain.add_run_with("blob", 7_000, 5, prompt_blob);
    let decided = |event: &&Event| matches!(event, Event::Decided(_));
    let thrice = |events: &[Event]| events.iter().filter(decided).count() >= 3;
    bench.during(bench.counters.until(thrice)).await;
    let expected = [(nonsense, "UNREADABLE"), (flies, "TOOLS_MISSING"), (blob, "UNREADABLE")];
    for (run, code) in expected {
        assert_eq!(code, bench.decision(&run).code());
    }
    assert!(bench.sent().is_empty());
}

#[tokio::test]
async fn tools_that_a_run_gets_by_the_address_of_their_server_must_be_allowed() {
    let bench = Bench::new();
    *bench.tools.offered.lock() = vec!["docs__search".into()];
    bench.change_policy(|policy| policy.tools_allow = Some(["now".into()].into()));
    let run = bench.chain.add_run("x", 9_000, 5);
    let happens = async {
        bench.counters.until_decided("TOOLS_NOT_ALLOWED").await;
        assert!(bench.sent().is_empty());
        bench.change_policy(|policy| policy.tools_allow = Some(["docs__search".into()].into()));
        bench.counters.until_finished(1).await;
    };
    bench.during(happens).await;
    let reason = Reason::ToolsNotAllowed { names: vec!["docs__search".into()] };
    assert_eq!(Decision::Skip(reason), bench.decision(&run));
}

#[tokio::test]
async fn a_run_with_the_tools_of_every_question_is_worked_on_without_those_that_are_not_allowed() {
    let bench = Bench::new();
    bench.change_policy(|policy| policy.tools_allow = Some(["date_diff".into()].into()));
    let run = bench.chain.add_run_with("x", 9_000, 5, |request| {
        request.tools_whitelist = vec!["date_diff".into(), "math_eval".into()];
    });
    bench.finish(1).await;
    assert_eq!(RunStatus::Completed, bench.status(&run));
    assert_eq!(vec!["date_diff".to_owned()], bench.entry(&run).run.tools);
}

#[tokio::test]
async fn a_claim_that_lapsed_is_let_go() {
    let bench = Bench::new();
    let run = bench.chain.add_run("stall", 9_000, 5);
    bench.during(bench.counters.until(|events| events.contains(&Event::Claimed))).await;
    bench.chain.pass(Params::default().claim_ttl_ms + 1_000);
    bench.until_decided("EXCLUDED").await;
    assert_eq!(Phase::Over(Outcome::Lapsed), bench.entry(&run).phase);
    assert_eq!(vec!["CLAIM"], bench.sent());
}

#[tokio::test]
async fn work_that_was_stopped_is_gone_on_with() {
    let bench = Bench::new();
    let run = bench.chain.add_run("tools=1 once=1", 9_000, 5);
    bench.chain.state.lock().is_halted = true;
    bench.during(bench.chain.until(|state| !state.pool.is_empty())).await;
    assert_eq!(1, bench.journal.outbox().unwrap().len());
    bench.chain.state.lock().is_halted = false;
    bench.finish(1).await;
    assert_eq!(vec!["CLAIM", "STEP", "STEP", "FINISH"], bench.sent());
    assert!(bench.journal.outbox().unwrap().is_empty());
    assert_eq!(bench.entry(&run).steps, bench.chain.run_of(&run).steps);
}

#[test]
fn the_parts_of_a_settlement_add_up_to_the_escrow() {
    let bench = Bench::new();
    let id = bench.chain.add_run("x", 1_000_000, 10);
    let mut run = bench.chain.run_of(&id);
    let ending = Ending { status: RunStatus::Completed, answer: None };
    // (escrow, steps, tokens, reward, refund, fee); the first is the published example.
    let cases = [
        (1_000_000, 8, 5_000, 5_000, 994_200, 800),
        (100, 1, 7, 0, 0, 100),
        (105, 1, 7, 5, 0, 100),
        (100, 0, 0, 0, 100, 0),
        (u64::MAX, 200, u64::MAX, u64::MAX - 20_000, 0, 20_000),
    ];
    for (escrow, steps, tokens, reward, refund, fee) in cases {
        (run.max_fee_micro, run.steps, run.tokens) = (escrow, steps, tokens);
        let body = budget::finish(&run, &ending);
        let parts = [body.miner_reward, body.user_refund, body.network_fee].map(|it| it.get());
        assert_eq!([reward, refund, fee], parts);
    }
}

#[test]
fn the_next_step_may_put_out_what_is_left_after_its_own_fee() {
    let bench = Bench::new();
    let id = bench.chain.add_run("x", 1_000, 10);
    let mut run = bench.chain.run_of(&id);
    // (escrow, steps, tokens, left)
    let cases = [
        (100, 0, 0, None),
        (101, 0, 0, Some(1)),
        (300, 1, 99, Some(1)),
        (300, 1, 100, None),
        (300, 2, 0, None),
        (99, 0, 0, None),
        (1_000, 3, 50, Some(550)),
    ];
    for (escrow, steps, tokens, left) in cases {
        (run.max_fee_micro, run.steps, run.tokens) = (escrow, steps, tokens);
        assert_eq!(left, budget::output_tokens_max(&run), "{escrow} {steps} {tokens}");
    }
}

#[tokio::test]
async fn earnings_are_those_of_the_chain() {
    let bench = Bench::new();
    bench.chain.add_run("tools=1", 9_000, 5);
    bench.chain.add_run("tools=9", 8_000, 2);
    bench.finish(2).await;
    let runs = bench.chain.of_miner(&key().address()).await.unwrap();
    let earnings = Earnings::of(&runs);
    assert_eq!((1, 1, 42), (earnings.completed, earnings.failed, earnings.earned_micro));
}
