//! Subscriptions: filters, replay, order, slow readers.

use jsonrpsee::core::client::{ClientT, Error as ClientError, Subscription, SubscriptionClientT};
use jsonrpsee::rpc_params;
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::ws_client::WsClient;
use rpc::{Config, RateLimits};
use serde_json::{Value, json};
use types::tx::AgentRequest;
use types::{Amount, Body, Code, Hash, Params, Rejection};

use crate::client::{
    PATIENCE, TestServer, assert_has, chat_turn, claim, eventually, request_body, signed, transfer,
    turn,
};
use crate::world::key;

async fn connected() -> (TestServer, WsClient) {
    let server = TestServer::start().await;
    let client = server.websocket().await;
    (server, client)
}

pub async fn subscribe(client: &WsClient, kind: &str, filter: Value) -> Subscription<Value> {
    let params = rpc_params![kind, filter];
    client.subscribe("ombra_subscribe", params, "ombra_unsubscribe").await.unwrap()
}

pub async fn refused(client: &WsClient, kind: &str, filter: Value) -> ErrorObjectOwned {
    let params = rpc_params![kind, filter];
    let subscribed = client.subscribe::<Value, _>("ombra_subscribe", params, "ombra_unsubscribe");
    match subscribed.await {
        Err(ClientError::Call(error)) => error,
        other => panic!("{kind}: {other:?}"),
    }
}

pub async fn next(subscription: &mut Subscription<Value>) -> Value {
    let event = tokio::time::timeout(PATIENCE, subscription.next()).await;
    event.expect("an event in time").expect("an open subscription").unwrap()
}

fn request(seed: u8, max_fee: u64) -> (Hash, String) {
    let max_fee = Amount::new(max_fee);
    let body = AgentRequest { max_fee, max_steps: 1, ..request_body(seed, 0, "p") };
    (body.agent_run_id, signed(&key(seed), 0, &Body::AgentRequest(body)))
}

#[tokio::test]
async fn blocks_are_told_in_order_without_gap_or_repeat_from_the_past_into_the_present() {
    let server = TestServer::start().await;
    server.world.commit_many(50);
    let client = server.websocket().await;
    let mut from_start = subscribe(&client, "blocks", json!({"fromBlock": 1})).await;
    let mut live = subscribe(&client, "blocks", json!(null)).await;
    let committing = tokio::spawn({
        let world = server.world.clone();
        async move {
            for _ in 0..50 {
                world.commit();
                tokio::task::yield_now().await;
            }
        }
    });
    for index in 1..=100 {
        assert_has(&next(&mut from_start).await, &json!({"blockIndex": index, "index": index}));
    }
    for index in 51..=100 {
        assert_eq!(next(&mut live).await["blockIndex"], index);
    }
    committing.await.unwrap();
}

#[tokio::test]
async fn a_subscription_from_a_future_block_waits_for_it() {
    let (server, client) = connected().await;
    let mut events = subscribe(&client, "blocks", json!({"fromBlock": 3})).await;
    server.world.commit_many(4);
    for index in [3, 4] {
        assert_eq!(next(&mut events).await["blockIndex"], index);
    }
}

#[tokio::test]
async fn transactions_are_told_by_address_and_type() {
    let (server, client) = connected().await;
    let sender = json!({"address": key(2).address(), "type": "TRANSFER"});
    let mut from_two = subscribe(&client, "transactions", sender).await;
    let receiver = json!({"address": key(200).address()});
    let mut to_all = subscribe(&client, "transactions", receiver).await;
    let mut turns = subscribe(&client, "transactions", json!({"type": "CHAT_TURN"})).await;
    for tx in [transfer(1, 0), transfer(2, 0), turn(3, 0, "hello")] {
        server.send(&tx).await;
    }
    server.world.commit();
    let event = next(&mut from_two).await;
    assert_has(&event, &json!({"from": key(2).address(), "position": 1}));
    assert_eq!(event["tx"]["hash"], event["hash"]);
    assert_eq!(next(&mut to_all).await["position"], 0);
    assert_eq!(next(&mut to_all).await["position"], 1);
    assert_eq!(next(&mut turns).await["type"], "CHAT_TURN");
}

