//! The ids of blobs: they are of whoever announces them first.

use fixtures::blob_init;
use types::{Body, CheckedTx, Hash, Keypair, RunStatus};

use super::support::Bench;

const PROMPT: &str = "think long=20000";

/// What the model answers to it.
fn answer() -> String {
    format!("done{}", "!".repeat(20_000))
}

/// Somebody else announces a blob.
fn take(bench: &Bench, blob_id: &str) {
    bench.chain.act(&Keypair::from_seed(&[7; 32]), &blob_init(blob_id, b"theirs").into());
}

/// The id that the miner announces.
fn announced(bench: &Bench) -> Option<String> {
    let state = bench.chain.state.lock();
    state.pool.iter().find_map(|tx| {
        let Body::BlobInit(init) = tx.body() else { return None };
        Some(init.blob_id.clone())
    })
}

/// The ids that a finished run has of thoughts, output and answer, whose blobs must be whole.
fn ids(bench: &Bench, run: &Hash) -> [String; 3] {
    assert_eq!(RunStatus::Completed, bench.status(run));
    let state = bench.chain.state.lock();
    let (step, end) = (state.step_bodies().remove(0), state.answer(run));
    assert_eq!(None, end.final_answer_inline);
    let ids = [step.thought_blob_id, step.output_blob_id, end.final_answer_blob_id];
    let ids = ids.map(Option::unwrap);
    for (id, text) in ids.iter().zip(["thought 0".to_owned(), answer(), answer()]) {
        let (record, bytes) = state.blob(id).unwrap();
        assert!(record.is_final && bytes == text.as_bytes(), "{id}");
    }
    ids
}

#[tokio::test]
async fn ids_that_follow_from_what_everybody_may_know_are_not_used() {
    let bench = Bench::new();
    let run = bench.chain.add_run(PROMPT, 50_000, 5);
    let texts =
        [("thoughts0", "thought 0".to_owned()), ("output0", answer()), ("answer", answer())];
    for (name, text) in texts {
        let hash = Hash::digest(text.as_bytes()).to_string();
        take(&bench, &format!("{run}-{name}"));
        take(&bench, &format!("{run}-{name}-{}", &hash[..16]));
    }
    bench.finish(1).await;
    let ids = ids(&bench, &run);
    for (id, name) in ids.iter().zip(["thoughts0", "output0", "answer"]) {
        let begin = format!("{run}-{name}-");
        assert_eq!(Some(16), id.strip_prefix(&begin).map(str::len), "{id}");
    }
    assert_ne!(ids[1][ids[1].len() - 16..], ids[2][ids[2].len() - 16..], "one tells no other");
}

#[tokio::test]
async fn an_id_that_somebody_was_faster_with_is_replaced_by_another() {
    let first = Bench::new();
    let run = first.settle(PROMPT, 50_000, 5).await.id;
    let before = ids(&first, &run);
    assert_eq!(300, first.journal.day(1_000_000).unwrap().spent_micro, "a chunk of each");
    // The same miner and the same run once more.
    let second = Bench::new();
    before.iter().for_each(|id| take(&second, id));
    assert_eq!(run, second.settle(PROMPT, 50_000, 5).await.id);
    let after = ids(&second, &run);
    assert!(before.iter().all(|id| !after.contains(id)), "{after:?}");
    let third = Bench::new();
    third.settle(PROMPT, 50_000, 5).await;
    assert_eq!(before, ids(&third, &run), "so that work which was stopped goes on with it");
}

#[tokio::test]
async fn from_v7_on_announcements_and_places_in_blocks_count_as_spent() {
    let bench = Bench::new();
    bench.chain.state.lock().begin_with_v7();
    bench.settle(PROMPT, 50_000, 5).await;
    let places_micro = bench.chain.state.lock().blob_places_micro();
    assert!(places_micro > 0, "six transactions");
    let spent_micro = bench.journal.day(1_000_000).unwrap().spent_micro;
    assert_eq!(2 * (1_000 + 100) + places_micro, spent_micro, "of the output and of the answer");
}

/// A miner on a chain with v7, whose model may put out so many tokens at once.
fn bench_with_v7() -> Bench {
    let mut bench = Bench::new();
    bench.chain.state.lock().begin_with_v7();
    bench.config.output_tokens_max = 20_000;
    bench
}

/// Whether the first step of a run with this prompt has its thoughts in a blob.
async fn keeps_thoughts(bench: &Bench, prompt: &str) -> bool {
    assert_eq!(RunStatus::Completed, bench.settle(prompt, 50_000, 5).await.status);
    let step = bench.chain.state.lock().step_bodies().remove(0);
    step.thought_blob_id.is_some()
}

#[tokio::test]
async fn from_v7_on_thoughts_are_kept_where_their_step_earns_twice_what_they_cost() {
    // An announcement, a chunk, and places of about three KiB: 1,131 micro; ten tokens are always there.
    for (prompt, is_kept) in [("think tokens=2251", false), ("think tokens=2252", true)] {
        let bench = bench_with_v7();
        assert_eq!(is_kept, keeps_thoughts(&bench, prompt).await, "{prompt}");
        let spent_micro = bench.journal.day(1_000_000).unwrap().spent_micro;
        assert_eq!(is_kept, spent_micro > 0, "{prompt}: {spent_micro}");
        assert!(2 * spent_micro <= 2_262, "{prompt}: {spent_micro}");
    }
}

#[tokio::test]
async fn a_base_fee_that_may_soon_be_too_high_leaves_a_step_without_its_blobs() {
    for (base_fee, is_kept) in [(1_000, true), (1_001, false)] {
        let mut bench = bench_with_v7();
        bench.config.turns = true;
        bench.chain.state.lock().told_base_fee = base_fee;
        assert_eq!(is_kept, keeps_thoughts(&bench, "think tokens=9000").await, "{base_fee}");
        assert_eq!(is_kept, bench.sent().contains(&"CHAT_TURN"), "{base_fee}");
    }
}

#[tokio::test]
async fn a_deadline_that_is_near_leaves_a_step_without_its_blobs() {
    // A claim lapses after two minutes.
    for (margin_ms, is_kept) in [(59_000, true), (61_000, false)] {
        let mut bench = Bench::new();
        bench.config.deadline_margin_ms = margin_ms;
        assert_eq!(is_kept, keeps_thoughts(&bench, "think").await, "{margin_ms}");
    }
}

#[tokio::test]
async fn an_announcement_that_came_too_late_is_made_again_with_another_id() {
    let bench = Bench::new();
    bench.chain.state.lock().is_halted = true;
    let run = bench.chain.add_run(PROMPT, 50_000, 5);
    let happens = async {
        bench.chain.until(|state| state.pool.len() == 1).await;
        bench.chain.make_block();
        let is_announced = |tx: &CheckedTx| tx.body().type_name() == "SOCIAL_BLOB_INIT";
        bench.chain.until(|state| state.pool.iter().any(is_announced)).await;
        let id = announced(&bench).unwrap();
        take(&bench, &id);
        bench.make_blocks_again();
        bench.counters.until_finished(1).await;
        id
    };
    let id = bench.during(happens).await;
    assert_eq!(vec!["BLOB_EXISTS"], bench.chain.state.lock().lost);
    assert!(!ids(&bench, &run).contains(&id));
}
