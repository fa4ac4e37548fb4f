//! The market on a chain with the ledger's own rules.

mod agents;
mod bench;
mod fitness;
mod money;
mod torture;

use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent::executor::Executors;
use redb::TableHandle as _;
use types::call::{CallStatus, Outcome};
use types::{Amount, Hash};

use self::bench::{Bench, helper, me};
use super::next::{Step, next};
use super::{MarketConfig, Receipts, Times};
use crate::chain::fake::State;
use crate::chain::fake::market::{EXECUTOR, MIN_BOND, PER_CALL};
use crate::chain::{CallView, MemberView, RoundView};
use crate::journal::call::{CallEntry, CallOutcome, CallPhase, CallStanding};
use crate::journal::{COMPARED_KEPT, Journal};

#[tokio::test]
async fn a_member_executes_commits_reveals_and_is_paid() {
    let bench = Bench::with_miner();
    let call = bench.call("hello", |_| ());
    bench.serve(&call).await;
    let view = bench.chain.call_of(&call);
    assert_eq!(view.status, CallStatus::Success);
    assert_eq!(bench.sent_for_calls(), ["CALL_COMMIT", "CALL_REVEAL"]);
    let entry = bench.entry(&call);
    let CallPhase::Over(outcome) = &entry.phase else { panic!("{entry:?}") };
    assert_eq!((outcome.standing, outcome.penalty_micro), (CallStanding::Agreed, 0));
    assert!(outcome.paid_micro >= PER_CALL, "{outcome:?}");
    let served = bench.journal.served().unwrap();
    assert_eq!((served.elected, served.agreed), (1, 1));
    assert_eq!(served.earned_micro, view.rounds[0].members[0].paid_micro);
    let receipts = bench.receipts().of_call(&call).unwrap();
    assert_eq!(receipts[0]["work"]["outcome"], "success");
    assert!(receipts[0]["times"]["endedMs"].is_u64());
    let hash = Hash::digest(agent::tools::canonical_json(&receipts[0]["work"]).as_bytes());
    assert_eq!(entry.said.unwrap().answer.receipt_hash, hash);
}

#[tokio::test]
async fn a_failure_of_the_agent_is_answered_and_agreed_about() {
    let bench = Bench::with_miner();
    let call = bench.call("fail", |_| ());
    bench.serve(&call).await;
    assert_eq!(bench.chain.call_of(&call).status, CallStatus::Failed);
    assert_eq!(bench.outcome(&call), Outcome::Failure);
    assert_eq!(bench.journal.served().unwrap().agreed, 1);
}

#[tokio::test]
async fn what_a_miner_cannot_or_will_not_execute_is_answered_with_unable() {
    for (text, change) in [
        ("panic", None),
        ("unable", None),
        ("x", Some("refuse")),
        ("x", Some("budget")),
        ("x", Some("executors")),
        ("x", Some("test")),
    ] {
        let mut bench = Bench::with_miner();
        match change {
            Some("refuse") => bench.configure(|config| config.refuse = [bench::agent()].into()),
            Some("budget") => bench.configure(|config| config.budget_micro_min = 1_000_000_000),
            Some("executors") => bench.execute_with(Executors::default()),
            Some("test") => bench.fail_test(),
            _ => (),
        }
        let call = bench.call(text, |_| ());
        bench.serve(&call).await;
        assert_eq!(bench.outcome(&call), Outcome::Unable, "{text} {change:?}");
        let served = bench.journal.served().unwrap();
        assert_eq!((served.unable, served.earned_micro, served.lost_micro), (1, 0, 0), "{text}");
        assert!(bench.entry(&call).said.unwrap().reason.is_some(), "{text}");
        assert!(bench.receipts().of_call(&call).unwrap().is_empty(), "it did no work");
    }
}

#[tokio::test]
async fn an_execution_that_takes_too_long_is_given_up_in_time_for_a_commitment() {
    let mut bench = Bench::with_miner();
    let call = bench.call("spin", |call| call.timeout_ms = 10_000);
    bench.configure(|config| config.commit_margin_ms = 5_000);
    // There are 300 ms left before the margin.
    let deadline_ms = bench.chain.call_of(&call).deadline_ms.unwrap();
    bench.clock.store(deadline_ms - 5_300, Ordering::SeqCst);
    let begun = std::time::Instant::now();
    bench.serve(&call).await;
    assert!(begun.elapsed() < Duration::from_secs(4), "it took {:?}", begun.elapsed());
    assert_eq!(bench.outcome(&call), Outcome::Unable);
    let reason = bench.entry(&call).said.unwrap().reason.unwrap();
    assert!(reason.contains("time"), "{reason}");
}

