//! Votes for forks on chains of processes: who counts what, and the end before the first block of one
//! that the program does not know. `crossing.rs` has what comes of votes for one that it knows.

use std::process::Output;

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::harness::load::Load;
use testkit::net::{Member, Net, NetOptions};
use testkit::node::{program, wait_until};

use crate::support::{chain, earliest, logs, printed};

pub(crate) const VALIDATORS: usize = 4;
/// Begins with a snapshot when the votes are cast.
const LATECOMER: usize = 4;
/// Blocks that a fork must be ahead.
const DELAY: u64 = 30;
/// Far enough for everything that happens between the first vote and the fork.
pub(crate) const AHEAD: u64 = 160;

/// Of the chains that cross to a fork: begins with a snapshot between the votes and the fork.
pub(crate) const EARLY: usize = VALIDATORS;
/// Executes every block from genesis on, when the fork has come.
pub(crate) const WHOLE: usize = VALIDATORS + 1;
/// Begins with a snapshot of after the fork.
pub(crate) const LATE: usize = VALIDATORS + 2;
/// Blocks after the height with which the chain is taken to have crossed.
pub(crate) const BEYOND: u64 = 15;

/// Snapshots of every tenth block, as many as a node keeps: one is gone before a newcomer has asked for it,
/// else.
pub(crate) fn snapshots() -> [(&'static str, String); 2] {
    [
        ("OMBRA__SNAPSHOTS__INTERVAL_BLOCKS", "10".to_owned()),
        ("OMBRA__SNAPSHOTS__KEEP", "4".to_owned()),
    ]
}

/// Begins a node with a snapshot of a peer.
pub(crate) fn begins_with_snapshot(member: &mut Member) -> anyhow::Result<()> {
    let fetches = ("OMBRA__SNAPSHOTS__FETCH", "true".to_owned());
    let settings: Vec<_> = snapshots().into_iter().chain([fetches]).collect();
    member.start_with(&settings)?;
    ensure!(earliest(member)? > 1, "{}", member.logged()?);
    Ok(())
}

/// Four validators that make snapshots often, with the rules of v7 from a height on, and followers that
/// begin later.
pub(crate) fn net_with(v7: Option<u64>, followers: usize) -> anyhow::Result<Net> {
    let params = ["minBlockIntervalMs=50", "heartbeatMs=150", &format!("forkDelayBlocks={DELAY}")];
    let mut net = Net::make_as(&NetOptions { v7, ..chain(VALIDATORS, followers, &params) })?;
    for member in net.members.iter_mut().take(VALIDATORS) {
        member.start_with(&snapshots())?;
    }
    net.members[0].reaches(3)?;
    Ok(net)
}

/// `ombra tx` with the key of a validator.
fn tx(member: &Member, arguments: &[&str]) -> anyhow::Result<Output> {
    let key = member.home().join("keys/validator.key");
    let mut command = program();
    command.arg("tx").args(arguments).arg("--key-file").arg(key);
    Ok(command.args(["--rpc", &format!("http://{}", member.rpc)]).output()?)
}

/// Any vote, with the key of a validator and no money of its own.
pub(crate) fn cast(member: &Member, arguments: &[&str]) -> anyhow::Result<()> {
    printed(tx(member, arguments)?).map(drop)
}

pub(crate) fn votes(member: &Member, height: u64) -> anyhow::Result<()> {
    cast(member, &["fork-vote", "v7", &height.to_string()])
}

pub(crate) fn forks(member: &Member) -> anyhow::Result<Value> {
    member.call("ombra_forks", &json!([]))
}

/// The height of a fork as a client is told it.
pub(crate) fn height_of(fork: &str, member: &Member) -> anyhow::Result<Option<u64>> {
    Ok(member.call("ombra_chainInfo", &json!([]))?["forks"][fork].as_u64())
}

/// A node is ready for a fork that begins with this block.
pub(crate) fn is_ready_for(fork: &str, height: u64, member: &Member) -> anyhow::Result<()> {
    ensure!(height_of(fork, member)? == Some(height), "{}", member.name);
    let said = member.check("forks")?;
    ensure!(said["ok"] == true, "{said}");
    let detail = said["detail"].as_str().unwrap_or_default();
    let expected = format!("{fork} begins with block {height}, ");
    ensure!(detail.starts_with(&expected) && detail.ends_with("knows it"), "{detail}");
    Ok(())
}

/// A node has crossed to a fork that began with this block.
pub(crate) fn has_crossed_to(fork: &str, height: u64, member: &Member) -> anyhow::Result<()> {
    ensure!(height_of(fork, member)? == Some(height), "{}", member.name);
    let said = member.check("forks")?;
    let expected = format!("{fork} has been active since block {height}; this program knows it");
    ensure!(said["ok"] == true && said["detail"] == expected, "{}: {said}", member.name);
    Ok(())
}

/// The load that was on the chain has seen no failure; all nodes have the same last block.
pub(crate) fn ends_well(load: Load, net: &Net) -> anyhow::Result<()> {
    load.confirms(20)?;
    let ledger = load.stop()?;
    ensure!(ledger.failures().is_empty(), "{:?}", ledger.failures());
    net.same_block(net.members[0].height()?).map(drop)
}

/// What `ombra query forks` prints.
pub(crate) fn shown(member: &Member) -> anyhow::Result<String> {
    let node = format!("http://{}", member.rpc);
    printed(program().args(["query", "forks", "--rpc", &node]).output()?)
}

/// Waits until a node knows this base fee.
pub(crate) fn has_base_fee(member: &Member, base_fee: &str) -> anyhow::Result<()> {
    wait_until(&format!("the base fee of {}", member.name), || {
        let fees = member.call("ombra_feeEstimate", &json!([]))?;
        Ok(fees["baseFee"] == base_fee)
    })
}

/// Waits until a node says that the height is fixed.
pub(crate) fn fixes(member: &Member, height: u64) -> anyhow::Result<()> {
    wait_until(&format!("the fixed height on {}", member.name), || {
        let fixed = forks(member)?["forks"][0]["fixed"]["height"].clone();
        Ok(fixed == json!(height))
    })
}

/// Stops everything; every block, certificate, row and root on the disks is right.
pub(crate) fn stopped_and_verified(net: &mut Net) -> anyhow::Result<()> {
    for member in &mut net.members {
        member.stop()?;
        let said = member.db("verify")?;
        // One that began with a snapshot has no state to execute its blocks on.
        let is_right = said.contains("verified") || said.contains("the certificates of the blocks");
        ensure!(is_right, "{}: {said}", member.name);
    }
    Ok(())
}

#[test]
fn a_program_votes_only_for_forks_that_it_knows_unless_it_is_told_to() -> anyhow::Result<()> {
    let mut net = net_with(None, 1)?;
    let (node, far) = (&net.members[0], net.members[0].height()? + AHEAD);
    for (fork, height, more, said) in [
        ("v9", far, &[][..], "does not know the fork v9"),
        ("v100", far, &["--for-another-program"], "is not a fork that can be voted for"),
        ("v8", far, &[], "votes for it count only once fork v7 is active"),
        ("v7", 1, &["--for-another-program"], "expected "),
        ("v7", 90_000_000, &["--for-another-program"], "expected "),
    ] {
        let height = height.to_string();
        let refused = tx(node, &[&["fork-vote", fork, &height], more].concat())?;
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
    let table = shown(node)?;
    assert!(table.contains("v7") && table.contains("0 of 4"), "{table}");
    net.members[0].stop()
}

/// Begins a validator anew with a snapshot; its key and its record stay.
fn begins_anew(member: &mut Member) -> anyhow::Result<()> {
    member.stop()?;
    std::fs::remove_dir_all(member.home().join("data/db"))?;
    begins_with_snapshot(member)
}

fn signs(member: &Member) -> anyhow::Result<()> {
    wait_until(&format!("a vote of {}", member.name), || {
        Ok(member.metric("ombra_consensus_votes_signed_total")? > 0)
    })
}

#[test]
fn a_validator_follows_the_chain_while_nobody_has_the_blocks_before_its_snapshot()
-> anyhow::Result<()> {
    let mut net = net_with(None, 1)?;
    net.members[0].reaches(25)?;
    // The first three get the old blocks from those that still have them, and sign then.
    for at in 0..VALIDATORS - 1 {
        begins_anew(&mut net.members[at])?;
        signs(&net.members[at])?;
        let height = net.members[at].height()?;
        net.members[at].reaches(height + 15)?;
    }
    let last = &mut net.members[VALIDATORS - 1];
    begins_anew(last)?;
    let height = net.members[0].height()?;
    let last = &net.members[VALIDATORS - 1];
    last.reaches(height + 20)?;
    let said = last.check("forks")?;
    assert_eq!(said["ok"], false, "{said}");
    assert!(said["detail"].as_str().is_some_and(|it| it.contains("are not counted yet")), "{said}");
    assert_eq!(last.metric("ombra_consensus_votes_signed_total")?, 0);
    Ok(())
}

#[test]
fn from_v7_on_validators_vote_for_parameters_and_later_forks_by_kinds() -> anyhow::Result<()> {
    let mut net = net_with(Some(0), 1)?;
    let at = net.members[0].height()? + 40;
    for member in &net.members[..3] {
        cast(member, &["param-vote", "baseFeeFloor", "70", &at.to_string()])?;
    }
    net.members[VALIDATORS - 1].reaches(at + 1)?;
    for member in &net.members[..VALIDATORS] {
        has_base_fee(member, "70")?;
    }
    // One of ten blocks is a snapshot: whoever begins with it has the parameters, and not the votes.
    begins_with_snapshot(&mut net.members[LATECOMER])?;
    let params = |member: &Member| member.call("ombra_params", &json!([]));
    wait_until("the parameters of the latecomer", || {
        Ok(params(&net.members[LATECOMER])? == params(&net.members[0])?)
    })?;

    let height = net.members[0].height()? + AHEAD;
    for member in &net.members[..3] {
        cast(member, &["fork-vote", "v9", &height.to_string(), "--for-another-program"])?;
    }
    wait_until("the fixed height", || {
        let answer = forks(&net.members[3])?;
        let states = answer["forks"].as_array().into_iter().flatten();
        let mut fixed =
            states.filter(|fork| fork["fork"] == "v9").map(|fork| &fork["fixed"]["height"]);
        Ok(fixed.any(|fixed| *fixed == json!(height)))
    })?;
    let said = net.members[3].check("forks")?;
    assert_eq!(said["ok"], true, "it serves until then");
    let detail = said["detail"].as_str().unwrap_or_default();
    assert!(detail.starts_with(&format!("v9 begins with block {height}, ")), "{detail}");
    logs(&net.members[3], "the validators have fixed a fork that this program does not")?;
    for goal in (0..height - 10).step_by(10) {
        net.members[0].reaches(goal)?;
    }
    let sentence = format!("block {height} begins the fork v9, which ombra ");
    for member in &mut net.members {
        assert_eq!(member.ended()?.code(), Some(5), "{}", member.name);
        let log = member.logged()?;
        let last = log.lines().last().unwrap_or_default().to_owned();
        assert!(last.contains(&sentence), "{}: {last}", member.name);
        // Again, at once, with the same sentence.
        member.launch(&[])?;
        assert_eq!(member.ended()?.code(), Some(5), "{}", member.name);
        let again = member.logged()?.lines().last().map(str::to_owned);
        assert_eq!(again.as_deref(), Some(last.as_str()), "{}", member.name);
    }
    for member in &net.members {
        let verified = member.db("verify")?;
        assert!(verified.contains(&format!(" {} ", height - 1)), "{verified}");
    }
    Ok(())
}
