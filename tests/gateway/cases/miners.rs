//! Miners that do not come, idle, give up, or fail.

use anyhow::{Context as _, ensure};
use serde_json::Value;
use testkit::chat::{chat, stream};

use crate::scene::Scene;

pub(crate) fn run() -> anyhow::Result<String> {
    Scene::of_short_claims(&[])?.play(|scene| {
        for body in [chat("ignore"), stream("ignore")] {
            let answer = scene.client.ask(&body, &[])?;
            ensure!(answer.fault() == (503, "no_miner".to_owned()), "{answer:?}");
            ensure!(answer.header("x-should-retry").is_none(), "a retry may help: {answer:?}");
        }
        let idle = scene.client.ask(&chat("idle"), &[])?;
        ensure!(idle.fault() == (503, "no_miner".to_owned()), "{idle:?}");
        let late = scene.client.ask(&stream("idle"), &[])?;
        ensure!(late.status == 200, "it was claimed: {late:?}");
        let last = late.text.lines().rfind(|line| line.starts_with("data: ")).context("an end")?;
        let last: Value = serde_json::from_str(last.trim_start_matches("data: "))?;
        ensure!(
            last["error"]["code"] == "no_miner",
            "a late failure is told in the stream: {last}"
        );
        let refused = scene.client.ask(&chat("refuse no memory"), &[])?;
        ensure!(refused.fault() == (502, "run_failed".to_owned()), "{refused:?}");
        ensure!(refused.text.contains("no memory"), "{refused:?}");
        let spent = scene.key()?["spent_micro"].as_u64().unwrap_or_default();
        ensure!(spent < 1_000, "no miner was paid: {spent}");
        let failed = scene.client.ask(&chat("fail no memory"), &[])?;
        ensure!(failed.fault() == (502, "run_failed_paid".to_owned()), "{failed:?}");
        ensure!(failed.header("x-should-retry") == Some("false"), "money moved: {failed:?}");
        let answer = scene.client.ask(&chat("long half of it"), &[])?;
        ensure!(answer.json()?["choices"][0]["finish_reason"] == "length", "{answer:?}");
        Ok("503, late errors in streams, and 502 without and with a bill".to_owned())
    })
}