#[tokio::test]
async fn an_execution_during_which_the_miner_died_twice_is_answered_with_unable() {
    for (attempts, outcome, runs) in [(1, Outcome::Success, 1), (2, Outcome::Unable, 0)] {
        let bench = Bench::with_miner();
        let call = bench.call("x", |_| ());
        bench.take_on(&call).await;
        let died = CallEntry { attempts, ..bench.entry(&call) };
        bench.journal.put_call(&died).await.unwrap();
        bench.serve(&call).await;
        assert_eq!(bench.outcome(&call), outcome);
        assert_eq!(bench.executor.runs.load(Ordering::SeqCst), runs);
    }
}

#[tokio::test]
async fn an_execution_that_a_stop_breaks_off_is_no_attempt() {
    let bench = Bench::with_miner();
    let call = bench.call("spin", |call| call.timeout_ms = 600_000);
    bench.during(bench.until_journal(|entry| entry.attempts == 1)).await;
    let entry = bench.entry(&call);
    assert_eq!((entry.phase, entry.attempts), (CallPhase::Assigned, 0));
}

#[tokio::test]
async fn an_execution_takes_no_longer_than_the_operator_allows() {
    let mut bench = Bench::with_miner();
    bench.configure(|config| {
        config.work_ms_max = 1_000;
        config.offers[0].capacity = 1;
    });
    let long = |text| bench.call(text, |call| call.timeout_ms = 600_000);
    // The second one waits for the first, and has its own second then.
    let calls = [long("spin"), long("spin again"), long("x")];
    let begun = std::time::Instant::now();
    bench.serve_all(&calls).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
    let outcomes = calls.each_ref().map(|call| bench.outcome(call));
    assert_eq!(outcomes, [Outcome::Unable, Outcome::Unable, Outcome::Success]);
    let reason = bench.entry(&calls[0]).said.unwrap().reason.unwrap();
    assert!(reason.contains("time"), "{reason}");
}

#[tokio::test]
async fn who_comes_too_late_to_execute_says_unable_and_who_comes_after_the_phase_nothing() {
    let bench = Bench::with_miner();
    let call = bench.call("x", |_| ());
    let deadline_ms = bench.chain.call_of(&call).deadline_ms.unwrap();
    bench.clock.store(deadline_ms - 1_000, Ordering::SeqCst);
    bench.serve(&call).await;
    assert_eq!(bench.outcome(&call), Outcome::Unable);
    assert_eq!(bench.executor.runs.load(Ordering::SeqCst), 0);

    let bench = Bench::with_miner();
    let call = bench.call("x", |_| ());
    bench.take_on(&call).await;
    bench.chain.settle(&call);
    bench.serve(&call).await;
    let served = bench.journal.served().unwrap();
    assert_eq!((served.absent, served.penalised), (1, 1));
    assert_eq!(served.lost_micro, bench.chain.call_of(&call).rounds[0].members[0].penalty_micro);
    assert!(bench.sent_for_calls().is_empty());
}

#[tokio::test]
async fn what_a_miner_missed_while_it_was_away_is_in_its_books() {
    let bench = Bench::with_miner();
    let before = bench.call("x", |_| ());
    bench.serve(&before).await;
    let missed = bench.call("y", |_| ());
    bench.chain.settle(&missed);
    bench.serve(&missed).await;
    let served = bench.journal.served().unwrap();
    assert_eq!((served.agreed, served.absent, served.penalised), (1, 1, 1));
    let penalty = bench.chain.call_of(&missed).rounds[0].members[0].penalty_micro;
    assert_eq!((served.lost_micro, penalty > 0), (penalty, true));
    assert_eq!(bench.sent_for_calls(), ["CALL_COMMIT", "CALL_REVEAL"], "nothing is sent for it");
}

