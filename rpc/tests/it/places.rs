//! What places in blocks cost from fork v7 on, and the votes on rules, as clients see them.

use fixtures::{fork_vote, param_vote, turn};
use serde_json::{Value, json};
use types::build::{Envelope, build_tx};
use types::{Amount, Bid, Hash};

use crate::client::{TestServer, assert_has, signed, transfer};
use crate::world::{NOW, key};

/// A turn of the key of `seed` with a tip.
fn tipped(seed: u8, nonce: u64, tip: u64) -> String {
    let bid = Bid { max_base_fee: None, tip: Some(Amount::new(tip)) };
    let envelope = Envelope { bid, ..Envelope::new(nonce, NOW, None) };
    build_tx(&key(seed), &turn("hello").into(), &envelope)
}

/// `ceil(bytes × base fee / 1024)` of a signed text's payload and signature at the base fee 10.
fn fee_of(text: &str) -> u64 {
    let seal = r#","hash":"","signature":"""#.len() + 64 + 128;
    ((text.len() - seal + 64) as u64 * 10).div_ceil(1_024)
}

fn micro(value: &Value) -> u64 {
    value.as_str().unwrap_or_else(|| panic!("{value}")).parse().unwrap()
}

#[tokio::test]
async fn a_block_and_its_transactions_tell_what_their_places_cost() {
    let server = TestServer::start_v7().await;
    let (turn, payment) = (tipped(1, 0, 7), transfer(2, 0));
    let hashes = [server.send(&turn).await, server.send(&payment).await];
    server.world.commit();
    for (hash, text) in hashes.iter().zip([&turn, &payment]) {
        let told = server.result("ombra_getTransaction", json!([hash])).await;
        assert_eq!(fee_of(text), micro(&told["inclusionFee"]), "{told}");
        let waited = server.result("ombra_waitForTransaction", json!([hash])).await;
        assert_eq!(told, waited);
        let rest = server.found(&format!("/api/chain/tx/{hash}")).await;
        assert_eq!(told["inclusionFee"], rest["inclusionFee"]);
    }
    let block = server.result("ombra_getBlock", json!([1])).await;
    assert_has(&block, &json!({"baseFee": "10", "tips": "7", "nextBaseFee": "10"}));
    assert_eq!(fee_of(&turn) + fee_of(&payment), micro(&block["inclusionFees"]));
    let rest = server.found("/api/chain/block/1").await;
    assert_eq!(block["inclusionFees"], rest["inclusionFees"]);
}

#[tokio::test]
async fn before_v7_nothing_tells_of_places() {
    let server = TestServer::start().await;
    let hash = server.send(&transfer(1, 0)).await;
    server.world.commit();
    let told = server.result("ombra_getTransaction", json!([hash])).await;
    let block = server.result("ombra_getBlock", json!([1])).await;
    let schedule = server.result("ombra_feeSchedule", json!([])).await;
    for (answer, member) in [
        (&told, "inclusionFee"),
        (&block, "baseFee"),
        (&block, "inclusionFees"),
        (&schedule, "baseFee"),
        (&schedule, "registerFee"),
    ] {
        assert_eq!(None, answer.get(member), "{answer}");
    }
    let estimate = server.result("ombra_feeEstimate", json!([])).await;
    assert_has(&estimate, &json!({"active": false, "inclusionFee": "0"}));
    assert_eq!(estimate.get("activeFrom"), None);
    let params = server.result("ombra_params", json!([])).await;
    assert_eq!(params["active"], false);
}

#[tokio::test]
async fn the_fee_schedule_and_the_estimate_tell_the_price_of_the_next_block() {
    let server = TestServer::start_v7().await;
    let schedule = server.result("ombra_feeSchedule", json!([])).await;
    let expected = json!({"baseFee": "10", "baseFeeFloor": "10", "registerFee": "10000",
        "blobInitFee": "1000", "maxBlockWork": 200_000});
    assert_has(&schedule, &expected);

    let estimate = server.result("ombra_feeEstimate", json!([])).await;
    let expected = json!({"blockIndex": 1, "active": true, "activeFrom": 0, "size": 512,
        "inclusionFee": "5", "suggestedMaxBaseFee": "2000",
        "tips": {"p10": "0", "p50": "0", "p90": "0", "sample": 0, "blocks": 0}});
    assert_has(&estimate, &expected);
    for named in [json!([1_025]), json!({"size": 1_025}), json!({"bytes": 1_025})] {
        let estimate = server.result("ombra_feeEstimate", named).await;
        assert_eq!(estimate["inclusionFee"], "11");
    }
    for wrong in [json!([0]), json!([1_u64 << 33]), json!(["512"])] {
        server.wrong_param("ombra_feeEstimate", wrong, "size").await;
    }
}

