//! A node that is not there, or that answers no web sockets.

use anyhow::ensure;
use serde_json::json;
use testkit::actor;
use types::Body;

use crate::scene::Scene;

pub(super) fn are_survived(scene: &mut Scene) -> anyhow::Result<()> {
    let to = scene.people[1].address();
    scene.load("")?;
    scene.browser.shows("Live")?;
    let text = scene.people[0].sign(&actor::transfer(to, 1));
    scene.include(&[text])?;
    scene.node.kill()?;
    scene.browser.shows("The node does not answer.")?;
    scene.browser.shows("Node gone")?;
    scene.picture("node-gone")?;
    // Another page has nothing to show, says so, and draws itself when the node is back.
    scene.browser.run("location.hash = '#/miners'", &json!([]))?;
    scene.browser.shows("The node does not answer")?;

    scene.node.restart()?;
    scene.wire.lead_to(scene.node.rpc);
    scene.browser.shows("Live")?;
    scene.browser.shows("Nobody has registered as a miner yet.")?;
    scene.browser.holds("no notice", "return document.getElementById('notice').hidden")?;
    scene.go("")?;
    let text = scene.people[0].sign(&actor::transfer(to, 2));
    scene.include(&[text])?;
    let height = scene.node.height()?;
    let row = format!("return document.querySelector('main tr[data-block=\"{height}\"]') !== null");
    scene.browser.holds("the new block", &row)?;
    nothing_is_missed(scene, height)
}

/// What happened while the connection was away is shown when it is back.
fn nothing_is_missed(scene: &mut Scene, height: u64) -> anyhow::Result<()> {
    let to = scene.people[1].address();
    scene.wire.cut();
    for micro in 3..6 {
        let text = scene.people[0].sign(&actor::transfer(to, micro));
        scene.include(&[text])?;
    }
    scene.wire.lead_to(scene.node.rpc);
    ensure!(scene.node.height()? >= height + 3, "three blocks");
    for index in height + 1..=height + 3 {
        let row =
            format!("return document.querySelector('main tr[data-block=\"{index}\"]') !== null");
        scene.browser.holds(&format!("block {index}"), &row)?;
    }
    Ok(())
}

/// A proxy that knows no web sockets stands between the page and the node.
pub(super) fn polling_is_enough(scene: &mut Scene) -> anyhow::Result<()> {
    let (no_notice, polled) =
        ("return document.getElementById('notice').hidden", "Every few seconds");
    scene.wire.refuse_upgrades();
    scene.load("")?;
    scene.browser.shows(polled)?;
    scene.browser.shows("The node does not give this page a live connection.")?;
    scene.browser.run("window.isTheSame = true", &json!([]))?;
    scene.picture("polling")?;
    let to = scene.people[1].address();
    let text = scene.people[0].sign(&actor::transfer(to, 1));
    scene.include(&[text])?;
    let height = scene.node.height()?;
    let row = format!("return document.querySelector('main tr[data-block=\"{height}\"]') !== null");
    scene.browser.holds("the block", &row)?;
    runs_turns_and_miners_are_polled(scene)?;

    scene.wire.behave();
    scene.browser.shows("Live")?;
    scene.browser.holds("no notice", no_notice)?;
    scene.wire.refuse_upgrades();
    scene.browser.shows(polled)?;
    scene.node.kill()?;
    scene.browser.shows("Node gone")?;
    scene.node.restart()?;
    scene.wire.lead_to(scene.node.rpc);
    scene.browser.shows(polled)?;
    scene.browser.holds("no reload", "return window.isTheSame === true")
}

/// What otherwise comes as an event.
fn runs_turns_and_miners_are_polled(scene: &mut Scene) -> anyhow::Result<()> {
    let request = scene.people[0].request("How much is 6 * 7?", 100_000, 4);
    let run = request.agent_run_id;
    let text = scene.people[0].sign(&Body::AgentRequest(request));
    scene.include(&[text])?;
    scene.go(&format!("run/{run}"))?;
    scene.browser.shows("Waiting for a miner")?;
    let claim = Body::AgentClaim(scene.people[1].claim(run));
    let text = scene.people[1].sign(&claim);
    scene.include(&[text])?;
    scene.browser.shows("Working")?;

    scene.go(&format!("conversation/{}", actor::conversation()))?;
    scene.browser.shows("How much is 6 * 7?")?;
    let text = scene.people[0].sign(&Body::ChatTurn(actor::turn("Is it much?")));
    scene.include(&[text])?;
    scene.browser.shows("Is it much?")?;

    scene.go("miners")?;
    scene.browser.shows("Nobody has registered as a miner yet.")?;
    let text = scene.people[1].sign(&actor::register("Slow but sure"));
    scene.include(&[text])?;
    scene.browser.shows("Slow but sure")
}
