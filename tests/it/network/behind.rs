//! A running node that falls behind says so, for as long as it is behind.

use serde_json::{Value, json};
use tests::http::Connection;
use tests::net::{Member, Net, NetOptions};
use tests::node::wait_for;

const FROZEN: usize = 1;
/// Blocks that the chain makes while the follower is frozen.
const MISSED: u64 = 600;

/// One validator that makes a block every few milliseconds, and two followers.
fn fast_chain() -> anyhow::Result<Net> {
    let params = vec!["minBlockIntervalMs=5".to_owned(), "heartbeatMs=5".to_owned()];
    Net::start_as(&NetOptions { params, ..NetOptions::new(1, 2) })
}

fn syncing(member: &Member) -> anyhow::Result<bool> {
    let info = member.call("ombra_chainInfo", &json!([]))?;
    Ok(info["syncing"].as_bool().expect("chainInfo tells it"))
}

/// Whether the check `lag` of `/readyz` passes, and what it says.
fn lag(member: &Member) -> anyhow::Result<(bool, String)> {
    let seen: Value = serde_json::from_str(&Connection::open(member.rpc)?.get_any("/readyz")?)?;
    let checks = seen["checks"].as_array().into_iter().flatten();
    let lag = checks.clone().find(|check| check["name"] == "lag").expect("the check is listed");
    let detail = lag["detail"].as_str().unwrap_or_default().to_owned();
    Ok((lag["ok"] == json!(true), detail))
}

/// Waits until the node says that it is behind, by all that tells it.
fn says_that_it_is_behind(member: &Member) -> anyhow::Result<()> {
    wait_for("it to say that it is behind", || {
        let (is_ok, detail) = lag(member)?;
        let says = !is_ok && detail.starts_with("behind: height ") && syncing(member)?;
        Ok((says && member.metric("ombra_sync_syncing")? == 1).then_some(()))
    })
}

fn says_that_it_is_level(member: &Member) -> anyhow::Result<()> {
    wait_for("it to be level", || Ok((lag(member)?.0 && !syncing(member)?).then_some(())))
}

/// Stops a node for as long as the chain makes so many blocks.
fn freeze(net: &Net, blocks: u64) -> anyhow::Result<()> {
    net.members[FROZEN].signal("STOP")?;
    let height = net.members[0].height()?;
    net.members[0].reaches(height + blocks)?;
    net.members[FROZEN].signal("CONT")
}

#[test]
fn a_node_that_was_frozen_is_syncing_until_it_is_level_and_keeps_its_peers() -> anyhow::Result<()> {
    let net = fast_chain()?;
    let node = &net.members[FROZEN];
    node.reaches(10)?;
    assert!(!syncing(node)? && lag(node)?.0, "it is level at first");
    // Long enough for the questions of its peers to be given up.
    freeze(&net, MISSED)?;
    says_that_it_is_behind(node)?;
    net.same_block(net.members[0].height()?)?;
    says_that_it_is_level(node)?;
    let log = node.logged()?;
    assert!(log.contains("the node is behind its peers"), "{log}");
    assert!(log.contains("the node is no longer behind its peers"), "{log}");
    assert!(!log.contains("keeping a peer out"), "nobody lied: {log}");
    Ok(())
}

#[test]
fn a_node_that_is_behind_when_its_peers_go_stays_so_until_they_are_back() -> anyhow::Result<()> {
    let mut net = fast_chain()?;
    let variable = ("OMBRA__SYNC__WAIT_MS", "1".to_owned());
    net.members[FROZEN].kill()?;
    net.members[0].reaches(net.members[FROZEN + 1].height()? + MISSED)?;
    net.members[FROZEN].start_with(&[variable])?;
    says_that_it_is_behind(&net.members[FROZEN])?;
    for other in [0, FROZEN + 1] {
        net.members[other].signal("STOP")?;
    }
    let node = &net.members[FROZEN];
    wait_for("its peers to be gone", || Ok(node.peers()?.is_empty().then_some(())))?;
    let height = node.height()?;
    says_that_it_is_behind(node)?;
    assert_eq!(height, node.height()?);
    for other in [0, FROZEN + 1] {
        net.members[other].signal("CONT")?;
    }
    says_that_it_is_level(node)
}
