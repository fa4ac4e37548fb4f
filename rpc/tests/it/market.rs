//! What requesters ask: payloads, answers, prices, elections.

use fixtures::{EXECUTOR, MANIFEST, bond, judge_of, offer, register_judge};
use serde_json::{Value, json};
use types::tx::{AgentCall, HexBytes};
use types::{Body, Hash};

use crate::client::{NOT_FOUND, TestServer, assert_has, call, signed};
use crate::world::key;

const BOND: u64 = 10_000_000;

fn agent() -> Hash {
    judge_of(key(1).address())
}

fn metadata() -> String {
    json!({
        "name": "judge", "description": "d", "version": "1.0.0",
        "container_image": format!("ombra-model:{MANIFEST}"),
        "executor": {"kind": "model", "model": MANIFEST, "basePrompt": "12345678", "tools": [],
            "maxIterations": 2, "maxOutputTokens": 100},
        "royalty": "7",
        "abi": [{
            "type": "function", "name": "judge",
            "inputs": [
                {"name": "review", "type": "string"},
                {"name": "stars", "type": "uint256"},
            ],
            "outputs": [
                {"name": "verdict", "type": "string"},
                {"name": "", "type": "int8[]"},
            ],
        }],
    })
    .to_string()
}

/// Sends a transaction of the key of a seed with a nonce.
async fn send(server: &TestServer, (seed, nonce): (u8, u64), body: &Body) {
    server.send(&signed(&key(seed), nonce, body)).await;
}

/// The agent, and five miners of which the last one wants twice as much.
async fn market() -> TestServer {
    let server = TestServer::start_v8().await;
    send(&server, (1, 0), &register_judge(key(1).address(), metadata())).await;
    for seed in 2..=6 {
        send(&server, (seed, 0), &bond(BOND)).await;
        let per_call = if seed == 6 { 2_000 } else { 1_000 };
        let offer = offer(EXECUTOR, 1, [per_call, 1_000_000, 0, 0]);
        send(&server, (seed, 1), &offer.into()).await;
    }
    server.world.commit();
    server
}

#[tokio::test]
async fn arguments_become_a_payload_and_results_become_values() {
    let server = market().await;
    let stars = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    let asked = json!({
        "agentId": agent(), "method": "judge", "args": {"stars": stars, "review": "good"},
    });
    let encoded = server.result("ombra_encodeCall", asked).await;
    assert_has(&encoded, &json!({"signature": "judge(string,uint256)", "version": "1.0.0"}));
    let payload = encoded["payload"].as_str().unwrap();
    assert!(payload.starts_with(encoded["selector"].as_str().unwrap()), "{encoded}");
    assert!(payload.contains(&"f".repeat(64)), "{payload}");
    // The number is taken as it is written, and not through a float.
    let raw = format!(
        "[{{\"agentId\":\"{}\",\"method\":\"judge(string,uint256)\",\"args\":[\"good\",{stars}]}}]",
        agent()
    );
    let again = server.call_raw("ombra_encodeCall", &raw).await;
    assert_eq!(again["result"]["payload"], encoded["payload"]);

    let word = |last: u8| format!("{last:064x}");
    let result = [
        word(64),
        word(128),
        word(3),
        "796573".to_owned() + &"0".repeat(58),
        word(1),
        "f".repeat(64),
    ];
    let answer = json!({
        "agentId": agent(), "method": "judge", "result": format!("0x{}", result.concat()),
    });
    let decoded = server.result("ombra_decodeResult", answer).await;
    let expected = json!([
        {"name": "verdict", "type": "string", "value": "yes"},
        {"name": "", "type": "int8[]", "value": ["-1"]},
    ]);
    assert_eq!(decoded["values"], expected);
}