#[tokio::test]
async fn runs_are_told_from_request_to_deadline_the_same_live_and_replayed() {
    let (server, client) = connected().await;
    let (id, tx) = request(1, 1_000);
    let mut live = subscribe(&client, "agentRuns", json!({"agentRunId": id})).await;
    let miner = json!({"miner": key(2).address()});
    let mut by_miner = subscribe(&client, "agentRuns", miner).await;
    let mut pending = subscribe(&client, "agentRuns", json!({"status": "pending"})).await;
    server.send(&tx).await;
    server.send(&request(9, 500).1).await;
    server.world.commit();
    server.send(&claim(2, 0, id)).await;
    server.world.commit();
    server.world.commit_after(Params::default().claim_ttl_ms + 1);
    server.world.commit_after(Params::default().pending_ttl_ms + 1);

    let mut told = Vec::new();
    for (event, status) in [
        ("created", "pending"),
        ("claimed", "claimed"),
        ("expired", "pending"),
        ("expired", "timeout"),
    ] {
        let next = next(&mut live).await;
        let submitter = key(1).address();
        assert_has(&next, &json!({"event": event, "status": status, "submitter": submitter}));
        told.push(next);
    }
    assert_eq!((&told[0]["maxFee"], &told[3]["userRefund"]), (&json!("1000"), &json!("1000")));
    assert_eq!(next(&mut by_miner).await["event"], "claimed");
    assert_eq!(next(&mut by_miner).await["status"], "pending");
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(next(&mut pending).await["agentRunId"].clone());
    }
    assert_eq!(seen.iter().filter(|run| **run == json!(id)).count(), 2);

    let replay = json!({"agentRunId": id, "fromBlock": 1});
    let mut replay = subscribe(&client, "agentRuns", replay).await;
    for event in told {
        assert_eq!(event, next(&mut replay).await);
    }
}

#[tokio::test]
async fn a_replay_of_what_nobody_wrote_down_is_refused_and_says_from_where_there_are_events() {
    let server = TestServer::start().await;
    server.world.state().events_from = 3;
    server.world.commit_many(4);
    let client = server.websocket().await;
    let info: Value = client.request("ombra_chainInfo", rpc_params![]).await.unwrap();
    assert_has(&info, &json!({"earliestBlock": 1, "eventsFrom": 3}));
    for kind in ["agentRuns", "chat"] {
        let error = refused(&client, kind, json!({"fromBlock": 2})).await;
        assert_eq!(-32052, error.code(), "{kind}");
        let data: Value = serde_json::from_str(error.data().unwrap().get()).unwrap();
        let expected = (&json!("HISTORY_UNAVAILABLE"), &json!(3));
        assert_eq!(expected, (&data["code"], &data["eventsFrom"]), "{kind}");
        drop(subscribe(&client, kind, json!({"fromBlock": 3})).await);
    }
    let mut blocks = subscribe(&client, "blocks", json!({"fromBlock": 1})).await;
    assert_eq!(next(&mut blocks).await["blockIndex"], 1, "a block needs no events to be shown");
}

#[tokio::test]
async fn turns_are_told_by_conversation() {
    let (server, client) = connected().await;
    let mine = Hash::digest(b"mine");
    let mut events = subscribe(&client, "chat", json!({"conversationId": mine})).await;
    server.send(&turn(1, 0, "hello")).await;
    server.send(&signed(&key(2), 0, &Body::ChatTurn(chat_turn(mine, "hello")))).await;
    server.world.commit();
    assert_has(&next(&mut events).await, &json!({"from": key(2).address(), "blockIndex": 1}));
}

#[tokio::test]
async fn the_pool_tells_what_it_takes_and_drops() {
    let (server, client) = connected().await;
    let mine = json!({"address": key(1).address()});
    let mut events = subscribe(&client, "pool", mine).await;
    server.send(&transfer(2, 0)).await;
    let hash = server.send(&transfer(1, 0)).await;
    let accepted = json!({"event": "accepted", "hash": hash, "standing": "pending"});
    assert_has(&next(&mut events).await, &accepted);
    server.world.queue(&transfer(1, 7));
    let accepted = json!({"event": "accepted", "nonce": 7, "standing": "queued"});
    assert_has(&next(&mut events).await, &accepted);
    let reason = Rejection::new(Code::NonceStale, "nonce", 0, 1);
    server.world.drop_tx(&Hash::parse(&hash).unwrap(), reason);
    let event = next(&mut events).await;
    assert_has(&event, &json!({"event": "dropped", "blockIndex": 0}));
    assert_eq!(event["dropped"]["code"], "NONCE_STALE");
    assert_eq!(event.get("standing"), None);
}

