//! The journal as a file, and what follows from every state of it.

use std::collections::BTreeSet;

use agent::messages::{End, Output, ToolCall, ToolSpec};
use futures::StreamExt;
use serde_json::{Map, json};
use types::{Address, Hash, Keypair, RunStatus};
use wallet::ChainIdentity;

use super::entry::{
    CallRecord, CallState, Day, Entry, Outcome, Parcel, Phase, Purpose, StepRecord, Turn,
};
use super::resume::{Action, resume};
use super::{Journal, JournalError, Spent};
use crate::chain::RunView;
use crate::chain::fake::FakeChain;
use crate::policy::{Decision, Reason};
use crate::ports::{Ending, Move, ToolResult};

fn me() -> Address {
    Keypair::from_seed(&[9; 32]).address()
}

fn rival() -> Address {
    Keypair::from_seed(&[7; 32]).address()
}

fn run() -> RunView {
    let chain = FakeChain::new();
    let id = chain.add_run("x", 10_000, 10);
    chain.run_of(&id)
}

fn mine(steps: u64) -> RunView {
    let status = if steps == 0 { RunStatus::Claimed } else { RunStatus::Running };
    RunView { status, miner: Some(me()), steps, ..run() }
}

fn completed() -> Ending {
    Ending { status: RunStatus::Completed, answer: Some("done".into()) }
}

fn step(calls: &[CallState]) -> StepRecord {
    let output = Output {
        text: "x".into(),
        thoughts: None,
        tool_calls: vec![],
        output_tokens: 1,
        prompt_tokens: 1,
        end: End::Stop,
    };
    let mut record = StepRecord::new(output, Move::Again);
    let call = ToolCall { id: "a".into(), name: "now".into(), arguments: Map::new() };
    record.calls =
        calls.iter().map(|state| CallRecord { call: call.clone(), state: state.clone() }).collect();
    record
}

fn done() -> CallState {
    let call_id = "a".into();
    CallState::Done(ToolResult { call_id, ok: true, text: "r".into(), duration_ms: 1, tokens: 0 })
}

fn entry(phase: Phase, steps: u64) -> Entry {
    Entry { steps, ..Entry::reserve(run(), 5).at(phase) }
}

/// What is next in a phase, after so many steps, when the chain says this of the run.
fn next(phase: Phase, steps: u64, view: Option<&RunView>) -> Action {
    resume(&entry(phase, steps), None, view, &me())
}

fn phases() -> [Phase; 6] {
    [
        Phase::Reserved,
        Phase::ClaimSigned,
        Phase::Working,
        Phase::StepSigned,
        Phase::Ending(completed()),
        Phase::FinishSigned(completed()),
    ]
}

fn foreign(what: &str) -> Action {
    let reason = format!("the miner's journal does not have {what} that is on the chain");
    Action::End(Ending::without_answer(RunStatus::Failed, reason))
}

#[test]
fn what_is_next_follows_from_the_phase_and_the_steps_on_the_chain() {
    let waits = [
        Action::Claim,
        Action::Resend,
        Action::AwaitNode,
        Action::AwaitNode,
        Action::AwaitNode,
        Action::AwaitNode,
    ];
    let has_as_many_steps = [
        foreign("a claim"),
        Action::Confirm,
        Action::Ask,
        Action::Resend,
        Action::SignFinish(completed()),
        Action::Resend,
    ];
    let has_a_step_more = [
        foreign("a claim"),
        Action::Confirm,
        foreign("a step"),
        Action::Confirm,
        Action::SignFinish(completed()),
        Action::Resend,
    ];
    let cases = [
        ("it waits for a miner", 0, run(), waits),
        ("the chain knows as many steps", 2, mine(2), has_as_many_steps),
        ("the chain has a step more", 2, mine(3), has_a_step_more),
    ];
    for (name, steps, view, expected) in cases {
        let actions = phases().map(|phase| next(phase, steps, Some(&view)));
        assert_eq!(expected, actions, "{name}");
    }
    assert_eq!(foreign("a step"), next(Phase::StepSigned, 2, Some(&mine(4))));
    for phase in [Phase::Working, Phase::StepSigned, Phase::Ending(completed())] {
        let action = next(phase, 2, Some(&mine(1)));
        assert_eq!(Action::AwaitNode, action, "the chain has a step less");
    }
}

