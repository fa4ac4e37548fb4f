//! Wires that lose packets, and wires that are slow.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::{ALL, Extent};
use testkit::harness::switch::Switch;
use testkit::harness::{Load, Town};
use testkit::suite::say;

const LOST_PERCENT: u64 = 20;
const DELAY: Duration = Duration::from_millis(200);

/// A fifth of all packets is lost.
pub(crate) fn loss(extent: Extent) -> anyhow::Result<()> {
    let (lost, seen) = on_poor_wires(extent, |wires| wires.lose(LOST_PERCENT))?;
    say(&format!("   {lost} of {seen} packets were lost"));
    ensure!(lost * 10 > seen, "too few packets were lost to tell");
    Ok(())
}

/// Every packet takes long.
pub(crate) fn latency(extent: Extent) -> anyhow::Result<()> {
    say(&format!("   each packet takes {DELAY:?}"));
    on_poor_wires(extent, |wires| wires.delay(DELAY)).map(drop)
}

/// Has blocks made on wires that are made poor, and then on good ones; answers how many packets were lost
/// on the poor ones, and how many there were.
fn on_poor_wires(extent: Extent, worsen: fn(&Switch)) -> anyhow::Result<(u64, u64)> {
    let town = Town::on_wires(4, 0)?;
    let load = Load::steady(&town.net, ALL, 4)?;
    // What passed before says nothing, and on a quick machine it is much.
    let (lost_before, seen_before) = town.switch()?.lost_of();
    worsen(town.switch()?);
    let pace = goes_on_slowly(&town, extent.pick(10, 100))?;
    let (lost, seen) = town.switch()?.lost_of();
    town.switch()?.heal();
    let took = town.goes_on(ALL, 10)?;
    say(&format!("   {pace} on poor wires, 10 blocks in {took:.1?} afterwards"));
    load.confirms(10)?;
    town.check(&*load.stop()?)?;
    Ok((lost - lost_before, seen - seen_before))
}

/// Block by block, so that each may take as long as anything that is waited for; answers the pace.
fn goes_on_slowly(town: &Town, blocks: u64) -> anyhow::Result<String> {
    let (started, first) = (Instant::now(), town.height(ALL)?);
    while town.height(ALL)? < first + blocks {
        town.goes_on(ALL, 1)?;
    }
    let made = town.height(ALL)? - first;
    Ok(format!("{made} blocks in {:.1?}", started.elapsed()))
}
