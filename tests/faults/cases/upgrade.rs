//! Validators of release 0.2.0 are replaced one by one under load, vote for fork v7, and pass its height.
//! A validator and a follower that were left behind stop before it, each with its sentence, and go on
//! once they are replaced. Later they vote for v8, and pass that height, too.

use anyhow::{Context as _, ensure};
use serde_json::json;

use crate::Extent;
use testkit::client;
use testkit::harness::{FAST, Load, Town, catches_up};
use testkit::net::{Member, NetOptions};
use testkit::node::{binary, wait_for, wait_until};
use testkit::suite::needs::{EARLIER, earlier};
use testkit::suite::say;

const VALIDATORS: usize = 4;
/// Those that are replaced in time: more than two thirds.
const REPLACED: &[usize] = &[0, 1, 2];
/// A validator and a follower that are not.
const LEFT_BEHIND: &[usize] = &[3, 4];
/// Blocks between the votes and the fork.
const AHEAD: u64 = 60;

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let earlier = earlier().with_context(|| format!("{EARLIER} names no program"))?;
    let options = NetOptions { binary: earlier, ..NetOptions::new(VALIDATORS, 1) };
    let mut town = Town::of(options, &[FAST, &["forkDelayBlocks=30"]].concat())?.started()?;
    let load = Load::steady(&town.net, REPLACED, 6)?;
    for at in REPLACED {
        load.ledger().excuse(*at);
        replace(&mut town, *at)?;
        let took = catches_up(town.node(*at)?, town.node((at + 1) % VALIDATORS)?)?;
        town.net.meet_all()?;
        say(&format!("   validator {at} is replaced, at the others' height after {took:.1?}"));
        load.ledger().expect(*at);
        load.confirms(20)?;
    }
    let height = town.height(REPLACED)? + AHEAD;
    for at in REPLACED {
        vote(town.node(*at)?, "v7", height)?;
    }
    for member in &town.net.members {
        wait_for(&format!("the fixed height on {}", member.name), || {
            let forks = member.call("ombra_forks", &json!([]))?;
            let fixed = forks.pointer("/forks/0/fixed/height");
            Ok((fixed == Some(&json!(height))).then_some(()))
        })?;
    }
    say(&format!("   old and new programs agree that v7 begins with block {height}"));
    for at in REPLACED {
        town.node(*at)?.reaches(height + 10)?;
    }
    load.confirms(20)?;
    for at in LEFT_BEHIND {
        let member = town.node_mut(*at)?;
        let code = member.ended()?.code();
        ensure!(code == Some(5), "{} ended with {code:?}", member.name);
        let log = member.logged()?;
        let last = log.lines().last().unwrap_or_default();
        let sentence = format!("block {height} begins the fork v7, which ombra 0.2.0 does not");
        ensure!(last.contains(&sentence), "{}: {last}", member.name);
        say(&format!("   node {at} of release 0.2.0 has ended: {last}"));
    }
    for at in LEFT_BEHIND {
        replace(&mut town, *at)?;
        catches_up(town.node(*at)?, town.node(0)?)?;
    }
    town.net.meet_all()?;
    load.confirms(20)?;
    let fees = town.node(0)?.call("ombra_feeSchedule", &json!([]))?;
    ensure!(fees.get("baseFee").is_some(), "{fees}");
    town.net.same_block(height - 1)?;
    town.net.same_block(height)?;
    comes_to_v8(&town)?;
    load.confirms(20)?;
    let ledger = load.stop()?;
    let failures = ledger.failures();
    ensure!(failures.is_empty(), "requests failed at nodes that were not restarting: {failures:?}");
    town.check(&ledger)
}

/// Stops a node, if it runs, and starts this program in its place.
fn replace(town: &mut Town, at: usize) -> anyhow::Result<()> {
    let member = town.node_mut(at)?;
    member.stop()?;
    member.replace_program(binary());
    member.start()
}

/// The chain of v7 goes on to v8, by votes of a kind of their own.
fn comes_to_v8(town: &Town) -> anyhow::Result<()> {
    let height = town.height(REPLACED)? + AHEAD;
    for at in REPLACED {
        vote(town.node(*at)?, "v8", height)?;
    }
    for member in &town.net.members {
        wait_until(&format!("the height of v8 on {}", member.name), || {
            let chain = member.call("ombra_chainInfo", &json!([]))?;
            Ok(chain["forks"]["v8"] == json!(height))
        })?;
    }
    for member in &town.net.members {
        member.reaches(height + 10)?;
    }
    town.net.same_block(height - 1)?;
    town.net.same_block(height)?;
    let params = town.node(0)?.call("ombra_params", &json!([]))?;
    ensure!(params.to_string().contains("minBond"), "{params}");
    say(&format!("   all have passed block {height}, which begins v8"));
    Ok(())
}

fn vote(member: &Member, fork: &str, height: u64) -> anyhow::Result<()> {
    let key = member.home().join("keys/validator.key");
    let key = key.to_str().context("a path in UTF-8")?;
    let height = height.to_string();
    client::told(member.rpc, &["tx", "fork-vote", fork, &height, "--key-file", key]).map(drop)
}
