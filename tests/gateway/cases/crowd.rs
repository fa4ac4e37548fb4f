//! Two hundred streams at once.

use anyhow::{Context as _, ensure};
use testkit::chat::{read, stream};
use testkit::node::wait_until;
use testkit::process::peak_rss_kb;

use crate::scene::{Scene, Way};

/// How many.
const STREAMS: usize = 200;
/// What the gateway may take for them, KiB.
const RSS_KB_MAX: u64 = 150 * 1_024;
/// Nobody is sent away, however long the miner takes to claim them all.
const SETTINGS: &str = "claim_bond_micro = 0\nclaim_wait_ms = 300000\n";

pub(crate) fn run() -> anyhow::Result<String> {
    Scene::joined(SETTINGS, &[], (&["--v7", "0"], Way::Straight))?.play(|scene| {
        let bodies: Vec<_> =
            (0..STREAMS).map(|number| stream(&format!("number {number}\nhold crowd"))).collect();
        let begun: Vec<_> =
            bodies.iter().map(|body| scene.client.begin(body, &[])).collect::<Result<_, _>>()?;
        wait_until("all of them to be under way", || Ok(scene.key()?["open_requests"] == STREAMS))?;
        wait_until("all of them to be claimed", || {
            let running = scene.runs_that_are("claimed")?;
            Ok(running == STREAMS)
        })?;
        scene.worker.let_go("crowd");
        for connection in begun {
            let answer = read(connection)?;
            ensure!(
                answer.status == 200 && answer.text.ends_with("data: [DONE]\n\n"),
                "{answer:?}"
            );
        }
        let taken_kb = peak_rss_kb(scene.gateway.as_ref().context("a gateway that runs")?.pid())?;
        ensure!(taken_kb < RSS_KB_MAX, "the gateway took {taken_kb} KiB for {STREAMS} streams");
        Ok(format!("{STREAMS} streams at once took {} MiB", taken_kb / 1_024))
    })
}