#[tokio::test]
async fn a_new_journal_begins_with_what_comes() {
    let bench = Bench::with_miner();
    let old = bench.call("x", |_| ());
    bench.chain.settle(&old);
    let call = bench.call("y", |_| ());
    bench.serve(&call).await;
    assert!(bench.journal.call(&old, 0).unwrap().is_none());
}

#[tokio::test]
async fn no_more_executions_go_on_at_once_than_the_offer_says() {
    let mut bench = Bench::with_miner();
    bench.configure(|config| config.offers[0].capacity = 2);
    let calls: Vec<Hash> =
        (0..4).map(|number| bench.call(&format!("slow {number}"), |_| ())).collect();
    bench.serve_all(&calls).await;
    assert_eq!(bench.executor.runs.load(Ordering::SeqCst), 4);
    assert_eq!(bench.executor.most.load(Ordering::SeqCst), 2);
    assert_eq!(bench.journal.served().unwrap().agreed, 4);
}

/// Calls of three, in each of which the two others say something else.
async fn stand_alone(bench: &Bench, calls: usize, change: fn(&mut types::tx::AgentCall)) {
    for number in 0..calls {
        let call = bench.call(&format!("hello {number}"), |call| {
            call.committee_size = 3;
            change(call);
        });
        let answer = bench::said().answer;
        for other in [20, 21].map(helper) {
            bench.chain.act(&other, &bench::commit(call, &other, &answer));
        }
        let is_revealing =
            move |state: &State| state.call(&call).unwrap().status == CallStatus::Revealing;
        bench.chain.until(is_revealing).await;
        for other in [20, 21].map(helper) {
            bench.chain.act(&other, &bench::reveal(call, &answer, b"other"));
        }
        bench.until_journal(|it| it.call == call && it.is_over()).await;
    }
}

fn with_two_others() -> Bench {
    let bench = Bench::with_miner();
    for seed in [20, 21] {
        bench.chain.add_miner(&helper(seed));
    }
    bench
}

#[tokio::test]
async fn a_miner_that_stands_alone_again_and_again_takes_its_offer_back_until_it_is_resumed() {
    let bench = with_two_others();
    bench.during(stand_alone(&bench, 2, |_| ())).await;
    assert!(bench.chain.state.lock().offers(&me()), "a majority that lies once stops nobody");
    assert!(bench.journal.paused().unwrap().is_empty());
    let happens = async {
        stand_alone(&bench, 1, |_| ()).await;
        bench.chain.until(|state| !state.offers(&me())).await;
    };
    bench.during(happens).await;
    assert_eq!(bench.journal.served().unwrap().dissented, 3);
    assert!(bench.journal.paused().unwrap().contains_key(&EXECUTOR.to_string()));
    // It stays so after a restart.
    bench.during(bench.tidied()).await;
    assert!(!bench.chain.state.lock().offers(&me()));
    assert!(bench.journal.resume_offers(&EXECUTOR).await.unwrap());
    assert!(!bench.journal.resume_offers(&EXECUTOR).await.unwrap(), "once");
    assert!(bench.journal.compared(&EXECUTOR).unwrap().is_empty(), "it begins anew");
    bench.during(bench.chain.until(|state| state.offers(&me()))).await;
}

#[tokio::test]
async fn to_stand_alone_where_a_threshold_decides_says_nothing_about_the_machine() {
    let bench = with_two_others();
    let by_threshold = |call: &mut types::tx::AgentCall| {
        call.consensus = "threshold".to_owned();
        call.prices.fuel_per_g = Amount::ZERO;
        call.threshold = Some(2);
    };
    bench.during(stand_alone(&bench, 3, by_threshold)).await;
    assert!(bench.journal.compared(&EXECUTOR).unwrap().is_empty());
    assert!(bench.journal.paused().unwrap().is_empty());
    assert!(bench.chain.state.lock().offers(&me()));
}

#[tokio::test]
async fn answers_that_were_compared_are_remembered_up_to_ten_and_once_for_each_round() {
    let bench = Bench::with_miner();
    let put = async |number: u8, agreed: bool| {
        let entry = CallEntry { call: Hash::digest(&[number]), ..entry(CallPhase::Revealed) };
        bench.journal.put_compared(&entry, &EXECUTOR, agreed).await.unwrap()
    };
    assert_eq!(put(0, false).await, 1);
    assert_eq!(put(1, false).await, 2);
    assert_eq!(put(1, true).await, 1, "an appeal decided otherwise");
    for number in 2..=10 {
        put(number, true).await;
    }
    let kept = bench.journal.compared(&EXECUTOR).unwrap();
    assert_eq!(kept.len(), COMPARED_KEPT);
    assert!(kept.iter().all(|it| it.agreed), "the oldest is forgotten");
}

