//! Clients that hang up, and come back.

use anyhow::ensure;
use testkit::chat::{RETRY, chat, read, stream};
use testkit::node::wait_until;

use crate::scene::Scene;

pub(crate) fn run() -> anyhow::Result<String> {
    Scene::with_key(&[])?.play(|scene| {
        for body in [chat("hold first"), stream("hold second")] {
            let name = if body["stream"] == true { "second" } else { "first" };
            let before = scene.runs()?;
            let connection = scene.client.begin(&body, &[])?;
            wait_until("the miner to hold it", || Ok(scene.worker.holds(name)))?;
            drop(connection);
            delivered(scene, "lost")?;
            // It is picked up where it is, and once.
            let again = scene.client.begin(&body, &[RETRY])?;
            delivered(scene, "waiting")?;
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
        wait_until("the miner to hold it", || Ok(scene.worker.holds("alone")))?;
        drop(connection);
        delivered(scene, "lost")?;
        scene.worker.let_go("alone");
        wait_until("nothing to be reserved", || Ok(scene.key()?["reserved_micro"] == 0))?;
        // The answer waits for who asks again.
        let answer = scene.client.ask(&chat("hold alone"), &[RETRY])?;
        ensure!(answer.content()? == "alone", "{answer:?}");
        ensure!(scene.runs()? == before + 3, "the run was asked for twice");
        Ok("each retry followed the run that was lost".to_owned())
    })
}

/// Waits until the gateway knows this of the newest connection.
fn delivered(scene: &Scene, how: &str) -> anyhow::Result<()> {
    wait_until(&format!("the newest request to be {how}"), || {
        let told = scene.home.told(&["requests", "--limit", "1"])?;
        Ok(told[0]["delivery"] == how)
    })
}
