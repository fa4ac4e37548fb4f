//! Wires that lose packets, and wires that are slow.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::Extent;
use testkit::harness::{Load, Town};
use testkit::suite::say;

const ALL: &[usize] = &[0, 1, 2, 3];
const LOST_PERCENT: u64 = 20;
const DELAY: Duration = Duration::from_millis(200);

/// A fifth of all packets is lost.
pub(crate) fn loss(extent: Extent) -> anyhow::Result<()> {
    let blocks = extent.pick(10, 100);
    let town = Town::on_wires(4, 0)?;
    let load = Load::start(&town.net, ALL, 4, Duration::from_millis(20))?;
    load.confirms(10)?;
    // What passed before says nothing, and on a quick machine it is much.
    let (lost_before, seen_before) = town.switch()?.lost_of();
    town.switch()?.lose(LOST_PERCENT);
    let pace = goes_on_slowly(&town, blocks)?;
    let (lost, seen) = town.switch()?.lost_of();
    let (lost, seen) = (lost - lost_before, seen - seen_before);
    say(&format!("   {pace} while {lost} of {seen} packets were lost"));
    ensure!(lost * 10 > seen, "too few packets were lost to tell");
    town.switch()?.heal();
    let took = town.goes_on(ALL, 10)?;
    say(&format!("   10 blocks in {took:.1?} afterwards"));
    load.confirms(10)?;
    town.check(&*load.stop()?)
}

/// Every packet takes long.
pub(crate) fn latency(extent: Extent) -> anyhow::Result<()> {
    let blocks = extent.pick(10, 100);
    let town = Town::on_wires(4, 0)?;
    let load = Load::start(&town.net, ALL, 4, Duration::from_millis(20))?;
    load.confirms(10)?;
    town.switch()?.delay(DELAY);
    let pace = goes_on_slowly(&town, blocks)?;
    say(&format!("   {pace} with {DELAY:?} for each packet"));
    town.switch()?.heal();
    let took = town.goes_on(ALL, 10)?;
    say(&format!("   10 blocks in {took:.1?} afterwards"));
    load.confirms(10)?;
    town.check(&*load.stop()?)
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
