//! A validator whose clock is wrong.

use anyhow::{Context as _, ensure};

use crate::{ALL, Extent};
use testkit::harness::{Load, Town, clock};
use testkit::suite::say;

const WRONG: usize = 3;
/// How far the chain's time may be from the machine's: far less than the wrong clock.
const OFF_MS_MAX: u64 = 60_000;

pub(crate) fn ahead(extent: Extent) -> anyhow::Result<()> {
    with_clock(3_600, extent)
}

pub(crate) fn behind(extent: Extent) -> anyhow::Result<()> {
    with_clock(-3_600, extent)
}

fn with_clock(offset_s: i64, extent: Extent) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let library = clock::compile(folder.path())?;
    let mut town = Town::make(4, 0)?;
    town.node_mut(WRONG)?.environment = clock::wrong_by(&library, offset_s);
    town.start_all()?;
    let load = Load::steady(&town.net, ALL, 4)?;
    let blocks = extent.pick(24, 200);
    let first = town.height(ALL)?;
    let took = town.goes_on(ALL, blocks)?;
    let intervals = town.intervals(0, first, first + blocks)?;
    let most = intervals.iter().max().copied().unwrap_or(0);
    say(&format!("   {blocks} blocks in {took:.1?}; the longest interval was {most} ms"));
    load.confirms(20)?;
    let info = town.node(0)?.call("ombra_chainInfo", &serde_json::json!([]))?;
    let chain_ms = info["latestBlockTime"].as_u64().context("the time of the latest block")?;
    let off_ms = chain_ms.abs_diff(clock::now_ms()?);
    ensure!(off_ms < OFF_MS_MAX, "the chain's time is off by {off_ms} ms");
    town.check(&*load.stop()?)
}
