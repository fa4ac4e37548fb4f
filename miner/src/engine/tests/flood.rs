//! Very many runs that are not worth reading: what they cost the miner, and how little other requesters
//! notice of them.

use tokio::sync::mpsc;
use types::tx::AgentRequest;
use types::{Body, Hash, Keypair, RunStatus};

use super::support::Bench;
use crate::chain::Notice;
use crate::ports::Event;

/// Somebody asks for so many runs whose prompts are in a blob, and cannot be understood.
fn flood(bench: &Bench, runs: u64) {
    bench.chain.add_blob("long", b"nonsense");
    for number in 0..runs {
        add_with_blob(bench, &format!("nonsense {number}"));
    }
}

fn add_with_blob(bench: &Bench, prompt: &str) -> Hash {
    let with_blob = |request: &mut AgentRequest| request.prompt_blob_id = Some("long".into());
    bench.chain.add_run_with(prompt, 9_000, 5, with_blob)
}

/// Somebody else asks for a run that pays less.
fn ask(bench: &Bench) -> Hash {
    let other = Keypair::from_seed(&[77; 32]);
    let state = bench.chain.state.lock();
    state.set_balance(&other.address(), 100_000);
    let nonce = state.account(&other.address()).nonce;
    drop(state);
    let request = fixtures::request(other.address(), nonce, "x", 8_000, 5);
    let run = request.agent_run_id;
    bench.chain.act(&other, &Body::AgentRequest(request));
    run
}

fn blobs_read(bench: &Bench) -> u64 {
    bench.chain.state.lock().blobs_read
}

/// How often it was decided so.
fn times(events: &[Event], code: &'static str) -> usize {
    events.iter().filter(|event| **event == Event::Decided(code)).count()
}

#[tokio::test]
async fn a_flood_of_runs_that_are_not_worth_reading_holds_up_no_other_run() {
    for is_told in [true, false] {
        let mut bench = Bench::new();
        flood(&bench, 400);
        bench.chain.state.lock().blob_ms = 30;
        let listed = if is_told { None } else { Some(ask(&bench)) };
        bench.config.poll_ms = 600_000;
        let (notices, receiver) = mpsc::channel(1);
        let happens = async {
            let run = match listed {
                Some(run) => run,
                None => {
                    bench.counters.until_decided("UNREADABLE").await;
                    let run = ask(&bench);
                    notices.send(Notice::Open(run)).await.unwrap();
                    run
                }
            };
            bench.counters.until_finished(1).await;
            run
        };
        let run = bench.during_with(receiver, happens).await;
        assert_eq!(RunStatus::Completed, bench.status(&run));
        // Without the flood, a run is settled after a few of them.
        let read = blobs_read(&bench);
        assert!(read < 40, "told: {is_told}, {read} prompts were read before");
    }
}

#[tokio::test]
async fn a_prompt_is_read_again_when_the_policy_or_the_tools_change() {
    let bench = Bench::new();
    flood(&bench, 1);
    *bench.tools.missing.lock() = vec!["fly".into()];
    let flies = add_with_blob(&bench, "flies");
    let happens = async {
        let often = |count| move |events: &[Event]| times(events, "UNREADABLE") >= count;
        bench.counters.until(often(9)).await;
        assert_eq!(2, blobs_read(&bench));
        bench.change_policy(|policy| policy.steps_expected = 3);
        bench.counters.until(often(18)).await;
        assert_eq!(4, blobs_read(&bench));
        bench.tools.missing.lock().clear();
        bench.counters.until_finished(1).await;
    };
    bench.during(happens).await;
    assert_eq!(RunStatus::Completed, bench.status(&flies));
    // The decision and the work.
    assert_eq!(6, blobs_read(&bench));
}

#[tokio::test]
async fn the_node_is_asked_once_for_many_decisions() {
    let mut bench = Bench::new();
    flood(&bench, 50);
    bench.config.poll_ms = 600_000;
    let all = |events: &[Event]| times(events, "UNREADABLE") == 50;
    bench.during(bench.counters.until(all)).await;
    let heads = bench.chain.state.lock().heads_read;
    assert!(heads < 10, "{heads}");
}
