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
        let text = scene.people[0].sign(&actor::transfer(to, micro));
        let hashes = scene.include(&[text])?;
        let included = scene.node.call("ombra_getTransaction", &json!([hashes[0]]))?;
        let index = included["blockIndex"].as_u64().context("a block")?;
        let row =
            format!("return document.querySelector('main tr[data-block=\"{index}\"]') !== null");
        scene.browser.holds(&format!("block {index} to appear"), &row)?;
    }
    // A block that one waits for, and the next one of a block that one looks at.
    let next = scene.node.height()? + 1;
    scene.go(&format!("block/{next}"))?;
    scene.browser.shows("Not found")?;
    let text = scene.people[0].sign(&actor::transfer(to, 4));
    scene.include(&[text])?;
    scene.browser.shows("The latest block")?;
    let text = scene.people[0].sign(&actor::transfer(to, 5));
    scene.include(&[text])?;
    scene.browser.shows("Next block")?;
    is_the_same(scene)
}

pub(super) fn a_run_unfolds(scene: &mut Scene) -> anyhow::Result<()> {
    let request = scene.people[0].request("How much is 6 * 7?", 100_000, 4);
    let run = request.agent_run_id;
    scene.load(&format!("run/{run}"))?;
    scene.browser.shows("Not found")?;
    mark(scene)?;

    let text = scene.people[0].sign(&Body::AgentRequest(request));
    scene.send(&[text])?;
    scene.browser.shows("Waiting for a miner")?;
    let claim = Body::AgentClaim(scene.people[1].claim(run));
    let text = scene.people[1].sign(&claim);
    scene.send(&[text])?;
    scene.browser.shows("Working")?;
    for index in 0..2 {
        let text = scene.people[1].sign(&actor::step(run, index, 1_000));
        scene.send(&[text])?;
        scene.browser.shows(&format!("Step {index}"))?;
    }
    scene.browser.shows("0.002000 OMBRA earned so far")?;
    scene.picture("run-unfolding")?;
    let mut finish = actor::finish(run, 2_000, [2_000, 97_800, 200]);
    finish.final_answer_inline = Some("42, of course".to_owned());
    let text = scene.people[1].sign(&Body::AgentFinish(finish));
    scene.send(&[text])?;
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
        let text = scene.people[who].sign(&Body::ChatTurn(turn));
        scene.send(&[text])?;
        scene.browser.shows(content)?;
        scene.browser.shows(&format!("as {role}"))?;
    }
    is_the_same(scene)
}
