//! A node whose wires for consensus are dead while those for transactions work.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::net::{Member, Network};
use testkit::node::wait_until;

use crate::{ALL, Extent};
use testkit::harness::{Load, Town};
use testkit::suite::say;

const DEAF: usize = 3;
/// The node ends when it has stood still for so long. Long enough to be seen `syncing` before.
const STALLED_MS: u64 = 12_000;

/// It says that it is behind, ends by itself, and when started again gets what it missed from the
/// network for transactions, whose blocks need no votes to be proved.
pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let mut town = Town::on_wires(4, 0)?;
    let (three, deaf) = (&ALL[..DEAF], DEAF);
    town.node_mut(deaf)?.stop()?;
    let patience = ("OMBRA__SYNC__STALLED_MS".to_owned(), STALLED_MS.to_string());
    town.node_mut(deaf)?.environment.push(patience);
    town.restart(deaf)?;
    town.net.meet_all()?;
    let ports = ALL.iter().map(|at| Ok(town.node(*at)?.p2p_port(Network::Consensus)));
    let ports = ports.collect::<anyhow::Result<Vec<u16>>>()?;
    let load = Load::steady(&town.net, three, 4)?;
    for _ in 0..extent.pick(1, 5) {
        load.confirms(10)?;
        town.switch()?.part_ports(deaf, &ports);
        let cut = Instant::now();
        wait_until("the deaf node to say that it is syncing", || is_syncing(town.node(deaf)?))?;
        let (said, stood) = (cut.elapsed(), town.node(deaf)?.height()?);
        let status = town.node_mut(deaf)?.ended()?;
        ensure!(!status.success(), "a node that stands still ends with an error");
        let log = town.node(deaf)?.logged()?;
        ensure!(log.contains("the height stays at"), "the log does not say why it ended");
        say(&format!(
            "   deaf at height {stood}: it said so after {said:.1?} and ended after {:.1?}",
            cut.elapsed()
        ));
        load.confirms(10)?;
        let goal = town.height(three)?;
        ensure!(goal > stood, "three of four go on without the deaf one");
        town.restart(deaf)?;
        let back = Instant::now();
        town.node(deaf)?.reaches(goal)?;
        say(&format!(
            "   still deaf, it had all {goal} blocks {:.1?} after its start",
            back.elapsed()
        ));
        town.switch()?.heal();
        town.goes_on(ALL, 4)?;
    }
    town.check(&*load.stop()?)
}

/// Whether a node says that it is behind.
fn is_syncing(node: &Member) -> anyhow::Result<bool> {
    let info = node.call("ombra_chainInfo", &json!([]))?;
    info.get("syncing").and_then(Value::as_bool).context("chainInfo tells whether it is syncing")
}