#[tokio::test]
async fn an_estimate_follows_the_tips_of_the_last_20_blocks() {
    let server = TestServer::start_v7().await;
    for seed in 1..=30 {
        server.world.accept(&tipped(seed, 0, u64::from(seed)));
        server.world.commit();
    }
    let tips = server.result("ombra_feeEstimate", json!([])).await["tips"].clone();
    assert_eq!(json!({"p10": "12", "p50": "20", "p90": "28", "sample": 20, "blocks": 20}), tips);
    let before = server.world.block_reads();
    server.result("ombra_feeEstimate", json!([])).await;
    assert_eq!(before, server.world.block_reads(), "a question read blocks again");
}

#[tokio::test]
async fn builders_write_what_a_place_may_cost() {
    let server = TestServer::start_v7().await;
    let of = |seed: u8, mut members: Value| {
        members["from"] = json!(key(seed).address());
        members["publicKey"] = json!(key(seed).public_key());
        members["maxBaseFee"] = json!("50");
        members
    };
    let turn = json!({"tip": "7", "conversationId": Hash::ZERO, "role": "user", "content": "a"});
    let mut turn = of(1, turn);
    let built = server.result("ombra_buildChatTurn", turn.clone()).await;
    let payload = built["payload"].as_str().unwrap();
    assert!(payload.contains(r#","maxBaseFee":"50","tip":"7","#), "{payload}");

    turn["tip"] = json!(7);
    server.wrong_param("ombra_buildChatTurn", turn, "tip").await;

    // What a transfer tips is its fee.
    let twice = of(1, json!({"tip": "7", "to": key(2).address(), "amount": "1"}));
    server.refused("ombra_buildTransfer", twice, (-32050, "INVALID_FIELD")).await;
    let vote = of(99, json!({"name": "baseFeeFloor", "value": 20, "height": 5}));
    let built = server.result("ombra_buildParamVote", vote).await;
    assert_has(&built["tx"], &json!({"type": "PARAM_VOTE", "value": 20}));
}

#[tokio::test]
async fn builders_reject_what_the_rules_of_the_next_block_do_not_allow() {
    const METHOD: &str = "ombra_buildAgentRequest";
    let ask = |name: &str, value: Value| {
        let mut request = json!({"from": key(1).address(), "publicKey": key(1).public_key(),
            "prompt": "a question", "maxFee": "10000", "maxSteps": 1});
        request[name] = value;
        request
    };
    let refused = (-32050, "INVALID_FIELD");
    let [before_v7, before_v8] = [TestServer::start().await, TestServer::start_v7().await];
    let v8 = TestServer::start_v8().await;
    let long = ask("toolsWhitelist", json!(["t".repeat(65)]));
    for server in [&before_v7, &before_v8] {
        let data = server.refused(METHOD, long.clone(), refused).await;
        assert_eq!(data["field"], "toolsWhitelist");
    }
    v8.result(METHOD, long).await;
    for version in [String::new(), "1".repeat(65)] {
        let mut request = ask("agentId", json!(Hash::ZERO));
        request["agentVersion"] = json!(version);
        let data = v8.refused(METHOD, request, refused).await;
        assert_eq!(data["field"], "agentVersion");
    }
}

#[tokio::test]
async fn votes_show_until_they_are_decided_and_cost_nothing_the_first_time_in_a_block() {
    let server = TestServer::start_v7().await;
    let vote =
        |nonce, value, height| signed(&key(99), nonce, &param_vote("registerFee", value, height));
    let first = server.send(&signed(&key(99), 0, &fork_vote("v8", 200_000))).await;
    server.world.commit();
    let told = server.result("ombra_getTransaction", json!([first])).await;
    assert_eq!(told["inclusionFee"], "0", "{told}");

    // The only validator decides at once; the value holds from its height on.
    server.send(&vote(1, 5_000, 4)).await;
    server.world.commit();
    let of = |params: &Value| {
        let all = params["params"].as_array().unwrap();
        all.iter().find(|param| param["name"] == "registerFee").unwrap().clone()
    };
    let params = server.result("ombra_params", json!([])).await;
    assert_has(&params, &json!({"active": true, "totalPower": "10"}));
    let expected = json!({"next": {"value": 5_000, "height": 4}, "value": 10_000, "min": 0,
        "max": 10_000_000});
    assert_has(&of(&params), &expected);
    server.world.commit();
    let param = of(&server.result("ombra_params", json!([])).await);
    assert_eq!(param["value"], 5_000);
    let schedule = server.result("ombra_feeSchedule", json!([])).await;
    assert_eq!(schedule["registerFee"], "5000");
}
