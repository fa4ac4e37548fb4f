//! Wires between validators are cut, and mended.

use std::time::Instant;

use crate::{ALL, Extent};
use testkit::harness::{Load, Town};
use testkit::suite::say;

/// Two and two: nobody has a quorum.
pub(crate) fn half(extent: Extent) -> anyhow::Result<()> {
    for _ in 0..extent.pick(1, 5) {
        let town = Town::on_wires(4, 0)?;
        let load = Load::steady(&town.net, ALL, 4)?;
        town.switch()?.part(&[0, 1], &[2, 3]);
        town.stands_still(ALL)?;
        town.switch()?.heal();
        let healed = Instant::now();
        town.goes_on(ALL, 4)?;
        say(&format!("   four blocks more {:.1?} after the wires were mended", healed.elapsed()));
        load.confirms(10)?;
        town.check(&*load.stop()?)?;
    }
    Ok(())
}

/// Three and one: the three go on, the one stands still.
pub(crate) fn one(extent: Extent) -> anyhow::Result<()> {
    let (three, alone) = (&ALL[..3], &ALL[3..]);
    let town = Town::on_wires(4, 0)?;
    let load = Load::steady(&town.net, three, 4)?;
    for _ in 0..extent.pick(1, 5) {
        load.confirms(10)?;
        town.switch()?.part(three, alone);
        let took = town.goes_on(three, 20)?;
        town.stands_still(alone)?;
        load.confirms(10)?;
        town.switch()?.heal();
        let healed = Instant::now();
        let goal = town.height(three)?;
        town.node(3)?.reaches(goal)?;
        say(&format!(
            "   three made 20 blocks in {took:.1?}; the one had them {:.1?} after it was back",
            healed.elapsed()
        ));
        town.goes_on(ALL, 4)?;
    }
    town.check(&*load.stop()?)
}