#[tokio::test]
async fn a_slow_reader_of_the_pool_is_told_how_many_events_it_lost() {
    let (server, client) = connected().await;
    let mut events = subscribe(&client, "pool", json!({})).await;
    // One thread: the subscription cannot read while these are taken in, and 16 are kept.
    for seed in 1..=20 {
        server.world.accept(&transfer(seed, 0));
    }
    assert_eq!(json!({"lagged": 4, "blockIndex": 0}), next(&mut events).await);
    assert_eq!(next(&mut events).await["from"], json!(key(5).address()));
}

#[tokio::test]
async fn however_much_of_the_pool_a_connection_subscribes_to_an_event_wakes_it_once() {
    let (server, client) = connected().await;
    let mut subscriptions = Vec::new();
    for seed in 1..=20 {
        let whose = json!({"address": key(seed).address()});
        subscriptions.push(subscribe(&client, "pool", whose).await);
    }
    eventually("one listens for all", || server.world.pool_listeners() == 1).await;
    let other = server.websocket().await;
    let _other = subscribe(&other, "pool", json!({})).await;
    assert_eq!(2, server.world.pool_listeners(), "another connection listens for itself");

    server.send(&transfer(20, 0)).await;
    assert_eq!(next(&mut subscriptions[19]).await["from"], json!(key(20).address()));
    drop((subscriptions, client));
    eventually("nobody listens for those who have gone", || server.world.pool_listeners() == 1)
        .await;
}

#[tokio::test]
async fn each_subscription_of_a_connection_to_the_pool_hears_what_it_asked_for_from_its_beginning()
{
    let (server, client) = connected().await;
    let mut all = subscribe(&client, "pool", json!({})).await;
    let mut transfers = subscribe(&client, "pool", json!({"type": "TRANSFER"})).await;
    let first = server.send(&transfer(1, 0)).await;
    let mut later = subscribe(&client, "pool", json!({})).await;
    let second = server.send(&turn(2, 0, "hello")).await;
    let third = server.send(&transfer(3, 0)).await;
    for hash in [&first, &second, &third] {
        assert_eq!(*hash, next(&mut all).await["hash"]);
    }
    for hash in [&first, &third] {
        assert_eq!(*hash, next(&mut transfers).await["hash"]);
    }
    // The first one's end is not that of the others.
    all.unsubscribe().await.unwrap();
    let fourth = server.send(&transfer(4, 0)).await;
    for hash in [&second, &third, &fourth] {
        assert_eq!(*hash, next(&mut later).await["hash"]);
    }
    assert_eq!(fourth, next(&mut transfers).await["hash"]);
}

#[tokio::test]
async fn each_subscription_of_a_slow_connection_is_told_what_it_lost() {
    let (server, client) = connected().await;
    let mut early = subscribe(&client, "pool", json!({})).await;
    // One thread: nothing is told before all of this has happened, and 16 events are kept.
    let accept = |seeds: std::ops::RangeInclusive<u8>| {
        for seed in seeds {
            server.world.accept(&transfer(seed, 0));
        }
    };
    accept(1..=20);
    assert_eq!(json!({"lagged": 4, "blockIndex": 0}), next(&mut early).await);
    let mut late = subscribe(&client, "pool", json!({})).await;
    for seed in 5..=20 {
        assert_eq!(next(&mut early).await["from"], json!(key(seed).address()));
    }
    accept(21..=40);
    for subscription in [&mut early, &mut late] {
        assert_eq!(json!({"lagged": 4, "blockIndex": 0}), next(subscription).await);
        assert_eq!(next(subscription).await["from"], json!(key(25).address()));
    }
}

#[tokio::test]
async fn many_replays_of_the_same_blocks_read_each_about_once() {
    const BLOCKS: usize = 1_000;
    let server = TestServer::start().await;
    server.world.commit_many(BLOCKS);
    let (nothing, everything) =
        (json!({"fromBlock": 1, "type": "TRANSFER"}), json!({"fromBlock": 1}));
    let clients = [server.websocket().await, server.websocket().await];
    let mut replays = Vec::new();
    for client in &clients {
        for _ in 0..20 {
            replays.push(subscribe(client, "transactions", nothing.clone()).await);
        }
    }
    // Its events come after those of the others, which wait for the same turns.
    let mut last = subscribe(&clients[1], "blocks", everything).await;
    for index in 1..=BLOCKS {
        assert_eq!(next(&mut last).await["index"], index);
    }
    server.world.accept(&transfer(1, 0));
    server.world.commit();
    for replay in &mut replays {
        assert_eq!(json!(BLOCKS + 1), next(replay).await["blockIndex"], "once it has caught up");
    }
    let read = server.world.block_reads();
    assert!(read < 2 * BLOCKS, "{read} blocks were read");
}

