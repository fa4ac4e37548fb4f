//! The ports over a scripted node: what its answers mean here.

mod calls;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use types::{Address, Hash, RunStatus};
use wallet::Client;

use super::{Node, claim_notice, run_notice};
use crate::chain::{BlobFees, ChainError, Fate, Ledger, Notice, Runs};

const ADDRESS: &str = "5bb5c50f185363cf913f93a18c6837c20d720a69";

#[derive(Debug, Default)]
struct Script {
    /// Answers by method: `{"result": …}` or `{"error": …}`, or `{"pages": […]}` for a list whose
    /// cursors are the numbers of its pages; a page may be `{"error": …}`.
    answers: Mutex<BTreeMap<String, Value>>,
    calls: Mutex<Vec<Value>>,
}

impl Script {
    /// From now on a method is answered so.
    fn answer(&self, method: &str, answer: Value) {
        self.answers.lock().insert(method.to_owned(), answer);
    }

    fn result(&self, method: &str, result: &Value) {
        self.answer(method, json!({ "result": result }));
    }
}

async fn call(State(script): State<Arc<Script>>, Json(body): Json<Value>) -> Json<Value> {
    let method = body["method"].as_str().unwrap();
    let absent = json!({"error": {"code": -32601, "message": "no such method"}});
    let mut answer = script.answers.lock().get(method).cloned().unwrap_or(absent);
    if let Some(pages) = answer.get("pages").and_then(Value::as_array) {
        let cursor = body["params"][1]["cursor"].as_str().unwrap_or("0");
        let page = &pages[cursor.parse::<usize>().unwrap() % pages.len()];
        answer = if page["error"].is_object() { page.clone() } else { json!({ "result": page }) };
    }
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = body["id"].clone();
    script.calls.lock().push(body);
    Json(answer)
}

async fn blob(Path(id): Path<String>) -> (StatusCode, Vec<u8>) {
    match id.as_str() {
        "there" => (StatusCode::OK, "a prompt".into()),
        "bytes" => (StatusCode::OK, vec![0xff]),
        "broken" => (StatusCode::BAD_GATEWAY, vec![]),
        _ => (StatusCode::NOT_FOUND, vec![]),
    }
}

