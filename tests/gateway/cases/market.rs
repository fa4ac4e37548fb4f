//! Calls of an agent, answered by a committee: over HTTP, with good and bad arguments, once though the
//! gateway is killed in the middle, and never dearer than allowed.

use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::chat::{Answer, Client, Headers};
use testkit::node::wait_until;
use testkit::parallel;
use testkit::python;

use crate::committee::{Committee, MEMBERS, PER_CALL, REVEAL_FEE, ROYALTY, TOKENS, VERSION};
use crate::document::piece;
use crate::scene::{MARKET, SETTINGS, Scene, at_home};

/// What one request may cost.
const LIMITS: [&str; 4] = ["--per-request", "10000", "--models", "agent:*"];

pub(crate) fn run() -> anyhow::Result<String> {
    Scene::of_chain(SETTINGS, &LIMITS, &MARKET)?.play(|scene| {
        let committee = Committee::start(scene.node.rpc)?;
        answered(scene, &committee)?;
        refused(scene, &committee)?;
        failed(scene, &committee)?;
        followed(scene, &committee)?;
        at_once(scene, &committee)?;
        hung_up(scene, &committee)?;
        killed(scene, &committee)?;
        Ok("calls were answered by committees, paid once, and refused where they are wrong"
            .to_owned())
    })
}

fn call(scene: &Scene, path: &str, body: &Value, headers: Headers<'_>) -> anyhow::Result<Answer> {
    scene.client.post(path, &body.to_string(), headers)
}

fn judge(review: &str) -> Value {
    judge_of(json!({ "review": review }))
}

fn judge_of(arguments: Value) -> Value {
    json!({ "arguments": arguments })
}

/// How many calls are on the chain.
fn calls(scene: &Scene) -> anyhow::Result<usize> {
    let listed = scene.node.call("ombra_listCalls", &json!([{}, { "limit": 100 }]))?;
    Ok(listed["items"].as_array().context("calls")?.len())
}

/// An agent says what it can do, and its answer comes with committee and bill.
fn answered(scene: &Scene, committee: &Committee) -> anyhow::Result<()> {
    let path = committee.path();
    let told = scene.client.get(&path, &[])?.json()?;
    ensure!(told["methods"][0]["arguments"]["required"] == json!(["review"]), "{told}");
    let answer = call(scene, &format!("{path}/judge"), &judge("say very good"), &[])?;
    let told = answer.json()?;
    ensure!(answer.status == 200, "{told}");
    ensure!(told["answer"] == json!({ "verdict": "very good", "letters": "9" }), "{told}");
    for figure in ["size", "agreeing"] {
        ensure!(told["committee"][figure] == MEMBERS, "{figure}: {told}");
    }
    let (read, written) = TOKENS;
    ensure!(told["usage"]["prompt_tokens"] == read, "{told}");
    ensure!(told["usage"]["completion_tokens"] == written, "{told}");
    let ombra = &told["ombra"];
    ensure!(ombra["rewardMicro"] == MEMBERS * PER_CALL + ROYALTY, "{told}");
    ensure!(ombra["networkFeeMicro"] == MEMBERS * REVEAL_FEE, "{told}");
    ensure!(answer.header("x-ombra-call-id") == ombra["callId"].as_str(), "{answer:?}");
    ensure!(ombra["requestTx"].is_string() && ombra["block"].is_u64(), "{told}");
    let listed = scene.client.get("/v1/requests", &[])?.json()?;
    let listed = &listed["data"][0];
    ensure!(listed["call"] == ombra["callId"] && listed["run"].is_null(), "{listed}");
    documented(scene, committee)?;
    let by_position = json!({ "arguments": ["say so"], "committee": 1 });
    let answer = call(scene, &format!("{path}/judge(string)"), &by_position, &[])?;
    ensure!(answer.json()?["answer"]["verdict"] == "so", "{answer:?}");
    Ok(())
}

/// The example of docs/gateway.md is answered.
fn documented(scene: &Scene, committee: &Committee) -> anyhow::Result<()> {
    let example = piece("sh", "/v1/agents/ID")?;
    let example = example.replace("127.0.0.1:8788", &scene.client.address.to_string());
    let example = example.replace("/ID/", &format!("/{}/", committee.agent));
    let mut shell = Command::new("sh");
    shell.args(["-c", &example]).env("KEY", &scene.client.key);
    let told: Value = serde_json::from_str(&python::run(at_home(&mut shell))?)?;
    ensure!(told["answer"]["verdict"] == "well, and cheap.", "{told}");
    Ok(())
}

