//! Keys and money, while the gateway runs and while it does not.

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::chat::{Client, chat};

use crate::scene::Scene;

/// Where money is drained to: development account 3.
const TO: &str = "dev:3";

pub(crate) fn run() -> anyhow::Result<String> {
    Scene::with_key(&[])?.play(|scene| {
        ensure!(scene.client.ask(&chat("say one"), &[])?.content()? == "one");
        scene.home.tell(&["drain", "1ombra", "--to", TO])?;
        scene.gateway.take().context("a gateway that runs")?.stop()?;
        scene.home.tell(&["drain", "2ombra", "--to", TO])?;
        let key = scene.home.new_key("second", &["--rpm", "1"])?;
        scene.check()?;
        scene.gateway = Some(scene.home.start()?);
        scene.is_open()?;
        let second = Client { key, ..scene.client.clone() };
        ensure!(second.ask(&chat("say two"), &[])?.content()? == "two");
        let often = second.ask(&chat("say three"), &[])?;
        ensure!(often.fault() == (429, "rate_limit_exceeded".to_owned()), "{often:?}");
        ensure!(often.header("retry-after").is_some(), "{often:?}");
        let keys = scene.home.told(&["key", "list"])?;
        let spent: Vec<_> =
            keys.as_array().into_iter().flatten().map(|it| &it["spentMicro"]).collect();
        ensure!(spent.len() == 2 && spent.iter().all(|it| **it != json!(0)), "{keys}");
        // All that no request needs.
        scene.home.tell(&["drain", "--to", TO])?;
        let poor = scene.client.ask(&chat("say four"), &[])?;
        ensure!(poor.fault() == (429, "insufficient_quota".to_owned()), "{poor:?}");
        Ok("keys and drains went through the process, and without it through its store".to_owned())
    })
}
