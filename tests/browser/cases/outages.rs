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
    scene.act(0, &actor::transfer(to, 1))?;
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
    scene.act(0, &actor::transfer(to, 2))?;
    let height = scene.node.height()?;
    scene.shows_block(height)?;
    nothing_is_missed(scene, height)
}

/// What happened while the connection was away is shown when it is back.
fn nothing_is_missed(scene: &mut Scene, height: u64) -> anyhow::Result<()> {
    let to = scene.people[1].address();
    scene.wire.cut();
    for micro in 3..6 {
        scene.act(0, &actor::transfer(to, micro))?;
    }
    scene.wire.lead_to(scene.node.rpc);
    ensure!(scene.node.height()? >= height + 3, "three blocks");
    (height + 1..=height + 3).try_for_each(|index| scene.shows_block(index))
}

/// A proxy that knows no web sockets stands between the page and the node.
pub(super) fn polling_is_enough(scene: &mut Scene) -> anyhow::Result<()> {
    let polled = "Every few seconds";
    scene.wire.refuse_upgrades();
    scene.load("")?;
    scene.browser.shows(polled)?;
    scene.browser.shows("The node does not give this page a live connection.")?;
    scene.browser.run("window.isTheSame = true", &json!([]))?;
    scene.picture("polling")?;
    let to = scene.people[1].address();
    scene.act(0, &actor::transfer(to, 1))?;
    scene.shows_block(scene.node.height()?)?;
    runs_turns_and_miners_are_polled(scene)?;

    scene.wire.behave();
    scene.browser.shows("Live")?;
    scene.browser.holds("no notice", "return document.getElementById('notice').hidden")?;
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
    scene.act(0, &Body::AgentRequest(request))?;
    scene.go(&format!("run/{run}"))?;
    scene.browser.shows("Waiting for a miner")?;
    scene.act(1, &Body::AgentClaim(scene.people[1].claim(run)))?;
    scene.browser.shows("Working")?;

    scene.go(&format!("conversation/{}", actor::conversation()))?;
    scene.browser.shows("How much is 6 * 7?")?;
    scene.act(0, &Body::ChatTurn(actor::turn("Is it much?")))?;
    scene.browser.shows("Is it much?")?;

    scene.go("miners")?;
    scene.browser.shows("Nobody has registered as a miner yet.")?;
    scene.act(1, &actor::register_miner("Slow but sure"))?;
    scene.browser.shows("Slow but sure")
}
