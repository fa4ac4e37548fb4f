//! Two of four validators are killed: there is no quorum.

use std::time::Instant;

use crate::Extent;
use testkit::harness::{Load, Town, catches_up};
use testkit::suite::say;

const REST: &[usize] = &[0, 1];

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let mut town = Town::start(4, 0)?;
    let load = Load::steady(&town.net, REST, 4)?;
    town.kill(2)?;
    town.kill(3)?;
    town.stands_still(REST)?;

    let returned = Instant::now();
    town.restart(2)?;
    let answered = returned.elapsed();
    town.goes_on(&[0, 1, 2], 3)?;
    say(&format!(
        "   one came back: it answered after {answered:.1?}, three blocks more after {:.1?}",
        returned.elapsed()
    ));
    load.confirms(10)?;
    town.restart(3)?;
    catches_up(town.node(3)?, town.node(0)?)?;
    town.goes_on(&[0, 1, 2, 3], 4)?;
    town.check(&*load.stop()?)
}
