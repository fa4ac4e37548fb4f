//! What places in blocks cost from fork v7 on, and the votes on rules, as clients see them.

use serde_json::{Value, json};
use types::build::{Envelope, build_tx};
use types::tx::{ForkVote, ParamVote};
use types::{Amount, Bid, Body, Hash};

use crate::client::{TestServer, chat_turn, signed, transfer};
use crate::world::{NOW, key};

/// A turn of the key of `seed` with a tip.
fn tipped(seed: u8, nonce: u64, tip: u64) -> String {
    let bid = Bid { max_base_fee: None, tip: Some(Amount::new(tip)) };
    let envelope = Envelope { bid, ..Envelope::new(nonce, NOW, None) };
    build_tx(&key(seed), &Body::ChatTurn(chat_turn(Hash::ZERO, "hello")), &envelope)
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
        let (_, rest) = server.get(&format!("/api/chain/tx/{hash}")).await;
        let rest: Value = serde_json::from_str(&rest).unwrap();
        assert_eq!(told["inclusionFee"], rest["inclusionFee"]);
    }
    let block = server.result("ombra_getBlock", json!([1])).await;
    assert_eq!(block["baseFee"], "10");
    assert_eq!(fee_of(&turn) + fee_of(&payment), micro(&block["inclusionFees"]));
    assert_eq!((&block["tips"], &block["nextBaseFee"]), (&json!("7"), &json!("10")));
    let (_, rest) = server.get("/api/chain/block/1").await;
    let rest: Value = serde_json::from_str(&rest).unwrap();
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
    assert_eq!((&estimate["active"], &estimate["inclusionFee"]), (&json!(false), &json!("0")));
    assert_eq!(estimate.get("activeFrom"), None);
    let params = server.result("ombra_params", json!([])).await;
    assert_eq!(params["active"], false);
}

#[tokio::test]
async fn the_fee_schedule_and_the_estimate_tell_the_price_of_the_next_block() {
    let server = TestServer::start_v7().await;
    let schedule = server.result("ombra_feeSchedule", json!([])).await;
    let told = ["baseFee", "baseFeeFloor", "registerFee", "blobInitFee", "maxBlockWork"];
    let told: Vec<&Value> = told.iter().map(|name| &schedule[name]).collect();
    assert_eq!(json!(["10", "10", "10000", "1000", 200_000]), json!(told));

    let estimate = server.result("ombra_feeEstimate", json!([])).await;
    assert_eq!((&estimate["blockIndex"], &estimate["active"]), (&json!(1), &json!(true)));
    assert_eq!(estimate["activeFrom"], 0);
    assert_eq!((&estimate["size"], &estimate["inclusionFee"]), (&json!(512), &json!("5")));
    assert_eq!(estimate["suggestedMaxBaseFee"], "2000");
    let zero = json!({"p10": "0", "p50": "0", "p90": "0", "sample": 0, "blocks": 0});
    assert_eq!(zero, estimate["tips"]);
    for named in [json!([1_025]), json!({"size": 1_025}), json!({"bytes": 1_025})] {
        let estimate = server.result("ombra_feeEstimate", named).await;
        assert_eq!(estimate["inclusionFee"], "11");
    }
    for wrong in [json!([0]), json!([1_u64 << 33]), json!(["512"])] {
        let (number, _, error) = server.error("ombra_feeEstimate", wrong).await;
        assert_eq!((-32602, &json!("size")), (number, &error["data"]["field"]), "{error}");
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
    let sender = |seed: u8| {
        let key = key(seed);
        json!({"from": key.address(), "publicKey": key.public_key(), "maxBaseFee": "50"})
    };
    let with = |mut members: Value, more: Value| {
        members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        members
    };
    let turn = with(
        sender(1),
        json!({"tip": "7", "conversationId": Hash::ZERO, "role": "user", "content": "a"}),
    );
    let built = server.result("ombra_buildChatTurn", turn.clone()).await;
    let payload = built["payload"].as_str().unwrap();
    assert!(payload.contains(r#","maxBaseFee":"50","tip":"7","#), "{payload}");

    let wrong = with(turn, json!({"tip": 7}));
    let (number, _, error) = server.error("ombra_buildChatTurn", wrong).await;
    assert_eq!((-32602, &json!("tip")), (number, &error["data"]["field"]), "{error}");

    // What a transfer tips is its fee.
    let twice = with(sender(1), json!({"tip": "7", "to": key(2).address(), "amount": "1"}));
    let (number, code, _) = server.error("ombra_buildTransfer", twice).await;
    assert_eq!((-32050, "INVALID_FIELD"), (number, code.as_str()));
    let vote = with(sender(99), json!({"name": "baseFeeFloor", "value": 20, "height": 5}));
    let built = server.result("ombra_buildParamVote", vote).await;
    assert_eq!((&built["tx"]["type"], &built["tx"]["value"]), (&json!("PARAM_VOTE"), &json!(20)));
}

#[tokio::test]
async fn votes_show_until_they_are_decided_and_cost_nothing_the_first_time_in_a_block() {
    let server = TestServer::start_v7().await;
    let vote = |nonce, value, height| {
        let name = "registerFee".to_owned();
        signed(&key(99), nonce, &Body::ParamVote(ParamVote { name, value, height }))
    };
    let fork = ForkVote { fork: "v8".to_owned(), height: 200_000 };
    let first = server.send(&signed(&key(99), 0, &Body::ForkVote(fork))).await;
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
    assert_eq!((&params["active"], &params["totalPower"]), (&json!(true), &json!("10")));
    let param = of(&params);
    assert_eq!(param["next"], json!({"value": 5_000, "height": 4}), "{param}");
    assert_eq!(
        (&param["value"], &param["min"], &param["max"]),
        (&json!(10_000), &json!(0), &json!(10_000_000))
    );
    server.world.commit();
    let param = of(&server.result("ombra_params", json!([])).await);
    assert_eq!(param["value"], 5_000);
    let schedule = server.result("ombra_feeSchedule", json!([])).await;
    assert_eq!(schedule["registerFee"], "5000");
}