/// What is wrong is told before it costs anything.
fn refused(scene: &Scene, committee: &Committee) -> anyhow::Result<()> {
    let before = (calls(scene)?, scene.key()?);
    let path = committee.path();
    let judge_path = format!("{path}/judge");
    let other = format!("/v1/agents/{}/{VERSION}/judge", "00".repeat(32));
    let good = judge("say so");
    let with = |member: &str, value: Value| {
        let mut body = good.clone();
        body[member] = value;
        body
    };
    for (path, body, status, code) in [
        (&judge_path, judge_of(json!({})), 400, "invalid_value"),
        (&judge_path, judge_of(json!({ "review": 7 })), 400, "invalid_value"),
        (&judge_path, judge_of(json!({ "review": "a", "b": 1 })), 400, "invalid_value"),
        (&judge_path, json!([]), 400, "malformed_json"),
        (&judge_path, with("comittee", json!(3)), 400, "invalid_value"),
        (&judge_path, with("committee", json!(2)), 400, "invalid_value"),
        (&judge_path, with("timeout_ms", json!(9_999)), 400, "invalid_value"),
        (&judge_path, with("max_cost_micro", json!(3_000)), 400, "invalid_value"),
        (&judge_path, with("committee", json!(15)), 503, "no_miner"),
        (&format!("{path}/jury"), good.clone(), 404, "method_not_found"),
        (&other, good.clone(), 404, "agent_not_found"),
        (&format!("/v1/agents/judge/{VERSION}/judge"), good.clone(), 400, "invalid_value"),
    ] {
        let answer = call(scene, path, &body, &[])?;
        ensure!(answer.fault() == (status, code.to_owned()), "{path} {body}: {answer:?}");
    }
    let dear = scene.home.new_key("dear", &["--per-request", "3000"])?;
    let other = scene.home.new_key("other", &["--models", "ombra*"])?;
    for (key, status, code) in
        [(dear, 429, "insufficient_quota"), (other, 403, "model_not_allowed")]
    {
        let client = Client { key, ..scene.client.clone() };
        let answer = client.post(&judge_path, &good.to_string(), &[])?;
        ensure!(answer.fault() == (status, code.to_owned()), "{answer:?}");
    }
    let after = (calls(scene)?, scene.key()?);
    ensure!(before == after, "what was refused left a trace: {before:?} {after:?}");
    Ok(())
}

/// A committee that finds that the agent fails, and one that does not agree, are paid or not, and told.
fn failed(scene: &Scene, committee: &Committee) -> anyhow::Result<()> {
    let path = format!("{}/judge", committee.path());
    let split = "of 3 members 3 committed to an answer and 3 revealed it, and too few agree";
    for (word, reason) in [
        ("fail too short", "the agent failed: too short"),
        ("split", split),
        ("unable no model", "one says: no model"),
    ] {
        let answer = call(scene, &path, &judge(word), &[])?;
        ensure!(answer.fault() == (502, "call_failed_paid".to_owned()), "{answer:?}");
        ensure!(answer.text.contains(reason), "{answer:?}");
        ensure!(answer.header("x-should-retry") == Some("false"), "{answer:?}");
        ensure!(answer.header("x-ombra-call-id").is_some(), "{answer:?}");
    }
    Ok(())
}

/// Twenty copies of a request with one key at the same moment are one call, and each is answered.
fn at_once(scene: &Scene, committee: &Committee) -> anyhow::Result<()> {
    for round in 0..5 {
        let before = calls(scene)?;
        let (path, name) = (format!("{}/judge", committee.path()), format!("at once {round}"));
        let body = judge(&format!("say {name}")).to_string();
        let client = &scene.client;
        let post = |_, (): &()| client.post(&path, &body, &[("idempotency-key", &name)]);
        for answer in parallel::at_once(&[(); 20], post)? {
            ensure!(answer.status == 200, "{answer:?}");
        }
        ensure!(calls(scene)? == before + 1, "a call was made twice");
    }
    Ok(())
}

/// A client that hangs up as soon as its call is taken in finds it again, if it says that it repeats it.
fn hung_up(scene: &Scene, committee: &Committee) -> anyhow::Result<()> {
    let path = format!("{}/judge", committee.path());
    for round in 0..10 {
        let before = calls(scene)?;
        let known = newest(scene)?;
        let body = judge(&format!("say hung up {round}")).to_string();
        let connection =
            scene.client.begin_at(&path, &body, &[("x-stainless-retry-count", "0")])?;
        wait_until("a call to be taken in", || Ok(newest(scene)? != known))?;
        drop(connection);
        let answer = scene.client.post(&path, &body, &[("x-stainless-retry-count", "1")])?;
        ensure!(answer.status == 200, "{answer:?}");
        ensure!(calls(scene)? == before + 1, "round {round}: a call was made twice");
    }
    Ok(())
}

/// The number of the newest request.
fn newest(scene: &Scene) -> anyhow::Result<Value> {
    let mut listed = scene.client.get("/v1/requests", &[])?.json()?;
    Ok(listed["data"][0]["id"].take())
}

/// The same key follows the same call, and takes no other body.
fn followed(scene: &Scene, committee: &Committee) -> anyhow::Result<()> {
    let path = format!("{}/judge", committee.path());
    let before = calls(scene)?;
    let named = [("idempotency-key", "one")];
    let first = call(scene, &path, &judge("say once"), &named)?.json()?;
    let again = call(scene, &path, &judge("say once"), &named)?.json()?;
    ensure!(first["ombra"] == again["ombra"] && first["answer"] == again["answer"], "{again}");
    let other = call(scene, &path, &judge("say twice"), &named)?;
    ensure!(other.fault() == (422, "idempotency_key_reused".to_owned()), "{other:?}");
    ensure!(calls(scene)? == before + 1, "a call was made twice");
    Ok(())
}

/// A gateway that is killed while a committee works follows the call afterwards.
fn killed(scene: &mut Scene, committee: &Committee) -> anyhow::Result<()> {
    let path = format!("{}/judge", committee.path());
    let before = calls(scene)?;
    let named = [("idempotency-key", "killed")];
    let client = scene.client.clone();
    let (body, at) = (judge("hold still").to_string(), path.clone());
    let waiting = std::thread::spawn(move || client.post(&at, &body, &named));
    committee.wait_for("still")?;
    scene.kill_and_restart()?;
    ensure!(
        waiting.join().is_ok_and(|answer| !answer.is_ok_and(|it| it.status == 200)),
        "not killed"
    );
    committee.let_go("still");
    let answer = call(scene, &path, &judge("hold still"), &named)?;
    ensure!(answer.json()?["answer"]["verdict"] == "still", "{answer:?}");
    ensure!(calls(scene)? == before + 1, "a call was made twice");
    Ok(())
}
