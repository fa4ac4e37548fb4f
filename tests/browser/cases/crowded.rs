//! Pages with as much on them as the chain allows.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::actor;
use types::Body;
use types::tx::{AgentStep, ChatTurn, MinerRegister, ToolCall};

use crate::scene::Scene;

const TOOLS: usize = 64;
const STEPS: u64 = 200;
/// A name without a place to break it, as long as may be.
const LONGEST: usize = 256;

fn tools() -> Vec<String> {
    (0..TOOLS).map(|number| format!("tool_{number:02}_{}", "x".repeat(56))).collect()
}

/// A run with the most steps and tools, by a miner with the longest names; answers where it is seen.
fn play(scene: &mut Scene) -> anyhow::Result<Vec<(&'static str, String)>> {
    let name = "N".repeat(LONGEST);
    let register =
        MinerRegister { name: name.clone(), capabilities: tools(), model_info: name.clone() };
    let mut request = scene.people[0].request(&"W".repeat(16_384), 1_000_000, STEPS);
    request.tools_whitelist = tools();
    request.model_hint = Some(name.clone());
    let run = request.agent_run_id;
    let first = [
        scene.people[1].sign(&Body::MinerRegister(register)),
        scene.people[0].sign(&Body::AgentRequest(request)),
    ];
    scene.include(&first)?;
    let mut claim = scene.people[1].claim(run);
    claim.model_info = name;
    let mut texts = vec![scene.people[1].sign(&Body::AgentClaim(claim))];
    for index in 0..STEPS {
        let calls = if index == 0 { TOOLS } else { 1 };
        let step = AgentStep {
            tool_calls: Some(tools().iter().take(calls).map(|name| call(name)).collect()),
            thought_blob_id: Some("t".repeat(128)),
            ..actor::plain_step(run, index, 100)
        };
        texts.push(scene.people[1].sign(&step.into()));
    }
    scene.include(&texts)?;
    let turn = ChatTurn { agent_run_id: Some(run), ..actor::turn(&"M".repeat(16_384)) };
    let turn = scene.act(0, &Body::ChatTurn(turn))?;
    let miner = scene.people[1].address();
    Ok(vec![
        ("overview", String::new()),
        ("run", format!("run/{run}")),
        ("runs", "runs".to_owned()),
        ("conversation", format!("conversation/{}", actor::conversation())),
        ("miners", "miners".to_owned()),
        ("account", format!("account/{miner}")),
        ("block", format!("block/{}", scene.node.height()? - 1)),
        ("transaction", format!("tx/{turn}")),
        ("pool", "pool".to_owned()),
        ("search", format!("search/{}", "N".repeat(40))),
    ])
}

fn call(name: &str) -> ToolCall {
    ToolCall { duration_ms: 123_456, ok: false, ..actor::tool_call(name) }
}

/// Everything that a mouse could press and the keyboard cannot reach, or that has no name.
const UNREACHED: &str = r"
const things = [...document.querySelectorAll('a, button, summary, input, textarea, select')].filter((one) => one.checkVisibility());
const named = (one) => one.ariaLabel || one.labels?.length > 0 || one.textContent.trim() !== '' || one.querySelector('img');
const clickable = [...document.querySelectorAll('main *')].filter((one) => getComputedStyle(one).cursor === 'pointer' && !one.closest('a, button, summary, label, input'));
return [...things.filter((one) => one.tabIndex < 0 || !named(one)), ...clickable].map((one) => one.outerHTML.slice(0, 200));
";

/// Texts that are cut off or lie outside the page's width.
const OUTSIDE: &str = r"
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll('main *')].filter((one) => {
  if (one.closest('.unseen, .cut, svg, thead') || !one.checkVisibility()) return false;
  const box = one.getBoundingClientRect();
  return box.width > 1 && (box.right > width + 1 || box.left < -1);
}).map((one) => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`);
";

pub(super) fn fit(scene: &mut Scene) -> anyhow::Result<()> {
    let pages = play(scene)?;
    scene.load("")?;
    for (name, route) in pages {
        scene.browser.resize(360, 740)?;
        scene.go(&route)?;
        scene.picture(&format!("crowded-phone-{name}"))?;
        let outside = scene.browser.run(OUTSIDE, &json!([]))?;
        ensure!(outside == json!([]), "{route}: outside of a phone: {outside}");
        let unreached = scene.browser.run(UNREACHED, &json!([]))?;
        ensure!(unreached == json!([]), "{route}: not for the keyboard: {unreached}");
        scene.browser.resize(1280, 900)?;
        scene.picture(&format!("crowded-{name}"))?;
        scene.fits(1_280, &route)?;
    }
    every_step_is_there(scene)
}

fn every_step_is_there(scene: &Scene) -> anyhow::Result<()> {
    let runs = scene.node.call("ombra_listAgentRuns", &json!([{}, { "limit": 1 }]))?;
    let run = runs["items"][0]["agentRunId"].as_str().context("a run")?.to_owned();
    scene.go(&format!("run/{run}"))?;
    let titles =
        "return [...document.querySelectorAll('.timeline strong')].map((one) => one.textContent)";
    let titles = scene.browser.run(titles, &json!([]))?;
    for step in 0..STEPS {
        let title = Value::String(format!("Step {step}"));
        ensure!(titles.as_array().is_some_and(|all| all.contains(&title)), "no {title}: {titles}");
    }
    let calls = "return document.querySelector('.timeline table').tBodies[0].rows.length";
    let calls = scene.browser.run(calls, &json!([]))?;
    ensure!(calls == json!(TOOLS), "{calls} calls of the first step");
    Ok(())
}