#[tokio::test]
async fn a_member_of_the_first_round_notices_an_appeal_and_follows_the_call_to_its_end() {
    let bench = Bench::with_miner();
    for seed in 20..24 {
        bench.chain.add_miner(&helper(seed));
    }
    let appealable = |call: &mut types::tx::AgentCall| {
        call.appealable = Some(true);
        call.max_fee = Amount::new(10_000_000);
    };
    // The lot falls on one of five.
    let is_mine = |call: &Hash| bench.chain.call_of(call).round_of(&me()).is_some();
    let call = (0..50).map(|_| bench.call("hello", appealable)).find(is_mine).unwrap();
    let decided = |state: &State| state.call(&call).unwrap().status.is_decided();
    bench.during(bench.chain.until(decided)).await;
    bench.during(bench.until_journal(|it| it.standing == Some(CallStanding::Agreed))).await;
    assert!(!bench.entry(&call).is_over());
    bench.chain.settle(&call);
    bench.serve(&call).await;
    assert_eq!(bench.journal.served().unwrap().agreed, 1);
}

fn entry(phase: CallPhase) -> CallEntry {
    CallEntry {
        call: Hash::ZERO,
        round: 0,
        agent: Hash::ZERO,
        version: "1.0.0".to_owned(),
        requester: me(),
        budget_micro: 1,
        phase,
        said: Some(bench::said()),
        executor: None,
        standing: None,
        assigned_ms: 0,
        attempts: 0,
    }
}

fn view(status: CallStatus, rounds: usize, commitment: Option<Hash>) -> CallView {
    let member = |address| MemberView {
        address,
        commitment,
        revealed: None,
        agreed: None,
        paid_micro: 0,
        penalty_micro: 0,
    };
    let round = |number: usize| RoundView {
        is_decided: number + 1 < rounds,
        members: vec![member(if number == 0 { me() } else { helper(1).address() })],
    };
    CallView {
        id: Hash::ZERO,
        agent: Hash::ZERO,
        version: "1.0.0".to_owned(),
        requester: me(),
        status,
        is_settled: false,
        is_compared: true,
        limits: bench::limits(),
        budget_micro: 1,
        payload: None,
        payload_hash: Hash::ZERO,
        deadline_ms: None,
        rounds: (0..rounds).map(round).collect(),
    }
}

#[test]
fn what_follows_is_decided_by_journal_and_chain_together() {
    let mine = entry(CallPhase::Executed).commitment(me());
    let other = Some(Hash::digest(b"other"));
    let (committing, revealing) = (CallStatus::Committing, CallStatus::Revealing);
    let late = Step::Miss("the time to commit was over");
    let foreign = Step::Miss("the chain has a commitment that this journal does not have");
    for (phase, status, rounds, commitment, expected) in [
        (CallPhase::Assigned, committing, 1, None, Step::Execute),
        (CallPhase::Assigned, revealing, 1, None, late.clone()),
        (CallPhase::Assigned, committing, 1, other, foreign.clone()),
        // The second round commits, and this miner is of the first.
        (CallPhase::Assigned, committing, 2, None, late.clone()),
        (CallPhase::Executed, committing, 1, None, Step::Commit),
        (CallPhase::Executed, committing, 1, mine, Step::Confirm(CallPhase::Committed)),
        (CallPhase::Executed, committing, 1, other, foreign),
        (CallPhase::Executed, revealing, 1, None, late),
        (CallPhase::CommitSigned, committing, 1, None, Step::Resend),
        (CallPhase::Committed, committing, 1, mine, Step::AwaitPhase),
        (CallPhase::Committed, committing, 1, None, Step::AwaitNode),
        (CallPhase::Committed, revealing, 1, mine, Step::Reveal),
        (CallPhase::Committed, revealing, 2, mine, Step::Miss("the time to reveal was over")),
        (CallPhase::RevealSigned, revealing, 1, mine, Step::Resend),
        (CallPhase::Revealed, revealing, 1, mine, Step::AwaitPhase),
        (CallPhase::Missed(String::new()), committing, 2, None, Step::Judge(CallStanding::Absent)),
    ] {
        let view = view(status, rounds, commitment);
        let found = next(&entry(phase.clone()), Some(&view), &me());
        assert_eq!(found, expected, "{phase:?} {status:?} {rounds} {commitment:?}");
    }
    assert_eq!(next(&entry(CallPhase::Assigned), None, &me()), Step::AwaitNode);
}

