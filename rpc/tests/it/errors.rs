//! Every rejection of the protocol and every trouble of the node, with its exact number and code.

use rpc::ports::SubmitError;
use serde_json::json;
use types::{Amount, Code, Rejection};

use crate::client::{TestServer, assert_has};

#[tokio::test]
async fn every_rejection_carries_its_code_field_and_both_values() {
    let server = TestServer::start().await;
    for code in Code::ALL {
        let rejection = Rejection::new(code, "nonce", 4, 5).with("hint", "h");
        server.world.state().refuse = Some(SubmitError::Rejected(rejection.clone()));
        let (number, _, error) = server.error("ombra_sendTransaction", json!([{}])).await;
        let data = json!({"code": code.as_str(), "field": "nonce", "got": "4", "expected": "5",
            "hint": "h"});
        assert_eq!((-32050, &data), (number, &error["data"]));
        assert_eq!(error["message"], rejection.message());
    }
}

#[tokio::test]
async fn amounts_and_when_to_try_again_are_told_and_troubles_of_the_node_have_their_own_numbers() {
    let server = TestServer::start().await;
    let mismatch = Rejection::new(Code::SettlementMismatch, "minerReward", 9, 5)
        .with("minerReward", Amount::new(5))
        .with("userRefund", Amount::new(7));
    let full = Rejection::new(Code::PoolFull, "pool", 8, 8).with("retryAfterMs", 1_000);
    let busy = SubmitError::Busy { retry_after_ms: 250 };
    let cases = [
        (SubmitError::Rejected(mismatch), -32050, json!({"minerReward": "5", "userRefund": "7"})),
        (SubmitError::Rejected(full), -32050, json!({"retryAfterMs": 1_000})),
        (SubmitError::Syncing, -32052, json!({"code": "SYNCING"})),
        (SubmitError::ShuttingDown, -32052, json!({"code": "SHUTTING_DOWN"})),
        (busy, -32053, json!({"code": "BUSY", "retryAfterMs": 250})),
    ];
    for (trouble, expected, data) in cases {
        server.world.state().refuse = Some(trouble);
        let (number, _, error) = server.error("ombra_sendTransaction", json!([{}])).await;
        assert_eq!(expected, number, "{error}");
        assert_has(&error["data"], &data);
    }
}

#[tokio::test]
async fn a_node_that_began_later_names_its_first_block_instead_of_finding_nothing() {
    let server = TestServer::start().await;
    server.world.commit_many(3);
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
        let data = server.refused(method, params, (-32052, "HISTORY_UNAVAILABLE")).await;
        assert_eq!(data["earliestBlock"], 2, "{method}");
    }
    let (number, ..) = server.error("ombra_getBlock", json!([tip + 1])).await;
    assert_eq!(-32051, number, "a block that does not exist yet");
    let info = server.result("ombra_chainInfo", json!([])).await;
    assert_eq!(info["earliestBlock"], 2);
    // The list shows what there is, and its end is no silent one.
    let page = server.result("ombra_getBlocks", json!([{"limit": 500}])).await;
    assert_eq!(page["items"].as_array().unwrap().len(), tip - 1);
    let rest = json!([{"cursor": page["nextCursor"]}]);
    server.refused("ombra_getBlocks", rest, (-32052, "HISTORY_UNAVAILABLE")).await;
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