#[tokio::test]
async fn a_replay_of_large_blocks_tells_all_of_them_in_order() {
    let server = TestServer::start().await;
    for block in 0..3 {
        for place in 0..4 {
            let content = "x".repeat(1 + 5_000 * place as usize);
            server.world.accept(&turn(1, block * 4 + place, &content));
        }
        server.world.commit();
    }
    let client = server.websocket().await;
    let mut events = subscribe(&client, "chat", json!({"fromBlock": 1})).await;
    for block in 0..3 {
        for place in 0..4 {
            let event = next(&mut events).await;
            let content = event["content"].as_str().unwrap().len();
            assert_eq!((&json!(block + 1), 1 + 5_000 * place), (&event["blockIndex"], content));
        }
    }
}

#[tokio::test]
async fn a_replay_that_matches_nothing_costs_what_it_reads() {
    const BURST: u32 = 60;
    let rate = RateLimits { requests_per_second: 1, burst: BURST, ..RateLimits::default() };
    let server = TestServer::start_as(Config { rate, ..Config::default() }).await;
    // So many cost a hundred calls.
    server.world.commit_many(6_400);
    let client = server.websocket().await;
    let call = || server.call("ombra_chainInfo", json!([]));
    assert!(call().await.get("error").is_none(), "not yet");
    let nothing = json!({"fromBlock": 1, "type": "TRANSFER"});
    let _replay = subscribe(&client, "transactions", nothing).await;
    eventually("half of it", || server.world.block_reads() > 3_200).await;
    let mut is_limited = false;
    for _ in 0..BURST / 2 {
        is_limited |= call().await["error"]["data"]["code"] == "RATE_LIMITED";
    }
    assert!(is_limited, "half of it is worth 50 calls");
    assert!(server.world.block_reads() < 6_000, "it waits for the next calls");
}

#[tokio::test]
async fn filters_that_cannot_fit_are_refused() {
    let (_server, client) = connected().await;
    for (kind, filter) in [
        ("blocks", json!({"address": key(1).address()})),
        ("pool", json!({"fromBlock": 1})),
        ("agentRuns", json!({"status": "asleep"})),
        ("transactions", json!({"type": "MINT"})),
        ("chat", json!({"conversation": "x"})),
        ("weather", json!({})),
    ] {
        assert_eq!(-32602, refused(&client, kind, filter).await.code(), "{kind}");
    }
}

#[tokio::test]
async fn over_plain_http_the_error_says_what_to_do() {
    let server = TestServer::start().await;
    let (number, code, error) = server.error("ombra_subscribe", json!(["blocks"])).await;
    assert_eq!((-32600, "WEBSOCKET_ONLY"), (number, code.as_str()));
    assert!(error["message"].as_str().unwrap().contains("WebSocket"), "{error}");
}

#[tokio::test]
async fn an_ended_subscription_leaves_nothing_behind() {
    let (server, client) = connected().await;
    let before = server.world.listeners();
    let events = subscribe(&client, "blocks", json!({})).await;
    assert_eq!(before + 1, server.world.listeners());
    events.unsubscribe().await.unwrap();
    eventually("the listener goes", || server.world.listeners() == before).await;
    let kept = subscribe(&client, "blocks", json!({})).await;
    drop(kept);
    drop(client);
    eventually("the listener goes", || server.world.listeners() == before).await;
}

#[tokio::test]
async fn subscriptions_per_connection_are_bounded_and_methods_work_beside_them() {
    let limits = rpc::Limits { subscriptions_max: 2, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    let client = server.websocket().await;
    let _one = subscribe(&client, "blocks", json!({})).await;
    let _two = subscribe(&client, "chat", json!({})).await;
    assert_eq!(-32006, refused(&client, "pool", json!({})).await.code());
    let info: Value = client.request("ombra_chainInfo", rpc_params![]).await.unwrap();
    assert_eq!(info["height"], 0);
}
