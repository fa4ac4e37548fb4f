//! Agents of the market: built, shown, listed page by page, and told why not.

use serde_json::{Value, json};
use types::tx::AgentRegister;
use types::{Body, Hash, ids};

use crate::client::{NOT_FOUND, TestServer, assert_has, signed};
use crate::world::{CHAIN_ID, key};

fn metadata(name: &str, version: &str) -> String {
    format!(
        "{{\"name\":\"{name}\",\"description\":\"Says {name}.\",\"version\":\"{version}\",\
         \"tags\":[\"text\"],\"container_image\":\"ipfs://x\",\
         \"abi\":[{{\"type\":\"function\",\"name\":\"f\",\"inputs\":[],\"outputs\":[]}}]}}"
    )
}

fn id(seed: u8, name: &str) -> Hash {
    ids::compute_agent_id(&key(seed).address(), name)
}

fn register(seed: u8, name: &str, version: &str) -> Body {
    let (agent_id, metadata) = (id(seed, name), metadata(name, version));
    Body::AgentRegister(AgentRegister { agent_id, metadata })
}

/// A retired agent of 1 with three versions, and one agent of each of 2 and 3.
async fn market() -> TestServer {
    let server = TestServer::start_v8().await;
    for (nonce, version) in (0..).zip(["1.0.0", "1.1.0", "2.0.0"]) {
        server.send(&signed(&key(1), nonce, &register(1, "judge", version))).await;
    }
    server.send(&signed(&key(1), 3, &fixtures::retire(id(1, "judge")))).await;
    for seed in [2, 3] {
        server.send(&signed(&key(seed), 0, &register(seed, "clerk", "0.1.0"))).await;
    }
    server.world.commit();
    server
}

/// The values of a member of each item of a list that is asked for page by page.
async fn listed(server: &TestServer, method: &str, question: Value, member: &str) -> Vec<Value> {
    let items = server.items(method, question).await;
    items.iter().map(|it| it[member].clone()).collect()
}

#[tokio::test]
async fn an_agent_is_shown_with_its_latest_version_or_the_one_that_is_named() {
    let server = market().await;
    let judge = id(1, "judge");
    let shown = server.result("ombra_getAgent", json!([judge])).await;
    let latest = metadata("judge", "2.0.0");
    let expected = json!({"agentId": judge, "latest": "2.0.0", "versions": 3, "name": "judge",
        "retired": true, "description": "Says judge.", "tags": ["text"], "metadata": latest});
    assert_has(&shown, &expected);
    let expected = json!({"version": "2.0.0", "previous": "1.1.0", "selectors": ["0x26121ff0"],
        "deterministic": false, "metadataHash": Hash::digest(latest.as_bytes())});
    assert_has(&shown["version"], &expected);
    let first = json!({"agentId": judge, "version": "1.0.0"});
    let first = server.result("ombra_getAgent", first).await;
    assert_eq!(first["metadata"], metadata("judge", "1.0.0"));
    assert_eq!(first["version"]["previous"], Value::Null);
    for unknown in [json!([judge, "3.0.0"]), json!([Hash::ZERO])] {
        server.refused("ombra_getAgent", unknown, NOT_FOUND).await;
    }
}

#[tokio::test]
async fn versions_and_agents_are_listed_page_by_page() {
    let server = market().await;
    for limit in [1, 2, 500] {
        let of = json!({"agentId": id(1, "judge"), "limit": limit});
        let versions = listed(&server, "ombra_getAgentVersions", of, "version").await;
        assert_eq!(versions, ["2.0.0", "1.1.0", "1.0.0"]);
        let mut all = [id(1, "judge"), id(2, "clerk"), id(3, "clerk")];
        all.sort_unstable();
        let agents = listed(&server, "ombra_listAgents", json!({"limit": limit}), "agentId").await;
        assert_eq!(agents, all.map(|id| json!(id)));
        let clerks = json!({"text": "CLERK", "owner": key(2).address(), "limit": limit});
        let clerks = listed(&server, "ombra_listAgents", clerks, "agentId").await;
        assert_eq!(clerks, [json!(id(2, "clerk"))]);
    }
}

#[tokio::test]
async fn a_builder_names_the_chain_and_computes_the_id_and_tells_what_is_wrong_with_metadata() {
    let server = TestServer::start_v8().await;
    let (from, key) = (key(4).address(), key(4).public_key());
    let ask = |metadata: &str| json!({"from": from, "publicKey": key, "metadata": metadata});
    let built = server.result("ombra_buildAgentRegister", ask(&metadata("judge", "1.0.0"))).await;
    assert_has(&built["tx"], &json!({"agentId": id(4, "judge"), "chainId": CHAIN_ID}));
    let wrong = ask(&metadata("judge", "1"));
    let (.., error) = server.error("ombra_buildAgentRegister", wrong).await;
    let expected = json!({"code": "AGENT_METADATA", "path": "/version", "rule": 2});
    assert_has(&error["data"], &expected);
}