async fn node() -> (Arc<Script>, Node) {
    let script = Arc::new(Script::default());
    let app = Router::new()
        .route("/", post(call))
        .route("/api/blob/{id}", get(blob))
        .with_state(script.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (script, Node::new(Client::new(&url).unwrap()).unwrap())
}

fn run_record(status: &str) -> Value {
    json!({
        "agentRunId": Hash::ZERO, "conversationId": Hash::ZERO, "submitter": ADDRESS,
        "prompt": "p", "promptBlobId": "blob", "toolsWhitelist": ["now"], "maxFee": "900",
        "maxSteps": 4, "status": status, "stepCount": 1, "totalTokensOut": 7,
        "submittedAt": 1, "deadlineAt": 5, "reopens": 1, "excludedMiners": [ADDRESS],
    })
}

#[tokio::test]
async fn a_run_is_read_with_its_blob_and_its_excluded_miners() {
    let (script, node) = node().await;
    let set = |answer| script.answer("ombra_getAgentRun", answer);
    set(json!({"result": run_record("running")}));
    let run = node.run(&Hash::ZERO).await.unwrap().unwrap();
    let miner: Address = ADDRESS.parse().unwrap();
    assert_eq!((RunStatus::Running, vec![miner]), (run.status, run.excluded));
    assert_eq!(Some("blob"), run.prompt_blob_id.as_deref());
    assert_eq!((900, Some(5)), (run.max_fee_micro, run.deadline_ms));
    set(json!({"error": {"code": -32051, "message": "no such run"}}));
    assert_eq!(Ok(None), node.run(&Hash::ZERO).await);
    set(json!({"result": run_record("dreaming")}));
    assert!(matches!(node.run(&Hash::ZERO).await, Err(ChainError::Strange(_))));
}

#[tokio::test]
async fn a_rejection_has_its_code_and_a_node_that_syncs_is_away() {
    let (script, node) = node().await;
    let set = |answer| script.answer("ombra_sendTransaction", answer);
    let data = json!({"code": "RUN_NOT_PENDING"});
    set(json!({"error": {"code": -32050, "message": "taken", "data": data}}));
    let refused = node.send("{}").await;
    let expected = ChainError::Rejected { code: "RUN_NOT_PENDING".into(), message: "taken".into() };
    assert_eq!(Err(expected), refused);
    for code in [-32052, -32053] {
        set(json!({"error": {"code": code, "message": "later"}}));
        assert!(matches!(node.send("{}").await, Err(ChainError::Away(_))));
    }
    set(json!({"result": {"hash": Hash::ZERO}}));
    assert_eq!(Ok(()), node.send(r#"{"b":1,"a":2}"#).await);
    let sent = script.calls.lock().last().unwrap()["params"][0].to_string();
    assert!(sent.contains("\"b\":1"), "{sent}");
}

#[tokio::test]
async fn every_fate_of_a_transaction_is_told() {
    let (script, node) = node().await;
    let status = |status: &str| json!({"result": {"hash": Hash::ZERO, "status": status}});
    let mut dropped = status("dropped");
    dropped["result"]["dropped"] = json!({"code": "NONCE_STALE", "message": "m", "at": 1});
    let mut included = status("included");
    included["result"]["inclusionFee"] = json!("27");
    let unknown = json!({"error": {"code": -32051, "message": "unknown"}});
    let cases = [
        (status("included"), Fate::Included { inclusion_micro: 0 }),
        (included, Fate::Included { inclusion_micro: 27 }),
        (status("pending"), Fate::Pending),
        (dropped, Fate::Dropped("NONCE_STALE".into())),
        (unknown, Fate::Unknown),
    ];
    for (answer, fate) in cases {
        script.answer("ombra_waitForTransaction", answer);
        assert_eq!(Ok(fate), node.wait(&Hash::ZERO, Duration::ZERO).await);
    }
}

#[tokio::test]
async fn a_blob_is_read_if_it_is_text_and_not_too_long() {
    let (_, node) = node().await;
    assert_eq!(Ok(Some("a prompt".to_owned())), node.blob_text("there", 8).await);
    for (id, bytes_max) in [("there", 7), ("bytes", 8), ("absent", 8), ("../x", 8), ("", 8)] {
        assert_eq!(Ok(None), node.blob_text(id, bytes_max).await, "{id:?}");
    }
    assert!(matches!(node.blob_text("broken", 8).await, Err(ChainError::Away(_))));
}

#[tokio::test]
async fn an_account_counts_what_is_pending() {
    let (script, node) = node().await;
    let account = json!({"address": ADDRESS, "balance": "5", "nonce": 1, "pendingNonce": 3, "pendingBalance": "4"});
    script.result("ombra_getAccount", &account);
    let funds = node.funds(&ADDRESS.parse().unwrap()).await.unwrap();
    assert_eq!((4, 3), (funds.balance_micro, funds.nonce));
}

#[tokio::test]
async fn a_stake_is_told_from_the_block_on_from_which_the_chain_has_bonds() {
    let (script, node) = node().await;
    let miner = ADDRESS.parse().unwrap();
    script.result("ombra_feeSchedule", &json!({ "chatTurnFee": "100" }));
    assert_eq!(Ok(None), node.stake(&miner).await, "a node of before does not know the method");
    script.result("ombra_feeSchedule", &json!({ "chatTurnFee": "100", "baseFee": "10" }));
    let payment = |micro: &str| json!({ "due": 1, "amount": micro });
    script.result(
        "ombra_getBond",
        &json!({
            "address": ADDRESS, "bonded": "9", "locked": "4", "free": "5",
            "unbonding": [payment("2"), payment("3")], "rewardsHeld": 7, "rewardsRefused": 1,
        }),
    );
    for _ in 0..2 {
        let stake = node.stake(&miner).await.unwrap().unwrap();
        assert_eq!((9, 5, 5), (stake.bonded_micro, stake.free_micro(), stake.unbonding_micro));
        assert_eq!((7, 1), (stake.rewards_held, stake.rewards_refused));
    }
    let asked = script.calls.lock();
    let schedules = asked.iter().filter(|call| call["method"] == "ombra_feeSchedule").count();
    assert_eq!(2, schedules, "that there are bonds is asked no more once it is known");
}

#[tokio::test]
async fn a_protected_run_is_read_with_its_terms_and_what_is_held() {
    let (script, node) = node().await;
    let mut record = run_record("completed");
    record["protection"] = json!({
        "miners": [ADDRESS], "claimBond": "100000", "maxTokensPerStep": 50, "refuseMs": 600_000,
    });
    (record["heldUntil"], record["minerReward"]) = (json!(9), json!("14"));
    let page = json!({ "items": [record, run_record("running")], "nextCursor": null });
    script.result("ombra_listAgentRuns", &page);
    script.result("ombra_getAgentRun", &record);
    let run = node.run(&Hash::ZERO).await.unwrap().unwrap();
    let miners = vec![ADDRESS.parse().unwrap()];
    assert_eq!(Some(miners), run.protection.as_ref().map(|it| it.miners.clone()));
    assert_eq!((100_000, 600_000), (run.claim_bond_micro(), run.refuse_ms()));
    assert_eq!((50, 49), (run.step_tokens_max(1_000), run.step_tokens_max(49)));
    assert_eq!((Some(9), false), (run.held_until_ms, run.is_refused));
    let held = node.held(&ADDRESS.parse().unwrap()).await.unwrap();
    assert_eq!((1, 14), (held.runs, held.micro));
}

#[tokio::test]
async fn a_list_of_runs_goes_on_over_pages_that_are_left_short() {
    let (script, node) = node().await;
    let page = |runs: usize, next: Option<&str>| {
        let items = vec![run_record("pending"); runs];
        json!({ "items": items, "nextCursor": next })
    };
    let set = |pages: Vec<Value>| {
        script.answer("ombra_listAgentRuns", json!({ "pages": pages }));
        script.calls.lock().clear();
    };
    set(vec![page(0, Some("1")), page(2, Some("2")), page(1, None)]);
    assert_eq!(3, node.pending().await.unwrap().len());
    set(vec![page(90, Some("1")), page(10, Some("2")), page(7, None)]);
    assert_eq!(0, node.held(&ADDRESS.parse().unwrap()).await.unwrap().runs);
    let limits: Vec<Value> =
        script.calls.lock().iter().map(|call| call["params"][1]["limit"].clone()).collect();
    assert_eq!(vec![json!(100), json!(10)], limits, "no more than are looked at");
    set(vec![page(0, Some("1"))]);
    assert_eq!(0, node.pending().await.unwrap().len());
    assert_eq!(super::PAGES_MAX, script.calls.lock().len(), "a list without an end is given up");
}

/// What a node that began with a snapshot says of what is older.
fn no_history() -> Value {
    let data = json!({"code": "HISTORY_UNAVAILABLE", "earliestBlock": 9});
    json!({"error": {"code": -32052, "message": "no blocks before 9", "data": data}})
}

#[tokio::test]
async fn a_list_of_a_node_that_began_with_a_snapshot_ends_where_its_blocks_begin() {
    let (script, node) = node().await;
    let first = json!({ "items": [run_record("claimed")], "nextCursor": "1" });
    script.answer("ombra_listAgentRuns", json!({ "pages": [first, no_history()] }));
    let miner = ADDRESS.parse().unwrap();
    assert_eq!(1, node.pending().await.unwrap().len());
    assert_eq!(0, node.held(&miner).await.unwrap().runs);
    assert_eq!(2, node.open_of_miner(&miner).await.unwrap().len(), "one of each status");
    // Sums over all runs must not leave some out.
    let cut = ChainError::NoHistory("no blocks before 9".into());
    assert_eq!(Err(cut.clone()), node.of_miner(&miner).await);
    assert!(!cut.is_passing());
    script.answer("ombra_listAgentRuns", no_history());
    assert!(node.pending().await.unwrap().is_empty());
    // What is asked for by itself is not there, and that is no silence.
    script.answer("ombra_getAgentRun", no_history());
    assert_eq!(Err(cut), node.run(&Hash::ZERO).await);
}

#[tokio::test]
async fn only_the_runs_of_a_miner_that_have_not_ended_are_asked_for() {
    let (script, node) = node().await;
    let page = json!({ "items": [run_record("running")], "nextCursor": null });
    script.result("ombra_listAgentRuns", &page);
    assert_eq!(2, node.open_of_miner(&ADDRESS.parse().unwrap()).await.unwrap().len());
    let calls = script.calls.lock();
    let filters: Vec<_> = calls.iter().map(|call| call["params"][0].clone()).collect();
    let filter = |status: &str| json!({ "miner": ADDRESS, "status": status });
    assert_eq!(vec![filter("claimed"), filter("running")], filters);
}

#[test]
fn notices_tell_of_open_runs_and_of_claims_in_blocks_and_in_the_pool() {
    let run = Hash::digest(b"run");
    let event = |status: &str| json!({"event": "x", "agentRunId": run, "status": status});
    assert_eq!(Some(Notice::Open(run)), run_notice(&event("pending")));
    let mut claimed = event("claimed");
    assert_eq!(None, run_notice(&claimed), "it does not say by whom");
    claimed["minerAddress"] = json!(ADDRESS);
    let miner = ADDRESS.parse().unwrap();
    assert_eq!(Some(Notice::Claimed { run, miner }), run_notice(&claimed));
    assert_eq!(None, run_notice(&event("running")));
    let claim = |event: &str| json!({"event": event, "from": ADDRESS, "tx": {"agentRunId": run}});
    assert_eq!(Some(Notice::Claim { run, miner }), claim_notice(&claim("accepted")));
    for (standing, is_rival) in [("pending", true), ("queued", false)] {
        let mut claim = claim("accepted");
        claim["standing"] = json!(standing);
        assert_eq!(is_rival, claim_notice(&claim).is_some(), "{standing}");
    }
    assert_eq!(None, claim_notice(&claim("dropped")));
    assert_eq!(None, claim_notice(&json!({"gap": true})));
}

#[tokio::test]
async fn a_step_reports_as_many_tokens_as_genesis_allows() {
    let (script, node) = node().await;
    let stated = json!({"maxOutputTokensPerStep": 4_096});
    for (params, tokens) in [(stated, 4_096), (json!({}), 131_072)] {
        let info = json!({
            "chainId": "c", "genesisHash": Hash::ZERO, "height": 1, "latestBlockHash": Hash::ZERO,
            "latestBlockTime": 1, "syncing": true, "params": params,
        });
        script.result("ombra_chainInfo", &info);
        let head = node.head().await.unwrap();
        assert_eq!((tokens, true), (head.step_tokens_max, head.syncing));
    }
}

#[tokio::test]
async fn blobs_burn_what_the_node_says_of_the_next_block() {
    let (script, node) = node().await;
    script.result("ombra_feeSchedule", &json!({}));
    let before_v7 = BlobFees { init_micro: 0, chunk_micro: 100, base_fee: None };
    assert_eq!(Ok(before_v7), node.blob_fees().await);
    let schedule = json!({"blobFeePerChunk": "250", "blobInitFee": "1000", "baseFee": "12"});
    script.result("ombra_feeSchedule", &schedule);
    let from_v7 = BlobFees { init_micro: 1_000, chunk_micro: 250, base_fee: Some(12) };
    assert_eq!(Ok(from_v7), node.blob_fees().await);
}
