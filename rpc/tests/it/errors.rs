//! Every rejection of the protocol and every trouble of the node, with its exact number and code.

use rpc::ports::SubmitError;
use serde_json::json;
use types::{Amount, Code, Rejection};

use crate::client::{TestServer, transfer};

#[tokio::test]
async fn every_rejection_carries_its_code_field_and_both_values() {
    let server = TestServer::start().await;
    for code in Code::ALL {
        let rejection = Rejection::new(code, "nonce", 4, 5).with("hint", "h");
        server.world.state().refuse = Some(SubmitError::Rejected(rejection.clone()));
        let tx: serde_json::Value = serde_json::from_str(&transfer(1, 0)).unwrap();
        let (number, told, error) = server.error("ombra_sendTransaction", json!([tx])).await;
        assert_eq!((-32050, code.as_str()), (number, told.as_str()));
        assert_eq!(error["message"], rejection.message());
        let data = json!({"code": code.as_str(), "field": "nonce", "got": "4", "expected": "5",
            "hint": "h"});
        assert_eq!(data, error["data"]);
    }
}

#[tokio::test]
async fn a_settlement_mismatch_tells_the_right_amounts() {
    let server = TestServer::start().await;
    let rejection = Rejection::new(Code::SettlementMismatch, "minerReward", 9, 5)
        .with("minerReward", Amount::new(5))
        .with("userRefund", Amount::new(7));
    server.world.state().refuse = Some(SubmitError::Rejected(rejection));
    let (_, _, error) = server.error("ombra_sendTransaction", json!([{}])).await;
    assert_eq!(
        (&error["data"]["minerReward"], &error["data"]["userRefund"]),
        (&json!("5"), &json!("7"))
    );
}

#[tokio::test]
async fn when_to_try_again_is_a_number_in_every_error() {
    let server = TestServer::start().await;
    let full = Rejection::new(Code::PoolFull, "pool", 8, 8).with("retryAfterMs", 1_000);
    server.world.state().refuse = Some(SubmitError::Rejected(full));
    let (_, _, error) = server.error("ombra_sendTransaction", json!([{}])).await;
    assert_eq!(error["data"]["retryAfterMs"], 1_000);
}

#[tokio::test]
async fn troubles_of_the_node_have_their_own_numbers() {
    let server = TestServer::start().await;
    let cases = [
        (SubmitError::Syncing, -32052, "SYNCING"),
        (SubmitError::ShuttingDown, -32052, "SHUTTING_DOWN"),
        (SubmitError::Busy { retry_after_ms: 250 }, -32053, "BUSY"),
    ];
    for (trouble, number, code) in cases {
        server.world.state().refuse = Some(trouble);
        let told = server.error("ombra_sendTransaction", json!([{}])).await;
        assert_eq!((number, code), (told.0, told.1.as_str()));
        if code == "BUSY" {
            assert_eq!(told.2["data"]["retryAfterMs"], 250);
        }
    }
}

#[tokio::test]
async fn a_node_that_began_later_names_its_first_block_instead_of_finding_nothing() {
    let server = TestServer::start().await;
    for _ in 0..3 {
        server.world.commit();
    }
    let tip = server.world.state().blocks.len();
    server.world.state().earliest = 2;
    let unknown = types::Hash::ZERO;
    let cases = [
        ("ombra_getBlock", json!([1])),
        ("ombra_getBlock", json!([unknown])),
        ("ombra_getBlocks", json!([{"to": 1}])),
        ("ombra_getTransaction", json!([unknown])),
        ("ombra_waitForTransaction", json!([unknown])),
        ("ombra_getChatTurn", json!([unknown])),
    ];
    for (method, params) in cases {
        let (number, code, error) = server.error(method, params).await;
        assert_eq!((-32052, "HISTORY_UNAVAILABLE"), (number, code.as_str()), "{method}");
        assert_eq!(error["data"]["earliestBlock"], 2, "{method}");
    }
    let (number, ..) = server.error("ombra_getBlock", json!([tip + 1])).await;
    assert_eq!(-32051, number, "a block that does not exist yet");
    let info = server.result("ombra_chainInfo", json!([])).await;
    assert_eq!(info["earliestBlock"], 2);
    // The list shows what there is, and its end is no silent one.
    let page = server.result("ombra_getBlocks", json!([{"limit": 500}])).await;
    assert_eq!(page["items"].as_array().unwrap().len(), tip - 1);
    let (_, code, _) =
        server.error("ombra_getBlocks", json!([{"cursor": page["nextCursor"]}])).await;
    assert_eq!("HISTORY_UNAVAILABLE", code);
    let page = server.result("ombra_getBlocks", json!([{"from": 2, "limit": 500}])).await;
    assert_eq!(page["nextCursor"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_fault_is_told_without_its_cause() {
    let server = TestServer::start().await;
    server.world.state().has_fault = true;
    let address = crate::world::key(1).address();
    let (number, _, error) = server.error("ombra_getAccount", json!([address])).await;
    assert_eq!((-32603, &json!("internal error")), (number, &error["message"]));
    assert!(!error.to_string().contains("fire"), "{error}");
}

#[tokio::test]
async fn real_rejections_come_through_with_their_values() {
    let server = TestServer::start().await;
    let tx = transfer(1, 0);
    let cases = [
        (tx.replace("\"amount\":\"1\"", "\"amount\":\"01\""), "MALFORMED"),
        (tx.replace("\"amount\":\"1\"", "\"amount\":\"2\""), "HASH_MISMATCH"),
        (tx.replace("\"type\":\"TRANSFER\"", "\"type\":\"MINT\""), "UNSUPPORTED_TYPE"),
        (tx.replace("{\"type\"", "{\"fee\":\"0\",\"type\""), "MALFORMED"),
    ];
    for (text, expected) in cases {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"ombra_sendTransaction","params":[{text}]}}"#
        );
        let (_, body) = server.post(&request).await;
        let response: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(response["error"]["code"], -32050, "{body}");
        assert_eq!(response["error"]["data"]["code"], expected, "{body}");
    }
}
