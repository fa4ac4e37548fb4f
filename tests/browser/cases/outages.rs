//! A node that is not there, or not ready.

use anyhow::ensure;
use serde_json::json;
use tests::actor;

use crate::scene::Scene;

pub(super) fn are_survived(scene: &mut Scene) -> anyhow::Result<()> {
    let to = scene.people[1].address();
    scene.load("")?;
    scene.browser.shows("Live")?;
    let text = scene.people[0].sign(&actor::transfer(to, 1));
    scene.include(&[text])?;
    scene.node.kill()?;
    scene.wire.cut();
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

pub(super) fn catching_up_is_said(scene: &mut Scene) -> anyhow::Result<()> {
    scene.wire.say_syncing(true);
    scene.load("")?;
    scene.browser.shows("This node is catching up with its chain.")?;
    scene.browser.shows("Syncing")?;
    scene.picture("syncing")?;
    scene.wire.say_syncing(false);
    scene.browser.shows("Live")?;
    scene.browser.holds("no notice", "return document.getElementById('notice').hidden")
}
