//! Clients that hang up, and come back.

use anyhow::ensure;
use testkit::node::wait_for;
use testkit::suite::Outcome;

use super::passed;
use crate::client::{RETRY, chat, read, stream};
use crate::scene::Scene;

pub(crate) fn run() -> anyhow::Result<Outcome> {
    let scene = Scene::with_key(&[])?;
    let told = scene.play(|scene| {
        for body in [chat("hold first"), stream("hold second")] {
            let name = if body["stream"] == true { "second" } else { "first" };
            let before = scene.runs()?;
            let connection = scene.client.begin(&body, &[])?;
            wait_for("the miner to hold it", || Ok(scene.worker.holds(name).then_some(())))?;
            drop(connection);
            lost(scene)?;
            // It is picked up where it is, and once.
            let again = scene.client.begin(&body, &[RETRY])?;
            waited_for(scene)?;
            scene.worker.let_go(name);
            let answer = read(again)?;
            ensure!(answer.status == 200 && answer.text.contains(name), "{answer:?}");
            ensure!(scene.runs()? == before + 1, "the run was asked for twice");
        }
        // One that was answered is not repeated, and without the word it is another one.
        let before = scene.runs()?;
        for headers in [&[][..], &[RETRY][..]] {
            ensure!(scene.client.ask(&chat("say once"), headers)?.content()? == "once");
        }
        ensure!(scene.runs()? == before + 2, "an answered request was taken for a lost one");
        // Nobody comes back: it is paid, and its money is not reserved for ever.
        let connection = scene.client.begin(&chat("hold alone"), &[])?;
        wait_for("the miner to hold it", || Ok(scene.worker.holds("alone").then_some(())))?;
        drop(connection);
        lost(scene)?;
        scene.worker.let_go("alone");
        wait_for("nothing to be reserved", || {
            Ok((scene.key()?["reserved_micro"] == 0).then_some(()))
        })?;
        // The answer waits for who asks again.
        let answer = scene.client.ask(&chat("hold alone"), &[RETRY])?;
        ensure!(answer.content()? == "alone", "{answer:?}");
        ensure!(scene.runs()? == before + 3, "the run was asked for twice");
        Ok(())
    })?;
    Ok(passed(&told, "each retry followed the run that was lost"))
}

/// Waits until the gateway knows that the connection is lost.
fn lost(scene: &Scene) -> anyhow::Result<()> {
    delivered(scene, "lost")
}

/// Waits until a connection waits.
fn waited_for(scene: &Scene) -> anyhow::Result<()> {
    delivered(scene, "waiting")
}

fn delivered(scene: &Scene, how: &str) -> anyhow::Result<()> {
    wait_for(&format!("the newest request to be {how}"), || {
        let told: serde_json::Value =
            serde_json::from_str(&scene.home.tell(&["requests", "--json", "--limit", "1"])?)?;
        Ok((told[0]["delivery"] == how).then_some(()))
    })
}
