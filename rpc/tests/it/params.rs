//! Parameters by position and by name, and what is said about wrong ones.

use rpc::Limits;
use serde_json::{Value, json};
use types::Hash;

use crate::client::TestServer;
use crate::world::{FORKS, facts, key};

/// The call is refused with −32602, naming this field, what it has and what was expected.
async fn refused(server: &TestServer, method: &str, params: Value, field: &str) -> Value {
    let data = server.wrong_param(method, params, field).await;
    assert!(data["expected"].is_string() && data["got"].is_string(), "{data}");
    data
}

#[tokio::test]
async fn positions_and_names_mean_the_same() {
    let server = TestServer::start().await;
    server.world.commit();
    let same = [
        ("ombra_getBlock", json!([1, false]), json!({"block": 1, "full": false})),
        ("ombra_getBlock", json!([1]), json!({"index": 1})),
        ("ombra_getBlocks", json!([{"limit": 1}]), json!({"query": {"limit": 1}})),
        ("ombra_getBlocks", json!([null]), json!({})),
        ("ombra_listMiners", json!([]), json!({"page": null})),
        ("ombra_getAccount", json!([key(1).address()]), json!({"address": key(1).address()})),
        ("ombra_getAccount", json!([key(1).address()]), json!([{"address": key(1).address()}])),
        ("ombra_computeContentHash", json!(["x"]), json!({"content": "x"})),
    ];
    for (method, by_position, by_name) in same {
        let left = server.result(method, by_position).await;
        assert_eq!(left, server.result(method, by_name.clone()).await, "{method} {by_name}");
    }
    let none = server.post(r#"{"jsonrpc":"2.0","id":1,"method":"ombra_getSupply"}"#).await.1;
    assert!(none.contains("circulating"), "{none}");
}

#[tokio::test]
async fn a_wrong_parameter_is_named_with_its_value_and_what_was_expected() {
    let server = TestServer::start().await;
    let data = refused(&server, "ombra_getAccount", json!(["xyz"]), "address").await;
    assert!(data["expected"].as_str().unwrap().contains("40 lowercase hex"), "{data}");
    assert_eq!(data["got"], "\"xyz\"");
    let long = Hash::ZERO.to_string() + "A";
    for (method, params, field) in [
        ("ombra_getAccount", json!([]), "address"),
        ("ombra_getAccount", json!({}), "address"),
        ("ombra_getAccount", json!([key(1).address(), 2]), "params"),
        ("ombra_getAccount", json!({"adress": "x"}), "adress"),
        ("ombra_getAccount", json!("x"), "params"),
        ("ombra_getBlock", json!([-1]), "block"),
        ("ombra_getBlock", json!([1.5]), "block"),
        ("ombra_getBlock", json!(["newest"]), "block"),
        ("ombra_getBlock", json!([1, "yes"]), "full"),
        ("ombra_getTransaction", json!([long]), "hash"),
        ("ombra_getMiner", json!(["zz"]), "miner"),
        ("ombra_computeAgentRunId", json!(["x", -1, "y"]), "nonce"),
    ] {
        refused(&server, method, params, field).await;
    }
}

#[tokio::test]
async fn upper_case_in_hashes_and_addresses_is_refused() {
    let server = TestServer::start().await;
    let (hash, address) = ("AB".repeat(32), "AB".repeat(20));
    for (method, text, field) in [
        ("ombra_getBlock", &hash, "block"),
        ("ombra_getTransaction", &hash, "hash"),
        ("ombra_getMiner", &hash, "miner"),
        ("ombra_getAccount", &address, "address"),
    ] {
        let data = refused(&server, method, json!([text]), field).await;
        assert!(data["expected"].as_str().unwrap().contains("lowercase hex"), "{data}");
    }
}

#[tokio::test]
async fn limits_of_pages_are_kept() {
    let server = TestServer::start().await;
    for limit in [json!(0), json!(501), json!(-1), json!("9"), json!(1.0)] {
        refused(&server, "ombra_listMiners", json!({"limit": limit}), "limit").await;
    }
    server.result("ombra_listMiners", json!({"limit": 500})).await;
    for cursor in [json!("rubbish"), json!(5)] {
        refused(&server, "ombra_listMiners", json!({"cursor": cursor}), "cursor").await;
    }
    refused(&server, "ombra_listMiners", json!([{"limit": 1, "offset": 2}]), "offset").await;
}

#[tokio::test]
async fn a_parameter_given_twice_is_refused() {
    let server = TestServer::start().await;
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"ombra_computeContentHash",
        "params":{"content":"a","content":"b"}}"#;
    let (_, body) = server.post(twice).await;
    assert!(body.contains("INVALID_PARAMS") && body.contains("given twice"), "{body}");
    let both = json!({"page": {"limit": 1}, "limit": 2});
    refused(&server, "ombra_listMiners", both, "page").await;
    let aliases = format!(r#"{{"hash":"{}","index":1}}"#, Hash::ZERO);
    let answer = server.call_raw("ombra_getBlock", &aliases).await;
    assert_eq!("index", answer["error"]["data"]["field"], "{answer}");
}

#[tokio::test]
async fn an_unknown_method_is_told() {
    let server = TestServer::start().await;
    assert_eq!(-32601, server.error("ombra_nothing", json!([])).await.0);
    assert_eq!(-32601, server.error("admin_flushPool", json!([])).await.0);
}

#[tokio::test]
async fn a_local_interface_answers_as_the_port_does() {
    let server = TestServer::start().await;
    let local = rpc::Local::new(facts(FORKS), &server.world.ports(), &Limits::default());
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ombra_chainInfo"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ombra_getBlock","params":[0]}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ombra_getSupply"},7]"#,
        "{",
    ] {
        let (status, answer) = local.post(body.into()).await;
        assert_eq!(server.post(body).await, (status, String::from_utf8(answer).unwrap()));
    }
}