#[test]
fn what_is_next_when_this_miner_may_not_have_the_run_again() {
    let waiting = RunView { excluded: vec![me()], ..run() };
    let taken = RunView { excluded: vec![me()], miner: Some(rival()), ..mine(0) };
    let over = RunView { status: RunStatus::Completed, ..taken.clone() };
    for view in [waiting, taken, over] {
        for phase in phases() {
            let is_signed = matches!(phase, Phase::FinishSigned(_));
            let outcome = if is_signed { Outcome::GivenBack } else { Outcome::Lapsed };
            assert_eq!(Action::Close(outcome), next(phase, 0, Some(&view)), "{view:?}");
        }
    }
}

#[test]
fn what_is_next_within_a_step() {
    let cases = [
        (step(&[]), Action::SignStep),
        (step(&[CallState::Wanted]), Action::RunTools),
        (step(&[CallState::Begun]), Action::RunTools),
        (step(&[done(), CallState::Wanted]), Action::RunTools),
        (step(&[done(), done()]), Action::SignStep),
    ];
    for (record, action) in cases {
        let entry = entry(Phase::Working, 2);
        assert_eq!(action, resume(&entry, Some(&record), Some(&mine(2)), &me()), "{record:?}");
    }
}

#[test]
fn turns_come_before_the_next_question_and_before_the_end() {
    let turn = Turn { role: "assistant".into(), content: "x".into() };
    for phase in [Phase::Working, Phase::Ending(completed())] {
        let entry = Entry { turns: vec![turn.clone()], ..entry(phase, 2) };
        assert_eq!(Action::WriteTurn, resume(&entry, None, Some(&mine(2)), &me()));
    }
    let signed = Entry { turns: vec![turn], ..entry(Phase::StepSigned, 2) };
    assert_eq!(Action::Resend, resume(&signed, None, Some(&mine(2)), &me()));
}

#[test]
fn what_is_next_when_another_has_the_run_or_it_has_ended() {
    let status = RunStatus::Completed;
    let over = |miner| RunView { status, miner, reward_micro: Some(7), ..run() };
    let ended = Outcome::Ended { status, reward_micro: 7 };
    let cases = [
        (RunView { miner: Some(rival()), ..mine(0) }, Outcome::LostTo(rival())),
        (over(Some(me())), ended),
        (over(Some(rival())), Outcome::LostTo(rival())),
        (over(None), Outcome::Gone),
    ];
    for (view, outcome) in cases {
        for phase in phases() {
            assert_eq!(Action::Close(outcome.clone()), next(phase, 0, Some(&view)), "{view:?}");
        }
    }
}

#[test]
fn what_is_next_when_the_node_does_not_know_the_run() {
    for phase in phases() {
        let expected =
            if phase == Phase::Reserved { Action::Close(Outcome::Gone) } else { Action::AwaitNode };
        assert_eq!(expected, next(phase, 0, None));
    }
}

#[test]
fn nothing_is_next_when_it_is_over() {
    let ended = RunView { status: RunStatus::Completed, ..mine(5) };
    for view in [None, Some(run()), Some(mine(0)), Some(mine(5)), Some(ended)] {
        assert_eq!(Action::Rest, next(Phase::Over(Outcome::Gone), 0, view.as_ref()));
    }
}

fn chain(id: &str, genesis_hash: Hash) -> ChainIdentity {
    ChainIdentity { chain_id: id.into(), genesis_hash }
}

pub(crate) fn open(folder: &tempfile::TempDir) -> Result<Journal, JournalError> {
    Journal::open(&folder.path().join("journal"), me(), &chain("chain", Hash::ZERO))
}

/// A journal in a folder of its own.
pub(crate) fn new_journal() -> (tempfile::TempDir, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder).unwrap();
    (folder, journal)
}

/// Changes the file of a journal that is closed.
fn change_file(folder: &tempfile::TempDir, change: impl FnOnce(&redb::WriteTransaction)) {
    let database = redb::Database::open(folder.path().join("journal")).unwrap();
    let write = database.begin_write().unwrap();
    change(&write);
    write.commit().unwrap();
}

