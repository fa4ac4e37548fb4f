//! One of four validators is killed, or hangs.

use anyhow::ensure;
use testkit::net::Net;

use crate::Extent;
use testkit::harness::{Load, Town};
use testkit::process::Signal;
use testkit::suite::say;

const REST: &[usize] = &[0, 1, 2];
const DEAD: usize = 3;
/// Blocks over which a pace is taken: each validator has this many quarters of turns.
const BLOCKS: u64 = 24;
/// Turns of the dead one until all have noticed that it is away.
const NOTICED: u64 = 8;
/// How many times longer a block may take on average with one of four turns lost, once the dead
/// one is known to be down. The whole propose timeout for each of its turns would be some ten times.
const SLOWER_MAX: u64 = 4;

/// Killed: its connections are closed at once.
pub(crate) fn killed(_: Extent) -> anyhow::Result<()> {
    without_one(Town::kill, Town::restart)
}

/// Stopped in the middle of its work: to the others it is connected as ever.
pub(crate) fn frozen(_: Extent) -> anyhow::Result<()> {
    without_one(
        |town, at| town.node(at)?.signal(Signal::STOP),
        |town, at| town.node(at)?.signal(Signal::CONT),
    )
}

/// Something that is done to a node.
type Act = fn(&mut Town, usize) -> anyhow::Result<()>;

fn without_one(take_away: Act, bring_back: Act) -> anyhow::Result<()> {
    let mut town = Town::start(4, 0)?;
    let load = Load::full(&town.net, REST, 4)?;
    let normal = pace(&town, BLOCKS)?;

    take_away(&mut town, DEAD)?;
    let at_once = pace(&town, NOTICED)?;
    let later = pace(&town, BLOCKS)?;
    let [before, noticing, after] = [&normal, &at_once, &later].map(|it| mean(it));
    say(&format!(
        "   a block took {before} ms; {noticing} ms while the dead one was noticed; {after} ms then"
    ));
    say(&format!("   intervals then: {later:?}"));
    ensure!(after <= before * SLOWER_MAX, "the pace does not recover");

    bring_back(&mut town, DEAD)?;
    town.goes_on(&[0, 1, 2, DEAD], 4)?;
    proposes(&town.net)?;
    town.check(&*load.stop()?)
}

/// The intervals of the next blocks.
fn pace(town: &Town, blocks: u64) -> anyhow::Result<Vec<u64>> {
    let first = town.height(REST)?;
    town.goes_on(REST, blocks)?;
    town.intervals(0, first, first + blocks)
}

fn mean(intervals: &[u64]) -> u64 {
    intervals.iter().sum::<u64>() / u64::try_from(intervals.len()).unwrap_or(1).max(1)
}

/// The returned validator makes blocks again, so the others wait for it again.
fn proposes(net: &Net) -> anyhow::Result<()> {
    let [first, .., dead] = net.members.as_slice() else { anyhow::bail!("no nodes") };
    let since = first.height()?;
    let own = own_address(dead)?;
    testkit::node::wait_for("a block of the returned validator", || {
        let height = first.height()?;
        let mut heights = since..=height;
        let found = heights.try_fold(false, |found, height| {
            let block = first.call("ombra_getBlock", &serde_json::json!([height, false]))?;
            anyhow::Ok(found || block.get("proposer").and_then(|it| it.as_str()) == Some(&own))
        })?;
        Ok(found.then_some(()))
    })
}

/// The address that a validator proposes with.
fn own_address(member: &testkit::net::Member) -> anyhow::Result<String> {
    Ok(member.validator_key()?.address().to_string())
}
