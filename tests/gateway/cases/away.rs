//! The node is away.

use anyhow::ensure;
use testkit::chat::{chat, read};
use testkit::node::{wait_for, wait_until};

use crate::scene::Scene;

pub(crate) fn run() -> anyhow::Result<String> {
    Scene::with_key(&[])?.play(|scene| {
        ensure!(scene.client.ask(&chat("say one"), &[])?.content()? == "one");
        // While a miner works.
        let connection = scene.client.begin(&chat("hold two"), &[])?;
        wait_until("the miner to hold it", || Ok(scene.worker.holds("two")))?;
        scene.node.kill()?;
        let away = wait_for("the gateway to notice", || {
            let answer = scene.client.ask(&chat("say three"), &[])?;
            Ok((answer.status != 200).then_some(answer))
        })?;
        ensure!(away.fault() == (503, "node_unavailable".to_owned()), "{away:?}");
        ensure!(away.header("retry-after").is_some(), "{away:?}");
        ensure!(scene.client.get("/v1/models", &[])?.status == 200, "models need no node");
        scene.node.restart_in_place()?;
        scene.worker.let_go("two");
        let answer = read(connection)?;
        ensure!(answer.content()? == "two", "{answer:?}");
        ensure!(scene.client.ask(&chat("say four"), &[])?.content()? == "four");
        ensure!(scene.runs()? == 3, "{} runs", scene.runs()?);
        Ok("503 while it was away, and what was begun was answered".to_owned())
    })
}
