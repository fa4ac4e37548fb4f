//! Ten requests at once, and a budget for three.

use anyhow::ensure;
use serde_json::json;
use testkit::chat::{chat, read};
use testkit::node::wait_until;

use crate::scene::Scene;
use crate::worker::{STEP_FEE, TOKENS};

/// Three times what a request may cost, the least escrow and its places in blocks, and a little more.
const BUDGET_MICRO: u64 = 3_900;

pub(crate) fn run() -> anyhow::Result<String> {
    let budget = BUDGET_MICRO.to_string();
    Scene::with_key(&["--budget", &budget, "--parallel", "5"])?.play(|scene| {
        let bodies: Vec<_> =
            (0..10).map(|number| chat(&format!("number {number}\nhold budget"))).collect();
        let begun: Vec<_> =
            bodies.iter().map(|body| scene.client.begin(body, &[])).collect::<Result<_, _>>()?;
        // Whoever is refused is told so while the others wait.
        wait_until("three requests to be reserved", || {
            let key = scene.key()?;
            Ok(key["open_requests"] == 3 && key["today"]["requests"] == 3)
        })?;
        wait_until("the miner to hold one", || Ok(scene.worker.holds("budget")))?;
        scene.worker.let_go("budget");
        let answers = begun.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let (good, bad): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.status == 200);
        ensure!(good.len() == 3, "three fit the budget, {} were answered", good.len());
        let quota = (429, "insufficient_quota".to_owned());
        ensure!(bad.iter().all(|it| it.fault() == quota), "{bad:?}");
        let key = scene.key()?;
        let spent = key["spent_micro"].as_u64().unwrap_or_default();
        let least = 3 * (TOKENS + STEP_FEE);
        ensure!(spent > least && spent < least + 300, "places in blocks cost a little: {key}");
        ensure!(key["reserved_micro"] == 0, "what was not spent is free again: {key}");
        ensure!(key["left_micro"] == json!(BUDGET_MICRO - spent), "{key}");
        // What came back is enough for another one.
        let answer = scene.client.ask(&chat("say again"), &[])?;
        ensure!(answer.content()? == "again", "{answer:?}");
        Ok("three of ten fit, and the rest was told so".to_owned())
    })
}
