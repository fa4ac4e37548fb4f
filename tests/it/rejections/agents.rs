//! What is refused of agents of the market, from fork v8 on.

use serde_json::json;
use state::Forks;
use testkit::actor::Actor;
use testkit::node::DevOptions;
use types::tx::{AgentRegister, AgentRetire};
use types::{Body, Code, Hash, ids};

use super::case::{Case, case_of_text};
use super::fork::chain_with;
use super::scene::Scene;
use super::v7::V7;

pub(super) const CODES: &[Code] = &[
    Code::ChainIdMismatch,
    Code::InvalidField,
    Code::AgentIdMismatch,
    Code::AgentMetadata,
    Code::AgentNotFound,
    Code::NotAgentOwner,
    Code::AgentRetired,
];

const CHAIN: &str = "with-agents";

fn metadata(version: &str, more: &str) -> String {
    format!(
        "{{\"name\":\"judge\",\"description\":\"d\",\"version\":\"{version}\",\
         \"container_image\":\"ipfs://x\",\
         \"abi\":[{{\"type\":\"function\",\"name\":\"f\",\"inputs\":[],\"outputs\":[]}}]{more}}}"
    )
}

fn id(owner: &Actor) -> Hash {
    ids::compute_agent_id(&owner.address(), "judge")
}

fn register(owner: &Actor, metadata: String) -> Body {
    Body::AgentRegister(AgentRegister { agent_id: id(owner), metadata })
}

fn retire(agent_id: Hash) -> Body {
    Body::AgentRetire(AgentRetire { agent_id })
}

#[test]
fn what_is_wrong_with_an_agent_is_told_and_changes_nothing() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    chain_with(folder.path(), CHAIN, Forks { v8: Some(0), ..V7 })?;
    let data_dir = Some(folder.path().to_owned());
    let options = DevOptions { data_dir, ..DevOptions::from_environment() };
    let mut scene = Scene::of(options)?.priced();
    let [mut owner, mut other] = [0, 1].map(|index| scene.actor(index));
    let first = register(&owner, metadata("1.0.0", ""));
    let texts = [
        owner.sign_on(CHAIN, &first),
        owner.sign_on(CHAIN, &retire(id(&owner))),
        other.sign_on(CHAIN, &register(&other, metadata("1.0.0", ""))),
    ];
    scene.include(&texts)?;
    let told = scene.call("ombra_getAgent", &json!([id(&owner)]))?;
    assert_eq!((&told["retired"], &told["latest"]), (&json!(true), &json!("1.0.0")));
    assert_eq!(told["metadata"], metadata("1.0.0", ""));
    let listed = scene.call("ombra_listAgents", &json!({"owner": other.address()}))?;
    assert_eq!(listed["items"][0]["agentId"], json!(id(&other)));
    let versions = scene.call("ombra_getAgentVersions", &json!([id(&owner)]))?;
    assert_eq!(versions["items"][0]["version"], "1.0.0");
    let computed = scene.call("ombra_computeAgentId", &json!([owner.address(), "judge"]))?;
    assert_eq!(computed, json!(id(&owner)));
    scene.refuse(CODES, &cases(&owner, &other))
}

fn cases(owner: &Actor, other: &Actor) -> Vec<Case> {
    let refused = |code, who: &Actor, body: &Body| {
        case_of_text(code, who.address(), who.draft_on(CHAIN, body))
    };
    let unnamed = owner.draft(&retire(id(owner)));
    let long = metadata("2.0.0", &format!(",\"x\":\"{}\"", "x".repeat(65_536)));
    let bytes = format!("{} bytes", long.len());
    let royalty = metadata("2.0.0", ",\"royalty\":\"1000001\"");
    vec![
        case_of_text(Code::ChainIdMismatch, owner.address(), unnamed)
            .says("chainId", "missing", CHAIN),
        refused(Code::InvalidField, owner, &register(owner, long)).says(
            "metadata",
            bytes,
            "at most 65536 bytes",
        ),
        refused(Code::AgentIdMismatch, other, &register(owner, metadata("2.0.0", ""))).says(
            "agentId",
            id(owner),
            id(other),
        ),
        refused(Code::AgentMetadata, owner, &register(owner, metadata("1.0.0", "")))
            .says("metadata", "1.0.0", "1.0.0 is greater than every earlier version of this agent")
            .with("path", "/version")
            .with_number("rule", 2),
        refused(Code::AgentMetadata, owner, &register(owner, royalty))
            .says(
                "metadata",
                "\"1000001\"",
                "a decimal string of micro-OMBRA from \"0\" to \"1000000\"",
            )
            .with("path", "/royalty")
            .with_number("rule", 7),
        refused(Code::AgentNotFound, owner, &retire(Hash::ZERO)).says(
            "agentId",
            Hash::ZERO,
            "the id of an agent",
        ),
        refused(Code::NotAgentOwner, owner, &retire(id(other)))
            .says("from", owner.address(), other.address())
            .with("agentId", id(other)),
        refused(Code::AgentRetired, owner, &retire(id(owner))).says(
            "agentId",
            id(owner),
            "an agent that is not retired yet",
        ),
    ]
}
