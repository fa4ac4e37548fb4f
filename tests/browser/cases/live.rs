//! What appears while one looks.

use anyhow::Context;
use serde_json::json;
use testkit::actor;
use types::Body;
use types::tx::ChatTurn;

use crate::scene::Scene;

/// Marks the page, so that a reload is noticed.
fn mark(scene: &Scene) -> anyhow::Result<()> {
    scene.browser.run("window.isTheSame = true", &json!([])).map(drop)
}

fn is_the_same(scene: &Scene) -> anyhow::Result<()> {
    scene.browser.holds("no reload", "return window.isTheSame === true")
}

pub(super) fn blocks_appear(scene: &mut Scene) -> anyhow::Result<()> {
    let to = scene.people[1].address();
    scene.load("")?;
    scene.browser.shows("Live")?;
    mark(scene)?;
    for micro in 1..=3 {
        let hash = scene.act(0, &actor::transfer(to, micro))?;
        let included = scene.node.call("ombra_getTransaction", &json!([hash]))?;
        scene.shows_block(included["blockIndex"].as_u64().context("a block")?)?;
    }
    // A block that one waits for, and the next one of a block that one looks at.
    let next = scene.node.height()? + 1;
    scene.go(&format!("block/{next}"))?;
    scene.browser.shows("Not found")?;
    scene.act(0, &actor::transfer(to, 4))?;
    scene.browser.shows("The latest block")?;
    scene.act(0, &actor::transfer(to, 5))?;
    scene.browser.shows("Next block")?;
    is_the_same(scene)
}

pub(super) fn a_run_unfolds(scene: &mut Scene) -> anyhow::Result<()> {
    let request = scene.people[0].request("How much is 6 * 7?", 100_000, 4);
    let run = request.agent_run_id;
    scene.load(&format!("run/{run}"))?;
    scene.browser.shows("Not found")?;
    mark(scene)?;

    scene.act(0, &Body::AgentRequest(request))?;
    scene.browser.shows("Waiting for a miner")?;
    scene.act(1, &Body::AgentClaim(scene.people[1].claim(run)))?;
    scene.browser.shows("Working")?;
    for index in 0..2 {
        scene.act(1, &actor::step(run, index, 1_000))?;
        scene.browser.shows(&format!("Step {index}"))?;
    }
    scene.browser.shows("0.002000 OMBRA earned so far")?;
    scene.picture("run-unfolding")?;
    let mut finish = actor::finish(run, 2_000, [2_000, 97_800, 200]);
    finish.final_answer_inline = Some("42, of course".to_owned());
    scene.act(1, &Body::AgentFinish(finish))?;
    scene.browser.shows("42, of course")?;
    scene.browser.shows("0.097800 OMBRA")?;
    scene.browser.shows("Completed")?;
    is_the_same(scene)
}

pub(super) fn a_turn_appears(scene: &mut Scene) -> anyhow::Result<()> {
    let conversation = actor::conversation();
    scene.load(&format!("conversation/{conversation}"))?;
    scene.browser.shows("Nobody has used this conversation.")?;
    mark(scene)?;
    for (who, role, content) in [(0, "user", "Is anybody here?"), (1, "assistant", "I am.")] {
        let turn = ChatTurn { role: role.to_owned(), ..actor::turn(content) };
        scene.act(who, &Body::ChatTurn(turn))?;
        scene.browser.shows(content)?;
        scene.browser.shows(&format!("as {role}"))?;
    }
    is_the_same(scene)
}
