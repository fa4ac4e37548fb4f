//! A node is away for many blocks.

use std::time::Instant;

use crate::Extent;
use testkit::harness::{Load, Town, catches_up};
use testkit::suite::say;

const REST: &[usize] = &[0, 1, 2];
const AWAY: usize = 4;
/// Blocks as fast as they are agreed on.
const FASTEST: &[&str] = &["minBlockIntervalMs=10", "heartbeatMs=1000"];
/// How many it misses.
const BLOCKS: u64 = 500;
const BLOCKS_FULL: u64 = 10_000;

pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let blocks = extent.pick(BLOCKS, BLOCKS_FULL);
    let mut town = Town::make_with(4, 1, FASTEST)?.started()?;
    let load = Load::full(&town.net, REST, 4)?;
    let left = town.height(REST)?;
    town.kill(AWAY)?;
    let goal = left + blocks;
    while town.height(REST)? < goal {
        town.goes_on(REST, 20)?;
    }
    let (back, ahead) = (Instant::now(), town.height(REST)?);
    town.restart(AWAY)?;
    let answered = back.elapsed();
    catches_up(town.node(AWAY)?, town.node(0)?)?;
    say(&format!(
        "   {} blocks behind: it answered after {answered:.1?} and had the others' height after {:.1?}",
        ahead - left,
        back.elapsed()
    ));
    town.goes_on(&[0, 1, 2, 3, AWAY], 4)?;
    town.check(&*load.stop()?)
}
