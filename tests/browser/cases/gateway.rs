//! The page of a gateway: what a key has spent, and where to see it on the chain.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::actor;
use testkit::chat::Client;
use testkit::gateway::Home;
use testkit::net::free_ports;
use testkit::node::wait_for;
use testkit::parallel::joined;
use types::{Body, Hash};

use crate::scene::Scene;

/// What the miner gets and burns for its answer.
const TOKENS: u64 = 7;
const STEP_FEE: u64 = 100;
/// A key that no gateway has made.
const WRONG: &str = "sk-ombra-0000";

pub(super) fn page_shows_what_a_key_has_spent(scene: &mut Scene) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_ports(1)?));
    let home = Home::new(folder.path(), (scene.wire.address, address), "")?;
    let key = home.new_key("ada", &[])?;
    let _gateway = home.start()?;
    let run = one_answer(scene, Client { address, key: key.clone() })?;

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

/// Somebody asks through the gateway, and a miner answers; the run.
fn one_answer(scene: &mut Scene, client: Client) -> anyhow::Result<Hash> {
    client.is_served()?;
    let body = json!({ "model": "ombra", "messages": [{ "role": "user", "content": "Why?" }] });
    let asking = std::thread::spawn(move || client.ask(&body, &[]));
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
    ensure!(told.content()? == "Because.", "{told:?}");
    Ok(id)
}
