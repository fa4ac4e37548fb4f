//! Agents of the market on llama.cpp's own server: calls that collect answers are answered, those that
//! compare them are not.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::client;
use testkit::metadata::{method, of_model};
use testkit::miners::{Miner, MinerHome, explain_all, micro, wait_for_offers};
use testkit::node::{DevOptions, Node};

use super::llama::Llama;
use crate::Extent;

/// Who publishes, who asks, and the miners.
const OWNER: &str = "0";
const REQUESTER: &str = "1";
const MINERS: [usize; 3] = [2, 3, 4];
/// What authors and operators have agreed to call the server's model.
const MANIFEST: &str = "4f1c5b0d0f0a6f6b9c3d1e2a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708";
/// The word `Paris` in hex.
const PARIS: &str = "5061726973";
const PER_CALL: u64 = 2_000;

pub(crate) fn run(_: Extent) -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    let llama = Llama::get(folder.path())?;
    let _server = llama.start()?;
    let more = ["--v8", "0"].map(str::to_owned).to_vec();
    let node = Node::start(DevOptions { accounts: 5, more, ..DevOptions::from_environment() })?;
    let settings = settings(llama.address);
    let home = |account| MinerHome::new(folder.path(), account, node.rpc, &settings);
    let homes = MINERS.into_iter().map(home).collect::<anyhow::Result<Vec<_>>>()?;
    let miners = homes.iter().map(MinerHome::start).collect::<anyhow::Result<Vec<_>>>()?;
    let told = play(&node, folder.path());
    let told = told.map_err(|fault| explain_all(&homes, fault))?;
    miners.into_iter().try_for_each(Miner::stop)?;
    Ok(told)
}

fn play(node: &Node, folder: &std::path::Path) -> anyhow::Result<String> {
    let file = folder.join("agent.json");
    std::fs::write(&file, agent().to_string())?;
    let file = file.to_str().context("a folder with a name")?;
    client::told(node.rpc, &["agents", "register", file, "--dev", OWNER])?;
    wait_for_offers(node.rpc, &format!("model-1:{MANIFEST}"), MINERS.len())?;
    collected(node)?;
    structured(node)?;
    compared(node)?;
    Ok("three servers' answers were collected and paid, and none was compared".to_owned())
}

/// All three members answer by the server's count of tokens, and each gets the price of a call.
fn collected(node: &Node) -> anyhow::Result<()> {
    let call = call(node, "capital", "What is the capital of France?", "threshold:3")?;
    ensure!(call["status"] == "success", "{call}");
    let answers = call["answers"].as_array().context("answers")?;
    ensure!(answers.len() == MINERS.len(), "{call}");
    for member in members(&call)? {
        let reveal = &member["reveal"];
        let usage = |name: &str| reveal[name].as_u64().unwrap_or_default();
        ensure!(usage("inputTokens") > 10 && usage("outputTokens") > 0, "{member}");
        ensure!(micro(member, "paid")? == PER_CALL, "{member}");
    }
    for answer in answers {
        let result = answer["result"].as_str().unwrap_or_default();
        ensure!(result.contains(PARIS), "{answer}");
    }
    Ok(())
}

/// An answer of another form than text is read from what the model says, or is a failure: never
/// something else.
fn structured(node: &Node) -> anyhow::Result<()> {
    let call = call(node, "count", "How many legs has a dog? A dog has 4 legs.", "threshold:1")?;
    for member in members(&call)? {
        let outcome = &member["reveal"]["outcome"];
        ensure!(outcome == "success" || outcome == "failure", "{member}");
    }
    Ok(())
}

/// Nobody answers where answers are compared, and all comes back but the fees.
fn compared(node: &Node) -> anyhow::Result<()> {
    let call = call(node, "capital", "What is the capital of Italy?", "majority")?;
    ensure!(call["status"] != "success", "{call}");
    for member in members(&call)? {
        ensure!(member["reveal"]["outcome"] == "unable", "{member}");
        let why = member["reveal"]["reason"].as_str().unwrap_or_default();
        ensure!(why.contains("differ from miner to miner"), "{member}");
        ensure!(member["paid"] == "0" && member["penalty"] == "0", "{member}");
    }
    Ok(())
}

/// A call, once it is settled.
fn call(node: &Node, method: &str, text: &str, consensus: &str) -> anyhow::Result<Value> {
    let more = ["--consensus", consensus, "--dev", REQUESTER, "--settled"];
    // A call that is not answered ends with a failure, and is told all the same.
    client::answered(node.rpc, &[&["call", "geographer", method, text], more.as_slice()].concat())
}

fn members(call: &Value) -> anyhow::Result<&[Value]> {
    let members = call["rounds"][0]["members"].as_array().filter(|members| !members.is_empty());
    members.map(Vec::as_slice).with_context(|| format!("nobody was drawn: {call}"))
}

fn settings(llama: SocketAddr) -> String {
    format!(
        "[backend]\nurl = \"http://{llama}/v1\"\nmodel = \"smollm2\"\ncontext_tokens_max = 2048\nconstrain = \"json_schema\"\n\
         [engine]\npoll_ms = 500\npause_ms = 50\n[policy]\nclaiming = false\n\
         [market]\nserver_manifest = \"{MANIFEST}\"\n\
         [[market.offers]]\nexecutor = \"model-1:{MANIFEST}\"\ncapacity = 2\n\
         per_call_micro = {PER_CALL}\n"
    )
}

fn agent() -> Value {
    let question = [("question", "string")];
    let methods = [("capital", "string"), ("count", "uint8")]
        .map(|(name, answer)| method(name, &question, &[("answer", answer)]));
    let mut agent = of_model("geographer", MANIFEST, &methods);
    agent["executor"]["maxOutputTokens"] = json!(48);
    agent
}
