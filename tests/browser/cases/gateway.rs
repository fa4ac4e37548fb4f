//! The page of a gateway: what a key has spent, and where to see it on the chain.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor;
use testkit::node::{program, wait_for, wait_until};
use testkit::parallel::joined;
use testkit::process::{Process, lines_to, output};
use types::{Body, Hash};

use crate::scene::Scene;

/// The development account that pays.
const ACCOUNT: &str = "2";
/// What the miner gets and burns for its answer.
const TOKENS: u64 = 7;
const STEP_FEE: u64 = 100;
/// A key that no gateway has made.
const WRONG: &str = "sk-ombra-0000";

pub(super) fn page_shows_what_a_key_has_spent(scene: &mut Scene) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut new = command(scene, folder.path(), &["key", "new", "--name", "ada", "--json"]);
    let told = output(&mut new)?;
    let told: Value = serde_json::from_slice(&told.stdout)?;
    let key = told["key"].as_str().context("a key")?.to_owned();
    let mut serve = command(scene, folder.path(), &["--listen", "127.0.0.1:0"]);
    serve.args(["--balance-max", "10000ombra"]).stderr(Stdio::null());
    let mut gateway = Process::start("the gateway", serve.stdout(Stdio::piped()))?;
    let said = lines_to(&gateway.lines()?, "gateway ").context("a gateway that works")?;
    let address = said.last().and_then(|line| line.split(['/', ' ']).nth_back(1));
    let address: SocketAddr = address.context("its address")?.parse()?;
    let run = one_answer(scene, address, &key)?;

    let browser = &scene.browser;
    browser.open(&format!("http://{address}/"))?;
    browser.shows("public chain and stays there forever")?;
    browser.find("#key")?.fill(WRONG)?;
    browser.find("form button")?.click()?;
    browser.shows("Incorrect API key")?;
    let hidden = "return document.getElementById('told').hidden";
    ensure!(browser.run(hidden, &json!([]))? == true, "something is shown for a wrong key");
    // The browser itself notes that 401; it has no other complaint.
    let complaints = browser.complaints()?;
    ensure!(complaints.iter().all(|it| it.contains("401")), "{complaints:?}");
    browser.find("#key")?.fill(&key)?;
    browser.find("form button")?.click()?;
    browser.holds(
        "the key to be shown",
        "return document.getElementById('name').textContent === 'ada'",
    )?;
    browser.holds("no fault", "return document.getElementById('fault').textContent === ''")?;
    let cost = format!("{:.6} OMBRA", 0.000_001 * f64::from(u32::try_from(TOKENS + STEP_FEE)?));
    let today = browser.find("#days tr")?.text()?;
    ensure!(today.contains(&format!(" 1 {cost} 0.000000 OMBRA")), "{today}");
    let request = browser.find("#requests tr")?.text()?;
    ensure!(request.contains("ombra completed") && request.contains(&cost), "{request}");
    scene.picture("gateway")?;
    // It is shown again after a reload of the tab, and leads to the explorer.
    browser.run("location.reload()", &json!([]))?;
    browser.holds(
        "the key to be known",
        "return document.getElementById('name').textContent === 'ada'",
    )?;
    browser.find("#requests a")?.click()?;
    browser.shows(&run.to_string())?;
    browser.holds("the explorer", "return location.pathname.startsWith('/explorer/')")?;
    scene.has_no_complaints()?;
    let requested = browser.requested()?;
    ensure!(
        !requested.iter().any(|it| it.contains(&key)),
        "the key is in an address: {requested:?}"
    );
    scene.also_asked(&format!("http://{address}/"));
    Ok(())
}

fn command(scene: &Scene, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = program();
    command.arg("gateway").args(arguments).args(["--dev", ACCOUNT, "--rpc", &scene.origin()]);
    command.arg("--data-dir").arg(folder).stdin(Stdio::null());
    command
}

/// Somebody asks through the gateway, and a miner answers; the run.
fn one_answer(scene: &mut Scene, gateway: SocketAddr, key: &str) -> anyhow::Result<Hash> {
    wait_until("the gateway to take requests in", || {
        let told = exchange(gateway, "GET /healthz", key, "")?;
        Ok(told.starts_with("HTTP/1.1 200"))
    })?;
    let body = json!({ "model": "ombra", "messages": [{ "role": "user", "content": "Why?" }] });
    let (body, key) = (body.to_string(), key.to_owned());
    let asking =
        std::thread::spawn(move || exchange(gateway, "POST /v1/chat/completions", &key, &body));
    let filter = json!([{ "status": "pending" }]);
    let run = wait_for("the run", || {
        let listed = scene.node.call("ombra_listAgentRuns", &filter)?;
        Ok(listed["items"].get(0).cloned())
    })?;
    let id: Hash = run["agentRunId"].as_str().context("an id")?.parse()?;
    let escrow: u64 = run["maxFee"].as_str().context("an escrow")?.parse()?;
    let miner = scene.people.get_mut(1).context("a miner")?;
    let claim = miner.claim(id).into();
    let mut finish = actor::finish(id, TOKENS, [TOKENS, escrow - TOKENS - STEP_FEE, STEP_FEE]);
    let answer = json!({
        "ombraAgent": 1, "method": "inferMessages", "finishReason": "stop", "response": "Because.",
        "toolCalls": [],
    });
    finish.final_answer_inline = Some(answer.to_string());
    let bodies = [claim, actor::step(id, 0, TOKENS), Body::AgentFinish(finish)];
    let texts = bodies.map(|body| miner.sign(&body));
    scene.include(&texts)?;
    let told = joined(asking.join(), "the client")?;
    ensure!(told.contains("Because."), "{told}");
    Ok(id)
}

/// One request on one connection.
fn exchange(gateway: SocketAddr, what: &str, key: &str, body: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(gateway)?;
    stream.set_read_timeout(Some(testkit::node::PATIENCE))?;
    write!(
        stream,
        "{what} HTTP/1.1\r\nhost: {gateway}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut told = String::new();
    stream.read_to_string(&mut told)?;
    Ok(told)
}
