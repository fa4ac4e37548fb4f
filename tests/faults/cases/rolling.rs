//! Every node is restarted in turn, under load on all of them.

use anyhow::ensure;

use crate::Extent;
use testkit::harness::{Load, Town, catches_up};
use testkit::suite::say;

const ALL: &[usize] = &[0, 1, 2, 3, 4];

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let mut town = Town::start(4, 1)?;
    let load = Load::steady(&town.net, ALL, 10)?;
    for at in ALL {
        load.ledger().excuse(*at);
        town.node_mut(*at)?.stop()?;
        town.restart(*at)?;
        let other = (at + 1) % ALL.len();
        let took = catches_up(town.node(*at)?, town.node(other)?)?;
        town.net.meet_all()?;
        say(&format!("   node {at} is back, at the others' height after {took:.1?}"));
        load.ledger().expect(*at);
        load.confirms(20)?;
    }
    let ledger = load.stop()?;
    let failures = ledger.failures();
    ensure!(failures.is_empty(), "requests failed at nodes that were not restarting: {failures:?}");
    say(&format!("   {} requests failed, all at restarting nodes", ledger.excused()));
    town.check(&ledger)
}
