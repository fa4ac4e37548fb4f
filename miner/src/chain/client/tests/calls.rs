//! What a node's answers about calls, agents and offers mean.

use types::agent::ExecutorId;
use types::call::{CallStatus, Outcome};

use super::*;
use crate::chain::Calls;

fn round_record() -> Value {
    let commitment = json!({"hash": Hash::ZERO, "blockIndex": 5, "position": 0});
    let reveal = json!({
        "outcome": "unable", "resultHash": Hash::ZERO, "inputTokens": 0, "outputTokens": 0,
        "fuel": 0, "receiptHash": Hash::ZERO, "salt": Hash::ZERO, "blockIndex": 6, "position": 1,
    });
    let member = json!({
        "address": ADDRESS, "seat": 0, "bond": "9", "lock": "1", "agreed": false,
        "commitment": commitment, "reveal": reveal, "paid": "0", "penalty": "7",
    });
    json!({
        "size": 3, "elected": 1, "committed": 1, "revealed": 1, "electedIn": 3, "electedAt": 4,
        "candidatesHash": Hash::ZERO, "decidedAt": 7, "agreeing": 0, "members": [member],
    })
}

fn call_record(status: &str) -> Value {
    json!({
        "callId": Hash::ZERO, "agentId": Hash::ZERO, "agentVersion": "1.0.0", "owner": ADDRESS,
        "requester": ADDRESS, "status": status, "settled": false, "appealable": false,
        "consensus": "majority",
        "limits": {"inputTokens": 1, "outputTokens": 2, "fuel": 3, "resultBytes": 4},
        "payloadHash": Hash::digest(&[1, 2]), "budget": "30", "deadlineAt": 50,
        "deadlineBlock": 9, "payload": "0x0102", "rounds": [round_record()],
    })
}

#[tokio::test]
async fn a_call_is_read_with_its_members() {
    let (script, node) = node().await;
    let set = |answer| script.answer("ombra_getCall", answer);
    set(json!({"result": call_record("revealing")}));
    let call = node.call(&Hash::ZERO).await.unwrap().unwrap();
    assert_eq!((call.status, call.budget_micro), (CallStatus::Revealing, 30));
    assert_eq!((call.payload.as_deref(), call.deadline_ms), (Some(&[1, 2][..]), Some(50)));
    assert_eq!((call.limits.usage.fuel, call.limits.result_bytes), (3, 4));
    assert!(call.is_compared);
    let miner: Address = ADDRESS.parse().unwrap();
    assert_eq!(call.round_of(&miner), Some(0));
    let (round, member) = call.member(0, &miner).unwrap();
    assert!(round.is_decided);
    assert_eq!((member.agreed, member.penalty_micro), (Some(false), 7));
    assert_eq!(member.revealed.unwrap().outcome, Outcome::Unable);
    let mut by_threshold = call_record("revealing");
    by_threshold["consensus"] = json!("threshold");
    set(json!({"result": by_threshold}));
    assert!(!node.call(&Hash::ZERO).await.unwrap().unwrap().is_compared);
    set(json!({"result": call_record("dreaming")}));
    assert!(matches!(node.call(&Hash::ZERO).await, Err(ChainError::Strange(_))));
    set(json!({"error": {"code": -32051, "message": "no such call"}}));
    assert_eq!(Ok(None), node.call(&Hash::ZERO).await);
}

#[tokio::test]
async fn the_calls_of_a_member_are_those_that_commit_and_those_that_reveal() {
    let (script, node) = node().await;
    let page = json!({"items": [call_record("committing")], "nextCursor": null});
    script.result("ombra_listCalls", &page);
    let miner: Address = ADDRESS.parse().unwrap();
    assert_eq!(node.assigned(&miner).await.unwrap(), [Hash::ZERO; 2]);
    let calls = script.calls.lock();
    let filters: Vec<_> = calls.iter().map(|call| call["params"][0].clone()).collect();
    let filter = |status: &str| json!({"member": ADDRESS, "status": status});
    assert_eq!(filters, [filter("committing"), filter("revealing")]);
}

#[tokio::test]
async fn the_calls_of_a_node_that_began_with_a_snapshot_are_those_that_it_has() {
    let (script, node) = node().await;
    let first = json!({"items": [call_record("committing")], "nextCursor": "1"});
    script.answer("ombra_listCalls", json!({ "pages": [first, no_history()] }));
    let miner: Address = ADDRESS.parse().unwrap();
    assert_eq!(node.assigned(&miner).await.unwrap(), [Hash::ZERO; 2]);
    assert_eq!(node.drawn(&miner, 10).await.unwrap(), [Hash::ZERO]);
}

#[tokio::test]
async fn metadata_and_programs_have_the_hashes_of_the_chain() {
    let (script, node) = node().await;
    let agent = |hash: Hash| json!({"metadata": "{}", "version": {"metadataHash": hash}});
    script.result("ombra_getAgent", &agent(Hash::digest(b"{}")));
    assert_eq!(Ok(Some("{}".to_owned())), node.metadata(&Hash::ZERO, "1.0.0").await);
    script.result("ombra_getAgent", &agent(Hash::ZERO));
    assert!(matches!(node.metadata(&Hash::ZERO, "1.0.0").await, Err(ChainError::Strange(_))));
    let blob = |is_final: bool, hash: Hash| json!({"owner": ADDRESS, "received": 1, "final": is_final, "contentHash": hash});
    script.result("ombra_getBlob", &blob(true, Hash::digest(b"a prompt")));
    assert_eq!(Ok(Some(b"a prompt".to_vec())), node.program("there", 100).await);
    assert_eq!(Ok(None), node.program("there", 7).await, "it is longer");
    script.result("ombra_getBlob", &blob(false, Hash::digest(b"a prompt")));
    assert_eq!(Ok(None), node.program("there", 100).await);
    script.result("ombra_getBlob", &blob(true, Hash::ZERO));
    assert!(matches!(node.program("there", 100).await, Err(ChainError::Strange(_))));
}

#[tokio::test]
async fn offers_and_the_least_bond_are_read_once_there_is_a_market() {
    let (script, node) = node().await;
    let offer = json!({
        "miner": ADDRESS, "executor": "wasm-1", "capacity": 2, "open": 1, "perCall": "5",
        "promptPerM": "6", "completionPerM": "7", "fuelPerG": "8", "bonded": "9", "free": "9",
    });
    script.result("ombra_listOffers", &json!({"items": [offer], "nextCursor": null}));
    let offers = node.offers(&ADDRESS.parse().unwrap()).await.unwrap();
    let (executor, offer) = offers[0];
    assert_eq!((executor, offer.capacity), (ExecutorId::Wasm, 2));
    assert_eq!(offer.prices.fuel_per_g.get(), 8);
    script.result("ombra_params", &json!({"params": [{"name": "minBond", "value": 11}]}));
    for (v8, expected) in [(json!(null), None), (json!(9), None), (json!(8), Some(11))] {
        script.result("ombra_chainInfo", &json!({"height": 7, "forks": {"v8": v8}}));
        assert_eq!(Ok(expected), node.bond_micro_min().await, "{v8}");
    }
}