fn parcel(nonce: u64, run: Hash, purpose: Purpose) -> Parcel {
    Parcel { nonce, hash: Hash::digest(b"tx"), text: "{}".into(), run, purpose }
}

#[tokio::test]
async fn what_is_written_is_read_after_a_restart() {
    let (folder, journal) = new_journal();
    let signed = entry(Phase::StepSigned, 3);
    let parcel = parcel(4, signed.run.id, Purpose::Step { tokens: 3 });
    journal.sign(Some(&signed), &parcel).await.unwrap();
    journal.put_step(&signed.run.id, 3, &step(&[CallState::Begun, done()])).await.unwrap();
    drop(journal);
    let journal = open(&folder).unwrap();
    assert_eq!(Some(signed.clone()), journal.entry(&signed.run.id).unwrap());
    assert_eq!(vec![parcel], journal.outbox().unwrap());
    let record = step(&[CallState::Begun, done()]);
    assert_eq!(Some(record.clone()), journal.step(&signed.run.id, 3).unwrap());
    assert_eq!(vec![record], journal.steps(&signed.run.id).unwrap());
    assert_eq!(None, journal.step(&signed.run.id, 2).unwrap());
}

#[test]
fn what_was_signed_is_kept_when_the_run_is_over_and_nothing_else() {
    let timeout = || Ending::without_answer(RunStatus::Timeout, "too slow");
    let ended = |status| Phase::Over(Outcome::Ended { status, reward_micro: 7 });
    let kept = |phase: Phase, over: Phase| entry(phase, 1).at(over).ending;
    let over = ended(RunStatus::Timeout);
    assert_eq!(Some(timeout()), kept(Phase::FinishSigned(timeout()), over.clone()));
    let chain = "a deadline of the chain ended the run before this miner did";
    let chain = Some(Ending::without_answer(RunStatus::Timeout, chain));
    for phase in [Phase::Working, Phase::Ending(timeout()), Phase::FinishSigned(completed())] {
        assert_eq!(chain, kept(phase, over.clone()));
    }
    let stuck = Phase::Over(Outcome::Stuck("NONCE_GAP".into()));
    assert_eq!(Some(timeout()), kept(Phase::FinishSigned(timeout()), stuck));
    assert_eq!(None, kept(Phase::Reserved, Phase::Over(Outcome::Gone)));
    assert_eq!(None, entry(Phase::FinishSigned(timeout()), 1).at(Phase::Working).ending);
}

#[test]
fn a_state_has_the_reason_of_an_early_end_as_one_short_line() {
    let state = |status, answer: &str| {
        entry(Phase::Ending(Ending::without_answer(status, answer)), 0).state()
    };
    assert_eq!("it is to end as completed", state(RunStatus::Completed, "42"));
    let cut = "w0 w1\n\n[cut off: no\nmore time]";
    assert_eq!("it is to end as timeout: no more time", state(RunStatus::Timeout, cut));
    let long = state(RunStatus::Failed, &"ä".repeat(500));
    assert_eq!(format!("it is to end as failed: {}", "ä".repeat(80)), long);
}

#[test]
fn an_entry_without_an_ending_is_read() {
    let over = entry(Phase::Over(Outcome::Gone), 1);
    let mut json = serde_json::to_value(&over).unwrap();
    assert!(json.as_object_mut().unwrap().remove("ending").is_some());
    assert_eq!(over, serde_json::from_value(json).unwrap());
}

#[tokio::test]
async fn a_fate_leaves_the_outbox_with_its_phase_and_its_counts() {
    let (_folder, journal) = new_journal();
    let signed = entry(Phase::ClaimSigned, 0);
    let claim = |nonce| parcel(nonce, signed.run.id, Purpose::Claim);
    journal.sign(Some(&signed), &claim(1)).await.unwrap();
    journal.sign(None, &claim(2)).await.unwrap();
    assert_eq!(BTreeSet::from([1, 2]), journal.nonces().unwrap());
    let day_ms = 86_400_000;
    let add = Day { claims: 1, lost: 0, spent_micro: 100 };
    for nonce in [1, 2] {
        let working = signed.at(Phase::Working);
        journal.resolve(Some(&working), nonce, Spent { now_ms: day_ms, add }).await.unwrap();
    }
    assert!(journal.outbox().unwrap().is_empty());
    assert_eq!(Phase::Working, journal.entry(&signed.run.id).unwrap().unwrap().phase);
    let day = journal.day(day_ms * 2 - 1).unwrap();
    assert_eq!(Day { claims: 2, lost: 0, spent_micro: 200 }, day);
    assert_eq!(Day::default(), journal.day(day_ms - 1).unwrap());
}

