//! Waiting for a transaction: answered by events, never by asking again.

use jsonrpsee::core::client::ClientT;
use jsonrpsee::rpc_params;
use serde_json::{Value, json};
use types::{Code, Hash, Rejection};

use crate::client::{NOT_FOUND, PATIENCE, TestServer, assert_has, eventually, transfer};

fn wait(server: &TestServer, hash: &str) -> tokio::task::JoinHandle<Value> {
    let client = server.http();
    let params = rpc_params![hash, json!({"timeoutMs": 20_000})];
    tokio::spawn(async move { client.request("ombra_waitForTransaction", params).await.unwrap() })
}

/// Sends a transaction, and waits for it; answers its hash and the wait, which has begun.
async fn send_and_wait(server: &TestServer) -> (String, tokio::task::JoinHandle<Value>) {
    let hash = server.send(&transfer(1, 0)).await;
    let before = server.world.lookups();
    let waiting = wait(server, &hash);
    eventually("it waits", || server.world.lookups() > before).await;
    (hash, waiting)
}

#[tokio::test]
async fn a_wait_is_answered_at_inclusion() {
    let server = TestServer::start().await;
    let hash = server.send(&transfer(1, 0)).await;
    let waits = [wait(&server, &hash), wait(&server, &hash)];
    eventually("both wait", || server.world.lookups() >= 2).await;
    server.world.commit();
    for wait in waits {
        let told = wait.await.unwrap();
        assert_has(&told, &json!({"status": "included", "blockIndex": 1}));
        assert_eq!(told["tx"]["hash"], hash.as_str());
    }
}

#[tokio::test]
async fn a_wait_is_answered_when_the_transaction_is_dropped() {
    let server = TestServer::start().await;
    let (hash, waiting) = send_and_wait(&server).await;
    let reason = Rejection::new(Code::NonceStale, "nonce", 0, 1);
    server.world.drop_tx(&Hash::parse(&hash).unwrap(), reason);
    let told = waiting.await.unwrap();
    assert_eq!(told["status"], "dropped");
    assert_eq!(told["dropped"]["code"], "NONCE_STALE");
    let later = server.result("ombra_waitForTransaction", json!([hash])).await;
    assert_eq!(later, told, "what is decided is answered at once");
    assert_eq!(told, server.result("ombra_getTransaction", json!([hash])).await);
}

#[tokio::test]
async fn a_wait_that_ends_says_nothing_against_the_transaction() {
    let server = TestServer::start().await;
    let hash = server.send(&transfer(1, 0)).await;
    let params = json!({"hash": hash, "timeoutMs": 10});
    let told = server.result("ombra_waitForTransaction", params).await;
    assert_eq!(told["status"], "pending");
    server.refused("ombra_waitForTransaction", json!([Hash::ZERO]), NOT_FOUND).await;
    let long = json!([hash, {"timeoutMs": 60_001}]);
    server.wrong_param("ombra_waitForTransaction", long, "timeoutMs").await;
}

#[tokio::test]
async fn too_many_waits_are_told_when_to_come_again() {
    let limits = rpc::Limits { waiting_calls_max: 0, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    let hash = server.send(&transfer(1, 0)).await;
    let expected = (-32053, "TOO_MANY_WAITING");
    let data = server.refused("ombra_waitForTransaction", json!([hash]), expected).await;
    assert_eq!(data["retryAfterMs"], 1_000);
}

#[tokio::test]
async fn events_that_were_lost_are_made_up_for() {
    let server = TestServer::start().await;
    let (hash, waiting) = send_and_wait(&server).await;
    let others: Vec<Hash> = (10..50).map(|seed| server.world.accept(&transfer(seed, 0))).collect();
    // One thread: the hub cannot read while these are dropped, and the channel holds only 16.
    let reason = || Rejection::new(Code::PoolFull, "pool", 1, 0);
    server.world.drop_tx(&Hash::parse(&hash).unwrap(), reason());
    others.iter().for_each(|other| server.world.drop_tx(other, reason()));
    // Sooner than the wait's own time is over.
    let told = tokio::time::timeout(PATIENCE, waiting).await.expect("told in time");
    assert_eq!(told.unwrap()["status"], "dropped");
}
