//! How soon a block is shown, and how smooth the page stays. Printed, not judged: times on a machine
//! that does other things say nothing about the page.

use anyhow::Context;
use serde_json::{Value, json};
use tests::actor;

use crate::cases::pages;
use crate::say;
use crate::scene::Scene;

const BLOCKS: usize = 60;
const LARGE_BLOCKS: usize = 10;

/// Notes for each block when its row came into the page, and the longest pauses between pictures.
const WATCH: &str = r"
window.seen = {};
window.pauses = [];
const look = () => {
  for (const row of document.querySelectorAll('main tr[data-block]')) window.seen[row.dataset.block] ??= Date.now();
};
new MutationObserver(look).observe(document.querySelector('main'), { childList: true, subtree: true });
look();
window.seen = {};
let before = performance.now();
const tick = (now) => { window.pauses.push(now - before); before = now; requestAnimationFrame(tick); };
requestAnimationFrame(tick);
";

fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let at = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(at).copied().unwrap_or_default()
}

fn report(what: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    say(&format!(
        "{what}: {} values, median {:.0} ms, 95 % {:.0} ms, longest {:.0} ms",
        values.len(),
        quantile(&values, 50),
        quantile(&values, 95),
        quantile(&values, 100)
    ));
}

/// From the time in each block's header, which its proposer wrote before the validators decided it,
/// until the block is in the page. So it is more than the time since the commit.
fn delays(scene: &Scene) -> anyhow::Result<Vec<f64>> {
    let seen = scene.browser.run("return window.seen", &json!([]))?;
    let seen = seen.as_object().context("the blocks that were seen")?;
    let mut delays = Vec::new();
    for (index, at) in seen {
        let index: u64 = index.parse()?;
        let block = scene.node.call("ombra_getBlock", &json!([index, false]))?;
        let millis = |value: &Value| value.as_f64().context("a time");
        delays.push(millis(at)? - millis(&block["timestamp"])?);
    }
    Ok(delays)
}

fn pauses(scene: &Scene) -> anyhow::Result<Vec<f64>> {
    let pauses = scene.browser.run("return window.pauses.splice(0)", &json!([]))?;
    Ok(pauses.as_array().into_iter().flatten().filter_map(Value::as_f64).collect())
}

pub(crate) fn run(scene: &mut Scene) -> anyhow::Result<()> {
    scene.load("")?;
    scene.browser.shows("Live")?;
    scene.browser.run(WATCH, &json!([]))?;
    let to = scene.people[9].address();
    for index in 0..BLOCKS {
        let text = scene.people[index % 9].sign(&actor::transfer(to, 1));
        scene.include(&[text])?;
    }
    report("small blocks, header's time to shown", delays(scene)?);
    report("small blocks, between pictures", pauses(scene)?);

    scene.browser.run("window.seen = {}", &json!([]))?;
    let mut largest = 0;
    for _ in 0..LARGE_BLOCKS {
        let (_, count) = pages::a_large_block(scene)?;
        largest = largest.max(count);
    }
    report(
        &format!("blocks of up to {largest} transactions, header's time to shown"),
        delays(scene)?,
    );
    report("large blocks, between pictures", pauses(scene)?);
    Ok(())
}