#[tokio::test]
async fn runs_that_are_over_are_not_open() {
    let (_folder, journal) = new_journal();
    let (working, other) = (entry(Phase::Working, 0), RunView { id: Hash::ZERO, ..run() });
    let over = Entry::reserve(other, 5).at(Phase::Over(Outcome::Gone));
    journal.put(&over.at(Phase::Working)).await.unwrap();
    journal.put(&working).await.unwrap();
    assert_eq!(2, journal.open_entries().unwrap().len());
    journal.put(&over).await.unwrap();
    assert_eq!(vec![working], journal.open_entries().unwrap());
    assert_eq!(2, journal.entries().unwrap().len());
}

#[tokio::test]
async fn what_a_model_was_offered_is_kept_until_the_run_is_over() {
    let (folder, journal) = new_journal();
    let working = entry(Phase::Working, 0);
    let id = working.run.id;
    let tool = ToolSpec { name: "t".into(), description: String::new(), parameters: json!({}) };
    journal.put(&working).await.unwrap();
    assert_eq!(None, journal.offer(&id).unwrap());
    journal.put_offer(&id, std::slice::from_ref(&tool)).await.unwrap();
    drop(journal);
    let journal = open(&folder).unwrap();
    assert_eq!(Some(vec![tool]), journal.offer(&id).unwrap());
    journal.put(&working.at(Phase::Over(Outcome::Lapsed))).await.unwrap();
    assert_eq!(None, journal.offer(&id).unwrap());
}

#[test]
fn a_second_process_is_refused() {
    let (folder, _first) = new_journal();
    let refused = open(&folder).unwrap_err();
    assert!(matches!(refused, JournalError::InUse { .. }), "{refused}");
    assert!(refused.to_string().ends_with("one miner per wallet and journal"), "{refused}");
}

#[test]
fn the_journal_of_another_wallet_or_chain_is_refused() {
    let (folder, journal) = new_journal();
    drop(journal);
    let path = folder.path().join("journal");
    let same = chain("chain", Hash::ZERO);
    let others = [chain("chain", Hash::digest(b"other")), chain("another", Hash::ZERO)];
    for (miner, chain) in [(rival(), &same), (me(), &others[0]), (me(), &others[1])] {
        let refused = Journal::open(&path, miner, chain).unwrap_err();
        assert!(matches!(refused, JournalError::Foreign { .. }), "{refused}");
        let text = refused.to_string();
        for part in [&same.chain_id, &chain.chain_id] {
            assert!(text.contains(part.as_str()), "{text}");
        }
    }
    assert!(open(&folder).is_ok());
}

#[test]
fn a_file_that_is_no_journal_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("journal"), "not a journal, but long enough to look")
        .unwrap();
    assert!(matches!(open(&folder), Err(JournalError::Database(_))));
}

#[tokio::test]
async fn decisions_are_kept_and_repeated_ones_are_counted() {
    let (_folder, journal) = new_journal();
    let id = run().id;
    let paused = Decision::Wait(Reason::Paused);
    for now_ms in 1..=3 {
        journal.note(&id, &paused, now_ms).await.unwrap();
    }
    journal.note(&id, &Decision::Claim { after_ms: 5 }, 4).await.unwrap();
    let why = journal.why(&id).unwrap();
    assert_eq!(2, why.decisions.len());
    let first = &why.decisions[0];
    assert_eq!((1, 3, 3), (first.first_ms, first.last_ms, first.times));
    for after_ms in 0..40 {
        journal.note(&id, &Decision::Claim { after_ms }, 9).await.unwrap();
    }
    let why = journal.why(&id).unwrap();
    assert_eq!(16, why.decisions.len());
    assert_eq!(Decision::Claim { after_ms: 39 }, why.decisions[15].decision);
}

