//! What is refused of agents of the market, from fork v8 on.

use fixtures::{register_judge, retire};
use serde_json::json;
use testkit::actor::Actor;
use types::{Body, Code, Hash};

use super::case::{Case, MARKET, case, market_case};
use super::fork::quick;
use super::scene::Scene;

pub(super) const CODES: &[Code] = &[
    Code::ChainIdMismatch,
    Code::InvalidField,
    Code::AgentIdMismatch,
    Code::AgentMetadata,
    Code::AgentNotFound,
    Code::NotAgentOwner,
    Code::AgentRetired,
];

fn metadata(version: &str, more: &str) -> String {
    format!(
        "{{\"name\":\"judge\",\"description\":\"d\",\"version\":\"{version}\",\
         \"container_image\":\"ipfs://x\",\
         \"abi\":[{{\"type\":\"function\",\"name\":\"f\",\"inputs\":[],\"outputs\":[]}}]{more}}}"
    )
}

fn judge_of(owner: &Actor) -> Hash {
    fixtures::judge_of(owner.address())
}

fn register(owner: &Actor, metadata: String) -> Body {
    register_judge(owner.address(), metadata)
}

#[test]
fn what_is_wrong_with_an_agent_is_told_and_changes_nothing() -> anyhow::Result<()> {
    let mut scene = Scene::of_market(quick())?;
    let [mut owner, mut other] = [0, 1].map(|index| scene.actor(index));
    let first = register(&owner, metadata("1.0.0", ""));
    let texts = [
        owner.sign_on(MARKET, &first),
        owner.sign_on(MARKET, &retire(judge_of(&owner))),
        other.sign_on(MARKET, &register(&other, metadata("1.0.0", ""))),
    ];
    scene.include(&texts)?;
    let told = scene.call("ombra_getAgent", &json!([judge_of(&owner)]))?;
    assert_eq!((&told["retired"], &told["latest"]), (&json!(true), &json!("1.0.0")));
    assert_eq!(told["metadata"], metadata("1.0.0", ""));
    let listed = scene.call("ombra_listAgents", &json!({"owner": other.address()}))?;
    assert_eq!(listed["items"][0]["agentId"], json!(judge_of(&other)));
    let versions = scene.call("ombra_getAgentVersions", &json!([judge_of(&owner)]))?;
    assert_eq!(versions["items"][0]["version"], "1.0.0");
    let computed = scene.call("ombra_computeAgentId", &json!([owner.address(), "judge"]))?;
    assert_eq!(computed, json!(judge_of(&owner)));
    scene.refuse(CODES, &cases(&owner, &other))
}

fn cases(owner: &Actor, other: &Actor) -> Vec<Case> {
    let long = metadata("2.0.0", &format!(",\"x\":\"{}\"", "x".repeat(65_536)));
    let bytes = format!("{} bytes", long.len());
    let royalty = metadata("2.0.0", ",\"royalty\":\"1000001\"");
    vec![
        case(Code::ChainIdMismatch, owner, &retire(judge_of(owner)))
            .says("chainId", "missing", MARKET),
        market_case(Code::InvalidField, owner, &register(owner, long)).says(
            "metadata",
            bytes,
            "at most 65536 bytes",
        ),
        market_case(Code::AgentIdMismatch, other, &register(owner, metadata("2.0.0", ""))).says(
            "agentId",
            judge_of(owner),
            judge_of(other),
        ),
        market_case(Code::AgentMetadata, owner, &register(owner, metadata("1.0.0", "")))
            .says("metadata", "1.0.0", "1.0.0 is greater than every earlier version of this agent")
            .with("path", "/version")
            .with_number("rule", 2),
        market_case(Code::AgentMetadata, owner, &register(owner, royalty))
            .says(
                "metadata",
                "\"1000001\"",
                "a decimal string of micro-OMBRA from \"0\" to \"1000000\"",
            )
            .with("path", "/royalty")
            .with_number("rule", 7),
        market_case(Code::AgentNotFound, owner, &retire(Hash::ZERO)).says(
            "agentId",
            Hash::ZERO,
            "the id of an agent",
        ),
        market_case(Code::NotAgentOwner, owner, &retire(judge_of(other)))
            .says("from", owner.address(), other.address())
            .with("agentId", judge_of(other)),
        market_case(Code::AgentRetired, owner, &retire(judge_of(owner))).says(
            "agentId",
            judge_of(owner),
            "an agent that is not retired yet",
        ),
    ]
}
