//! A validator serves blocks with forged certificates to a node that was away.

use std::time::Duration;

use anyhow::ensure;

use crate::Extent;
use crate::harness::liar::Liar;
use crate::harness::load::Load;
use crate::harness::report::say;
use crate::harness::town::{Town, catches_up};

const HONEST: &[usize] = &[0, 1, 2];
const LIAR: usize = 3;
/// The follower that is away and has to ask somebody for what it missed.
const BEHIND: usize = 4;
const BLOCKS: u64 = 30;
/// How often it is away at most, until it has asked the liar too.
const TIMES_MAX: u64 = 8;

pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let mut town = Town::make(4, 1)?;
    for at in HONEST {
        town.restart(*at)?;
    }
    let folder = tempfile::tempdir()?;
    let liar = Liar::start(&town.net, LIAR, 4, folder.path())?;
    let load = Load::start(&town.net, HONEST, 4, Duration::ZERO)?;
    load.confirms(10)?;
    let mut times = 0;
    while times < extent.pick(1, 5) || (liar.asked() == 0 && times < TIMES_MAX) {
        town.goes_on(HONEST, BLOCKS)?;
        town.restart(BEHIND)?;
        let took = catches_up(town.node(BEHIND)?, town.node(0)?)?;
        say(&format!("   {BLOCKS} blocks behind: caught up in {took:.1?}"));
        town.goes_on(&[0, 1, 2, BEHIND], 4)?;
        town.kill(BEHIND)?;
        times += 1;
    }
    say(&format!("   the liar was asked for {} blocks and forged each certificate", liar.asked()));
    ensure!(liar.asked() > 0, "nobody asked the liar");
    town.restart(BEHIND)?;
    town.goes_on(&[0, 1, 2, BEHIND], 4)?;
    town.check(&*load.stop()?)
}
