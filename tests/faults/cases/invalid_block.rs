//! A validator that proposes blocks which break the rules, each in another way.

use anyhow::ensure;
use testkit::node::wait_until;

use crate::Extent;
use testkit::harness::{Liar, Load, Town};
use testkit::suite::say;

const HONEST: &[usize] = &[0, 1, 2];
const LIAR: usize = 3;

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let mut town = Town::make(4, 0)?;
    for at in HONEST {
        town.restart(*at)?;
    }
    let folder = tempfile::tempdir()?;
    let liar = Liar::start(&town.net, LIAR, 4, folder.path())?;
    let load = Load::full(&town.net, HONEST, 4)?;
    wait_until("a lie of each kind", || Ok(liar.lies().len() > Liar::ways()))?;
    town.goes_on(HONEST, 8)?;
    let seen =
        HONEST.iter().map(|at| town.node(*at)?.metric("ombra_consensus_proposals_invalid_total"));
    let seen = seen.collect::<anyhow::Result<Vec<_>>>()?;
    say(&format!(
        "   {} blocks proposed by the liar, at height {}; judged invalid by the others: {seen:?}; \
         forged certificates that it was asked for: {}",
        liar.lies().len(),
        liar.height(),
        liar.asked()
    ));
    // A lie may be skipped: a busy liar can be too late with it.
    ensure!(seen.iter().all(|count| *count >= 3), "somebody has not judged the lies");
    town.takes_nothing_of(LIAR)?;
    town.check(&*load.stop()?)
}
