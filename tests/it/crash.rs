//! `kill -9` at random moments under load: what the node confirmed is there again, and what it
//! accepted is included by and by.
//!
//! `OMBRA_KILLS` sets how often; the default is a handful, the slow suite asks for many.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::http::{self, Connection};
use testkit::node::{DevOptions, Node, wait_for, wait_until};
use testkit::process::{self, Signal};
use testkit::workload::Workload;

use crate::support::printed;

const KILLS: u32 = 4;

fn kills() -> u32 {
    std::env::var("OMBRA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

/// Hashes that the node answered with.
#[derive(Debug, Default)]
struct Answered {
    accepted: Vec<String>,
    confirmed: Vec<String>,
}

/// Sends until the node dies; answers what it accepted and what it saw included before.
fn answered_until_killed(node: &Node, texts: &[String], over: &AtomicBool) -> Answered {
    let mut answered = Answered::default();
    let Ok(mut connection) = Connection::open(node.rpc) else { return answered };
    for text in texts {
        if over.load(Ordering::Relaxed) {
            break;
        }
        // The text goes out as it was signed: another order of keys is another transaction.
        let Ok(sent) = connection.post(&http::send_body(std::slice::from_ref(text))) else { break };
        let sent: Value = serde_json::from_str(&sent).expect("answers are JSON");
        let hash = sent["result"]["hash"].as_str().unwrap_or_else(|| panic!("refused: {sent}"));
        answered.accepted.push(hash.to_owned());
        let Ok(seen) = connection.call("ombra_waitForTransaction", &json!([hash])) else { break };
        if seen["status"] == "included" {
            answered.confirmed.push(hash.to_owned());
        }
    }
    answered
}

fn next_texts(lane: &mut Vec<String>, count: usize) -> Vec<String> {
    let count = count.min(lane.len());
    lane.drain(..count).collect()
}

#[test]
fn what_was_confirmed_survives_kill_9() -> anyhow::Result<()> {
    let kills = kills();
    let per_round = 200;
    let mut node = Node::start(DevOptions::from_environment())?;
    let work = Workload::transfers(per_round * usize::try_from(kills)? * 4, 4)?;
    let mut lanes: Vec<Vec<String>> =
        work.waves.into_iter().flat_map(|wave| wave.by_sender).collect();
    let mut confirmed: Vec<String> = Vec::new();
    let mut heights = vec![0];

    for round in 0..kills {
        let over = AtomicBool::new(false);
        let texts: Vec<Vec<String>> =
            lanes.iter_mut().map(|lane| next_texts(lane, per_round)).collect();
        let found = std::thread::scope(|scope| {
            let workers: Vec<_> = texts
                .iter()
                .map(|texts| scope.spawn(|| answered_until_killed(&node, texts, &over)))
                .collect();
            // A different moment each round, without a source of randomness.
            std::thread::sleep(Duration::from_millis(200 + u64::from(round * 137 % 600)));
            let killed = process::signal(node.pid(), Signal::KILL);
            over.store(true, Ordering::Relaxed);
            let found = workers.into_iter();
            let found = found.map(|worker| worker.join().expect("a sender does not panic"));
            let found: Vec<Answered> = found.collect();
            killed.map(|()| found)
        })?;
        confirmed.extend(found.iter().flat_map(|lane| lane.confirmed.clone()));
        node.kill_and_restart()?;
        let height = node.height()?;
        assert!(height >= *heights.last().expect("never empty"), "the chain went back");
        heights.push(height);
        all_included(&node, &confirmed)?;
        for lane in &found {
            all_included_in_the_end(&node, &lane.accepted)?;
        }
        rewind(&node, &mut lanes, &texts)?;
    }
    assert!(!confirmed.is_empty(), "nothing was confirmed, so nothing was tested");

    node.stop()?;
    let data = node.data().to_string_lossy().into_owned();
    printed(node.ombra(&["db", "verify", "--home", &data])?).map(drop)
}

fn all_included(node: &Node, hashes: &[String]) -> anyhow::Result<()> {
    for hash in hashes {
        let tx = node.call("ombra_getTransaction", &json!([hash]))?;
        assert_eq!(tx["status"], "included", "{hash} was confirmed before the kill");
    }
    Ok(())
}

fn all_included_in_the_end(node: &Node, hashes: &[String]) -> anyhow::Result<()> {
    for hash in hashes {
        wait_until("an accepted transaction to be included", || {
            let tx = node.call("ombra_getTransaction", &json!([hash]))?;
            assert!(!tx.is_null(), "{hash} was accepted before the kill and is gone");
            Ok(tx["status"] == "included")
        })?;
    }
    Ok(())
}

/// Puts back what the killed node had not taken, so that nonces go on without a gap.
fn rewind(node: &Node, lanes: &mut [Vec<String>], texts: &[Vec<String>]) -> anyhow::Result<()> {
    for (lane, texts) in lanes.iter_mut().zip(texts) {
        let Some(first) = texts.first() else { continue };
        let sender: Value = serde_json::from_str(first)?;
        // What the pool had taken comes back from its journal and is included by and by.
        let next = wait_for("the pool to be empty", || {
            let account = node.call("ombra_getAccount", &json!([sender["from"]]))?;
            Ok((account["nonce"] == account["pendingNonce"]).then(|| account["nonce"].as_u64()))
        })?;
        let again = texts.iter().filter(|text| {
            let tx: Value = serde_json::from_str(text).expect("workloads are JSON");
            tx["nonce"].as_u64() >= next
        });
        let again: Vec<String> = again.cloned().collect();
        lane.splice(0..0, again);
    }
    Ok(())
}
