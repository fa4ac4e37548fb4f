//! How soon a block is shown, and how smooth the page stays. Printed, not judged: times on a machine
//! that does other things say nothing about the page.

use anyhow::Context;
use serde_json::{Value, json};
use testkit::actor;
use testkit::suite::say;

use crate::cases::pages;
use crate::scene::Scene;

const BLOCKS: usize = 60;
const LARGE_BLOCKS: usize = 10;

/// Notes for each block when the node told of it on another WebSocket, when its row came into the
/// page, and the pauses between pictures.
const WATCH: &str = r"
window.seen = {};
window.told = {};
window.pauses = [];
const other = new WebSocket(location.origin.replace('http', 'ws') + '/');
other.onopen = () => other.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ombra_subscribe', params: ['blocks', {}] }));
other.onmessage = ({ data }) => {
  const block = JSON.parse(data).params?.result;
  if (block) window.told[block.index] = Date.now();
};
const look = () => {
  for (const row of document.querySelectorAll('main tr[data-block]')) window.seen[row.dataset.block] ??= Date.now();
};
new MutationObserver(look).observe(document.querySelector('main'), { childList: true, subtree: true });
look();
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

/// Reports two delays of each block until it is in the page: from the time in its header, which its
/// proposer wrote before the validators decided it, so that it is more than the time since the
/// commit; and from the time at which another subscriber knew of it, which is less.
/// Blocks before the first one were there already.
fn report_delays(scene: &Scene, what: &str, first: u64) -> anyhow::Result<()> {
    let seen = scene.browser.run("return [window.seen, window.told]", &json!([]))?;
    let blocks = seen[0].as_object().context("the blocks that were seen")?;
    let millis = |value: &Value| value.as_f64().context("a time");
    let (mut since_header, mut since_told) = (Vec::new(), Vec::new());
    for (index, at) in blocks {
        let height: u64 = index.parse()?;
        if height < first {
            continue;
        }
        let block = scene.node.call("ombra_getBlock", &json!([height, false]))?;
        since_header.push(millis(at)? - millis(&block["timestamp"])?);
        if let Some(told) = seen[1][index.as_str()].as_f64() {
            since_told.push(millis(at)? - told);
        }
    }
    report(&format!("{what}, header's time to shown"), since_header);
    report(&format!("{what}, told to shown"), since_told);
    Ok(())
}

fn pauses(scene: &Scene) -> anyhow::Result<Vec<f64>> {
    let pauses = scene.browser.run("return window.pauses.splice(0)", &json!([]))?;
    Ok(pauses.as_array().into_iter().flatten().filter_map(Value::as_f64).collect())
}

pub(crate) fn run(scene: &mut Scene) -> anyhow::Result<()> {
    scene.load("")?;
    scene.browser.shows("Live")?;
    scene.browser.run(WATCH, &json!([]))?;
    let (to, first) = (scene.people[9].address(), scene.node.height()? + 1);
    for index in 0..BLOCKS {
        scene.act(index % 9, &actor::transfer(to, 1))?;
    }
    report_delays(scene, "small blocks", first)?;
    report("small blocks, between pictures", pauses(scene)?);

    let first = scene.node.height()? + 1;
    let mut largest = 0;
    for _ in 0..LARGE_BLOCKS {
        let (_, count) = pages::a_large_block(scene)?;
        largest = largest.max(count);
    }
    report_delays(scene, &format!("blocks of up to {largest} transactions"), first)?;
    report("large blocks, between pictures", pauses(scene)?);
    Ok(())
}

/// How many transactions the block has that is opened.
const OPENED: u64 = 3_000;
const TIMES: usize = 20;

/// From a click on the link of a block until its first transactions are in a picture, and the pauses
/// between pictures on the way. Each time the page comes from the overview.
const OPEN: &str = r"
const [index, done] = arguments;
const link = [...document.querySelectorAll('main a')].find((one) => one.getAttribute('href') === `#/block/${index}`);
const pauses = [];
let before = performance.now();
const began = before;
link.click();
const tick = (now) => {
  pauses.push(now - before);
  before = now;
  const isShown = document.querySelectorAll('main tbody tr td').length > 100 && location.hash === `#/block/${index}`;
  if (isShown) requestAnimationFrame(() => done([performance.now() - began, Math.max(...pauses)]));
  else requestAnimationFrame(tick);
};
requestAnimationFrame(tick);
";

/// Opens a block with so many transactions, again and again.
pub(crate) fn large_block(scene: &mut Scene) -> anyhow::Result<()> {
    let to = scene.people[9].address();
    let mut texts = Vec::new();
    for sender in (0..9).cycle().take(usize::try_from(OPENED)?) {
        texts.push(scene.people[sender].sign(&actor::transfer(to, 1)));
    }
    // A block was made a moment ago, so that all of them come into the next.
    scene.act(9, &actor::transfer(to, 1))?;
    scene.include(&texts)?;
    let blocks = scene.node.call("ombra_getBlocks", &json!({ "limit": 10 }))?;
    let blocks = blocks["items"].as_array().context("blocks")?;
    let largest = blocks.iter().max_by_key(|block| block["txCount"].as_u64()).context("a block")?;
    let (index, count) = (&largest["index"], &largest["txCount"]);
    let (mut shown, mut pauses) = (Vec::new(), Vec::new());
    scene.load("")?;
    for _ in 0..TIMES {
        scene.go("")?;
        scene.browser.find(&format!("main a[href=\"#/block/{index}\"]"))?;
        let seen = scene.browser.run_later(OPEN, &json!([index]))?;
        shown.push(seen[0].as_f64().context("a time")?);
        pauses.push(seen[1].as_f64().context("a time")?);
    }
    report(&format!("a block of {count} transactions, click to shown"), shown);
    report("longest pause between pictures on the way", pauses);
    Ok(())
}