#[tokio::test]
async fn changes_that_come_together_are_all_written() {
    let (folder, journal) = new_journal();
    let entries: Vec<Entry> = (0..200_u64)
        .map(|number| {
            let id = Hash::digest(&number.to_be_bytes());
            Entry::reserve(RunView { id, ..run() }, number)
        })
        .collect();
    let writes = entries.iter().map(|entry| journal.put(entry));
    futures::future::try_join_all(writes).await.unwrap();
    drop(journal);
    let journal = open(&folder).unwrap();
    let mut found = journal.entries().unwrap();
    found.sort_by_key(|entry| entry.reserved_ms);
    assert_eq!(entries, found);
}

#[tokio::test]
async fn a_write_whose_caller_goes_away_is_made() {
    let (folder, journal) = new_journal();
    let working = entry(Phase::Working, 0);
    {
        let write = journal.put(&working);
        tokio::pin!(write);
        // Polled once: it is ordered, and then nobody waits for it.
        drop(futures::poll!(write.as_mut()));
    }
    drop(journal);
    assert_eq!(vec![working], open(&folder).unwrap().open_entries().unwrap());
}

#[test]
fn a_journal_that_does_not_know_its_chain_id_learns_it_once() {
    let (folder, journal) = new_journal();
    drop(journal);
    let path = folder.path().join("journal");
    let old = format!(r#"{{"format":1,"miner":"{}","genesis":"{}"}}"#, me(), Hash::ZERO);
    change_file(&folder, |write| {
        write.open_table(super::META).unwrap().insert("owner", old.as_bytes()).unwrap();
    });
    assert!(Journal::open_existing(&path, me()).unwrap().is_some());
    drop(open(&folder).unwrap());
    let refused = Journal::open(&path, me(), &chain("another", Hash::ZERO)).unwrap_err();
    assert!(matches!(refused, JournalError::Foreign { .. }), "{refused}");
}

#[tokio::test]
async fn notes_of_runs_that_were_looked_at_longest_ago_give_way() {
    let (folder, journal) = new_journal();
    let id = |number: u64| Hash::digest(&number.to_be_bytes());
    let paused = Decision::Wait(Reason::Paused);
    let runs = super::notes::RUNS_MAX + 100;
    let notes = (0..runs).map(|number| {
        let (journal, paused) = (&journal, &paused);
        async move {
            journal.note(&id(number), paused, number).await.unwrap();
            // The first one is looked at again with each of the others.
            journal.note(&id(0), paused, number).await.unwrap();
        }
    });
    futures::stream::iter(notes).buffered(64).collect::<Vec<()>>().await;
    let kept = |number| !journal.why(&id(number)).unwrap().decisions.is_empty();
    assert!(kept(0) && kept(runs - 1) && kept(102), "those that were looked at last");
    assert!((1..=100).all(|number| !kept(number)), "there is no room for more");
    drop(journal);
    // The journal of an older version has no times: they are found at the start.
    let looked: redb::TableDefinition<'_, (u64, [u8; 32]), ()> =
        redb::TableDefinition::new("looked");
    change_file(&folder, |write| {
        write.delete_table(looked).unwrap();
    });
    let journal = open(&folder).unwrap();
    journal.note(&Hash::ZERO, &paused, runs).await.unwrap();
    let kept = |number| !journal.why(&id(number)).unwrap().decisions.is_empty();
    assert!(!kept(101) && kept(102) && kept(0));
}

#[tokio::test]
async fn a_note_that_quotes_long_requests_keeps_fewer_decisions() {
    let (_folder, journal) = new_journal();
    let id = run().id;
    for number in 0..16_u64 {
        let why = format!("{number}{}", "x".repeat(1_000));
        let decision = Decision::Skip(Reason::Unreadable { why });
        journal.note(&id, &decision, number).await.unwrap();
    }
    let decisions = journal.why(&id).unwrap().decisions;
    assert_eq!((7, 15), (decisions.len(), decisions[6].last_ms));
    let long = Decision::Skip(Reason::Unreadable { why: "x".repeat(20_000) });
    journal.note(&id, &long, 16).await.unwrap();
    assert_eq!(1, journal.why(&id).unwrap().decisions.len(), "the last is always kept");
}