#[tokio::test]
async fn a_journal_of_an_older_version_has_no_calls_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let chain = wallet::ChainIdentity { chain_id: "test".into(), genesis_hash: Hash::ZERO };
    drop(Journal::open(&path, me(), &chain).unwrap());
    let database = redb::Database::create(&path).unwrap();
    let write = database.begin_write().unwrap();
    for name in ["calls", "open_calls", "compared", "paused"] {
        let there = write.list_tables().unwrap().find(|it| it.name() == name).unwrap();
        write.delete_table(there).unwrap();
    }
    write.commit().unwrap();
    drop(database);
    let journal = Journal::open_existing(&path, me()).unwrap().unwrap();
    assert!(journal.calls().unwrap().is_empty() && journal.open_calls().unwrap().is_empty());
    assert!(journal.paused().unwrap().is_empty());
    drop(journal);
    let journal = Journal::open(&path, me(), &chain).unwrap();
    let entry = entry(CallPhase::Assigned);
    journal.put_call(&entry).await.unwrap();
    assert_eq!(journal.open_calls().unwrap(), vec![entry.clone()]);
    let outcome = CallOutcome {
        status: CallStatus::Success,
        standing: CallStanding::Withheld,
        paid_micro: 0,
        penalty_micro: 7,
    };
    for _ in 0..2 {
        // It is counted once.
        journal.put_call(&entry.at(CallPhase::Over(outcome))).await.unwrap();
    }
    assert!(journal.open_calls().unwrap().is_empty());
    let served = journal.served().unwrap();
    assert_eq!((served.elected, served.withheld), (1, 1));
    assert_eq!((served.penalised, served.lost_micro), (1, 7));
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let config = MarketConfig {
        offers: vec![bench::offer(65), bench::offer(1)],
        commit_margin_ms: 499,
        work_ms_max: 600_001,
        receipts_mib_max: 0,
        ..MarketConfig::default()
    };
    let expected = [
        format!("market.offers has the capacity 65 for {EXECUTOR}; expected 1 to 64"),
        format!("market.offers names {EXECUTOR} twice; expected once"),
        "market.commit_margin_ms is 499; expected 500 to 5000".to_owned(),
        "market.work_ms_max is 600001; expected 1000 to 600000".to_owned(),
        "market.receipts_mib_max is 0; expected 1 to 1048576".to_owned(),
    ];
    assert_eq!(config.faults(), expected);
    assert!(MarketConfig::default().faults().is_empty());
    assert_eq!(MarketConfig::default().bond_micro(MIN_BOND), 2 * MIN_BOND);
}

#[test]
fn the_oldest_receipts_make_room_and_those_of_open_calls_stay() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = Receipts::of(folder.path());
    let ids: Vec<Hash> = (0_u8..4).map(|number| Hash::digest(&[number])).collect();
    let work = bench::work();
    for (at, id) in (1_u64..).zip(&ids) {
        let times = Times { assigned_ms: at, began_ms: at, ended_ms: at };
        receipts.put((id, 0), &work, times).unwrap();
        let path = folder.path().join("receipts").join(format!("{id}-0.json"));
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(at)).unwrap();
    }
    let path = folder.path().join("receipts").join(format!("{}-0.json", ids[0]));
    let bytes = std::fs::metadata(path).unwrap().blocks() * 512;
    assert_eq!(receipts.make_room(4 * bytes, &[].into()).unwrap(), 0);
    assert_eq!(receipts.make_room(2 * bytes, &[(ids[0], 0)].into()).unwrap(), 2);
    let there: Vec<bool> = ids.iter().map(|id| !receipts.of_call(id).unwrap().is_empty()).collect();
    assert_eq!(there, [true, false, false, true]);
}
