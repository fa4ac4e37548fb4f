//! One `Idempotency-Key`.

use anyhow::ensure;
use testkit::chat::{chat, read};
use testkit::node::wait_until;

use crate::scene::Scene;

pub(crate) fn run() -> anyhow::Result<String> {
    Scene::with_key(&[])?.play(|scene| {
        let named = [("idempotency-key", "order-1")];
        let body = chat("hold order");
        let first = scene.client.begin(&body, &named)?;
        wait_until("the miner to hold it", || Ok(scene.worker.holds("order")))?;
        let second = scene.client.begin(&body, &named)?;
        let other = scene.client.ask(&chat("say other"), &named)?;
        ensure!(other.fault() == (422, "idempotency_key_reused".to_owned()), "{other:?}");
        scene.worker.let_go("order");
        let (first, second) = (read(first)?, read(second)?);
        ensure!(first.content()? == "order" && second.text == first.text, "{second:?}");
        let third = scene.client.ask(&body, &named)?;
        ensure!(third.text == first.text, "{third:?}");
        scene.kill_and_restart()?;
        let fourth = scene.client.ask(&body, &named)?;
        ensure!(fourth.content()? == "order", "{fourth:?}");
        ensure!(scene.runs()? == 1, "the run was asked for twice");
        // One that nobody was paid for is forgotten, and the next one is new.
        let named = [("idempotency-key", "order-2")];
        let none = scene.client.ask(&chat("ignore"), &named)?;
        ensure!(none.fault() == (503, "no_miner".to_owned()), "{none:?}");
        ensure!(scene.client.ask(&chat("say now"), &named)?.content()? == "now");
        ensure!(scene.runs()? == 3, "one run more for each");
        Ok("four times the same answer from one run".to_owned())
    })
}