#[tokio::test]
async fn what_is_no_argument_and_no_answer_is_told_with_its_place() {
    let server = market().await;
    let cases = [
        ("ombra_encodeCall", json!({"method": "judge", "args": ["good", -1]}), "args/1"),
        ("ombra_encodeCall", json!({"method": "judge", "args": ["good", 1.5]}), "args/1"),
        ("ombra_encodeCall", json!({"method": "judge"}), "args"),
        ("ombra_encodeCall", json!({"method": "clerk", "args": []}), "method"),
        ("ombra_decodeResult", json!({"method": "judge", "result": "0x00"}), "result"),
        ("ombra_decodeResult", json!({"method": "judge", "result": "0xA0"}), "result"),
        ("ombra_estimateCall", json!({"committeeSize": 2}), "committeeSize"),
        ("ombra_estimateCall", json!({"threshold": 4}), "threshold"),
        ("ombra_estimateCall", json!({"limits": {"fuel": 1_000_000_000_000_u64}}), "limits.fuel"),
    ];
    for (method, mut question, field) in cases {
        question["agentId"] = json!(agent());
        server.wrong_param(method, question.clone(), field).await;
        question["agentId"] = json!(Hash::ZERO);
        if field.starts_with("args") {
            server.refused(method, question, NOT_FOUND).await;
        }
    }
}

#[tokio::test]
async fn an_estimate_has_prices_that_enough_miners_accept_and_what_is_held() {
    let server = market().await;
    let ask = async |question: Value| {
        let mut question = question;
        question["agentId"] = json!(agent());
        server.result("ombra_estimateCall", question).await
    };
    let limits = json!({"inputTokens": 10, "outputTokens": 10, "fuel": 0});
    let told = ask(json!({"limits": limits, "committeeSize": 1})).await;
    assert_eq!(told["prices"]["perCall"], "1000", "four are enough with two to spare");
    let expected = json!({"needed": 1, "eligible": 4, "budget": "1010", "floor": "1217",
        "enough": true, "royalty": "7"});
    assert_has(&told, &expected);
    let told = ask(json!({"limits": limits})).await;
    assert_eq!(told["prices"]["perCall"], "2000", "of three two to spare are all five");
    let told = ask(json!({"limits": limits, "appealable": true})).await;
    assert_has(&told, &json!({"needed": 10, "enough": false}));
    let told = ask(json!({"payload": "0x01020304"})).await;
    let limits = &told["limits"];
    assert_has(limits, &json!({"outputTokens": 200, "fuel": 0}));
    assert_eq!(limits["inputTokens"], 2 * (8 + 4 + 512) + 100, "what was written is read again");
    let prices = json!({"perCall": "999", "promptPerM": "1000000", "completionPerM": "0",
        "fuelPerG": "0"});
    assert_eq!(ask(json!({"prices": prices})).await["eligible"], 0);
}

#[tokio::test]
async fn an_election_is_told_with_everybody_who_took_part() {
    let server = market().await;
    let encoded = json!({"agentId": agent(), "method": "judge", "args": ["good", 1]});
    let encoded = server.result("ombra_encodeCall", encoded).await;
    let payload = HexBytes::parse(encoded["payload"].as_str().unwrap()).unwrap();
    let call = AgentCall { payload, ..call(1, 1, agent(), [1_000, 1_000_000, 0, 0]) };
    let call_id = call.call_id;
    server.refused("ombra_getElection", json!([call_id]), NOT_FOUND).await;
    send(&server, (1, 1), &Body::AgentCall(call)).await;
    server.world.commit();
    let height = server.world.commit();
    let held = server.result("ombra_getElection", json!([call_id, 0])).await;
    assert_eq!(held["blockIndex"], height);
    let mut expected: Vec<String> = (2..=5).map(|seed| key(seed).address().to_string()).collect();
    expected.sort_unstable();
    let candidates = held["candidates"].as_array().unwrap();
    let addresses: Vec<_> = candidates.iter().map(|it| &it["address"]).collect();
    assert_eq!(json!(addresses), json!(expected));
    assert_has(&candidates[0], &json!({"weight": BOND.to_string(), "leftOut": false}));
    server.refused("ombra_getElection", json!([call_id, 1]), NOT_FOUND).await;
    server.wrong_param("ombra_getElection", json!([call_id, 2]), "round").await;
}
