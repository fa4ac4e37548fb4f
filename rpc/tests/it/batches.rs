//! Submissions: the signer's exact text, joined batches, answers in order.

use serde_json::{Value, json};
use types::Hash;

use crate::client::{TestServer, transfer};

fn batch(calls: &[String]) -> String {
    format!("[{}]", calls.join(","))
}

fn call(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn send_call(id: u64, tx: &str) -> String {
    call(id, "ombra_sendTransaction", &format!("[{tx}]"))
}

async fn post_batch(server: &TestServer, calls: &[String]) -> Vec<Value> {
    let (_, body) = server.post(&batch(calls)).await;
    serde_json::from_str(&body).unwrap_or_else(|_| panic!("not an array: {body}"))
}

#[tokio::test]
async fn the_signers_text_arrives_untouched() {
    let server = TestServer::start().await;
    let texts = [
        r#"{"b":1.0,"a":1e+21,"a":2,"c":"\u0041\ud83d\ude00"}"#,
        r#"{ "spaced" : [ 1 ,2 ] , "n":-0 }"#,
        r#"{"deep":{"x":{"x":1,"x":2}},"big":123456789012345678901234567890}"#,
    ];
    for text in texts {
        let named = call(1, "ombra_sendTransaction", &format!(r#"{{"tx":{text}}}"#));
        let calls = [
            send_call(1, text),
            named.clone(),
            call(1, "ombra_sendTransactions", &format!("[[{text}]]")),
            batch(&[send_call(1, text)]),
            batch(&[named]),
        ];
        for call in calls {
            server.world.state().submissions.clear();
            let (_, body) = server.post(&call).await;
            assert!(body.contains("MALFORMED"), "{body}");
            assert_eq!(vec![vec![text.to_owned()]], server.world.state().submissions, "{call}");
        }
    }
}

#[tokio::test]
async fn single_submissions_of_a_batch_are_handed_over_together() {
    let server = TestServer::start().await;
    let calls: Vec<String> = (0..50).map(|nonce| send_call(nonce, &transfer(1, nonce))).collect();
    let answers = post_batch(&server, &calls).await;
    assert_eq!(50, answers.len());
    for (id, answer) in (0_u64..).zip(&answers) {
        assert_eq!(answer["id"], id);
        assert!(answer["result"]["hash"].is_string(), "{answer}");
    }
    let sizes: Vec<usize> = server.world.state().submissions.iter().map(Vec::len).collect();
    assert_eq!(vec![50], sizes);
}

#[tokio::test]
async fn a_mixed_batch_is_answered_in_order_and_one_bad_call_harms_no_other() {
    let server = TestServer::start().await;
    let wait = json!({"jsonrpc": "2.0", "id": "w", "method": "ombra_waitForTransaction",
        "params": [Hash::ZERO]});
    let subscribe = json!({"jsonrpc": "2.0", "id": "s", "method": "ombra_subscribe",
        "params": ["blocks"]});
    let calls = [
        send_call(1, &transfer(1, 0)),
        send_call(2, "5"),
        r#"{"jsonrpc":"2.0","id":3,"method":"ombra_sendTransaction","params":[]}"#.to_owned(),
        send_call(4, &transfer(2, 0)),
        r#"{"jsonrpc":"2.0","id":5,"method":"txpool_status"}"#.to_owned(),
        wait.to_string(),
        subscribe.to_string(),
        "7".to_owned(),
        r#"{"jsonrpc":"2.0","method":"txpool_status"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":9,"method":"nothing"}"#.to_owned(),
        send_call(10, &transfer(3, 0)),
    ];
    let answers = post_batch(&server, &calls).await;
    let told: Vec<(Value, Value)> =
        answers.iter().map(|a| (a["id"].clone(), a["error"]["code"].clone())).collect();
    let expected = json!([
        [1, null],
        [2, -32050],
        [3, -32602],
        [4, null],
        [5, null],
        ["w", -32600],
        ["s", -32600],
        [null, -32600],
        [9, -32601],
        [10, null]
    ]);
    assert_eq!(expected, json!(told));
    assert_eq!(answers[4]["result"]["pending"], 2, "what was sent before is counted");
    assert_eq!(answers[5]["error"]["data"]["code"], "NOT_IN_BATCH");
}

#[tokio::test]
async fn many_transactions_in_one_call_are_answered_in_order() {
    let server = TestServer::start().await;
    let txs = format!("[[{},{},{}]]", transfer(1, 0), r#"{"x":1}"#, transfer(2, 0));
    let answer = server.call_raw("ombra_sendTransactions", &txs).await;
    assert!(answer["result"][0]["hash"].is_string(), "{answer}");
    assert_eq!(answer["result"][1]["error"]["data"]["code"], "MALFORMED");
    assert_eq!(answer["result"][1]["error"]["code"], -32050);
    assert!(answer["result"][2]["hash"].is_string(), "{answer}");
}

#[tokio::test]
async fn too_many_transactions_or_calls_are_refused() {
    let server = TestServer::start().await;
    let many = json!([vec![1; 1_001]]);
    server.refused("ombra_sendTransactions", many, (-32053, "TOO_MANY_ITEMS")).await;
    server.result("ombra_sendTransactions", json!([vec![1; 1_000]])).await;

    let calls: Vec<String> = (0..1_001).map(|id| send_call(id, "1")).collect();
    let padded = format!("[{}{}", "1,".repeat(1_000_000), "1]");
    for body in [batch(&calls), padded] {
        let (_, answer) = server.post(&body).await;
        assert!(answer.contains("-32010"), "{answer}");
    }
    let empty: Value = serde_json::from_str(&server.post("[]").await.1).unwrap();
    assert_eq!(json!(-32600), empty["error"]["code"]);
}

#[tokio::test]
async fn answers_that_are_too_large_become_an_error() {
    let limits = rpc::Limits { response_bytes_max: 600, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    assert_eq!(-32008, server.error("rpc.discover", json!([])).await.0);
    let calls: Vec<String> = (0..20).map(|nonce| send_call(nonce, &transfer(1, nonce))).collect();
    let (_, body) = server.post(&batch(&calls)).await;
    assert!(body.contains("-32011"), "{body}");
}
