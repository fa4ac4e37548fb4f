//! A chain of processes whose validators change their own set.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::home::HomeNode;
use testkit::node::{binary, wait_for};

use crate::forks::cast;
use crate::support::printed;

const POWER: u64 = 10;

/// Homes of four validators, one that becomes a validator, and a follower.
struct Town {
    nodes: Vec<HomeNode>,
    _folder: tempfile::TempDir,
}

const NEWCOMER: usize = 4;
const FOLLOWER: usize = 5;

impl Town {
    /// The chain's genesis is made with these options, too.
    fn with(options: &[&str]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let nodes: Vec<HomeNode> = (0..6)
            .map(|at| HomeNode::with_keys(folder.path().join(format!("node{at}")), at == FOLLOWER))
            .collect::<anyhow::Result<_>>()?;
        let genesis = folder.path().join("genesis.json");
        write_genesis(&nodes[..NEWCOMER], options, &genesis)?;
        for node in &nodes {
            node.complete(&genesis)?;
        }
        Ok(Self { nodes, _folder: folder })
    }

    fn start(&mut self, at: usize) -> anyhow::Result<()> {
        let others = || self.nodes.iter().enumerate().filter(|(other, _)| *other != at);
        let peers: Vec<String> = others().map(|(_, node)| node.p2p.clone()).collect();
        let gossip: Vec<String> = others().map(|(_, node)| node.gossip.clone()).collect();
        self.nodes[at].start(&peers, &gossip)
    }

    fn key(&self, at: usize) -> String {
        self.nodes[at].public_key.clone().expect("a validator key")
    }

    /// These validators vote, each through its own node.
    fn vote(&self, voters: &[usize], candidate: usize, power: u64) -> anyhow::Result<()> {
        let (key, power) = (self.key(candidate), power.to_string());
        for voter in voters {
            cast(&self.nodes[*voter], &["validator-vote", &key, "--power", &power])?;
        }
        Ok(())
    }

    /// Waits until a node knows a set in which `at` is, or is not; answers the height that it asked
    /// for.
    fn wait_for_set(&self, of: usize, at: usize, is_in: bool) -> anyhow::Result<u64> {
        wait_for("the validators to change", || {
            let node = &self.nodes[of];
            let height = node.height()?;
            let is_there = keys(node, height)?.contains(&self.key(at));
            Ok((is_there == is_in).then_some(height))
        })
    }
}

/// Has the program make the genesis of a chain with these validators.
pub(crate) fn write_genesis(
    validators: &[HomeNode],
    options: &[&str],
    to: &Path,
) -> anyhow::Result<()> {
    let mut command = Command::new(binary());
    command.args(["genesis", "new", "--chain-id", "ombra-validators"]);
    command.args(["--param", "minBlockIntervalMs=50", "--param", "heartbeatMs=400"]).args(options);
    for key in validators.iter().filter_map(|node| node.public_key.as_ref()) {
        command.args(["--validator", &format!("{key}={POWER}")]);
    }
    printed(command.arg("--out").arg(to).output()?).map(drop)
}

/// The validators of a height.
fn validators(node: &HomeNode, height: u64) -> anyhow::Result<Vec<Value>> {
    let set = node.call("ombra_getValidators", &json!([height]))?;
    Ok(set.as_array().cloned().unwrap_or_default())
}

/// Their keys.
fn keys(node: &HomeNode, height: u64) -> anyhow::Result<Vec<String>> {
    let key = |member: Value| member["publicKey"].as_str().map(str::to_owned);
    Ok(validators(node, height)?.into_iter().filter_map(key).collect())
}

/// The address of the validator with this key.
fn address(node: &HomeNode, height: u64, key: &str) -> anyhow::Result<Value> {
    let members = validators(node, height)?;
    let member = members.iter().find(|member| member["publicKey"] == key);
    Ok(member.context("a validator of that height")?["address"].clone())
}

fn block(node: &HomeNode, height: u64) -> anyhow::Result<Value> {
    node.call("ombra_getBlock", &json!([height, false]))
}

#[test]
fn validators_take_one_in_and_remove_a_dead_one_while_it_is_down() -> anyhow::Result<()> {
    let mut town = Town::with(&[])?;
    for at in 0..=NEWCOMER {
        town.start(at)?;
    }
    town.nodes[NEWCOMER].reaches(2)?;
    let set = town.nodes[0].call("ombra_getValidators", &json!([]))?;
    assert_eq!(set[0]["votes"], json!([]));

    town.vote(&[0, 1, 2], NEWCOMER, POWER)?;
    let entered = town.wait_for_set(NEWCOMER, NEWCOMER, true)?;
    let newcomer = address(&town.nodes[0], entered, &town.key(NEWCOMER))?;
    let proposed = wait_for("a block of the newcomer", || {
        let height = town.nodes[0].height()?;
        let blocks = (entered..=height).map(|height| block(&town.nodes[0], height));
        let blocks: Vec<Value> = blocks.collect::<anyhow::Result<_>>()?;
        Ok(blocks.into_iter().find(|block| block["proposer"] == newcomer))
    })?;
    assert!(proposed["index"].as_u64() >= Some(entered));
    restarts_as_a_validator(&mut town, NEWCOMER)?;

    town.nodes[3].kill()?;
    town.vote(&[0, 1], 3, 0)?;
    // A vote in the state is there after a crash.
    town.nodes[1].kill()?;
    town.start(1)?;
    town.vote(&[2, NEWCOMER], 3, 0)?;
    let left = town.wait_for_set(0, 3, false)?;
    assert_eq!(keys(&town.nodes[0], left)?.len(), 4);

    // A node that was never there, and the one that was removed, sync across both changes.
    town.start(FOLLOWER)?;
    town.start(3)?;
    let height = town.nodes[0].height()?;
    for at in 0..6 {
        town.nodes[at].reaches(height + 2)?;
        assert_eq!(block(&town.nodes[at], height)?["hash"], block(&town.nodes[0], height)?["hash"]);
        assert_eq!(keys(&town.nodes[at], 1)?.len(), 4);
        assert!(!keys(&town.nodes[at], 1)?.contains(&town.key(NEWCOMER)));
        assert_eq!(keys(&town.nodes[at], left)?, keys(&town.nodes[0], left)?);
    }
    let log = town.nodes[FOLLOWER].logged()?;
    assert!(log.contains("caught up"), "it got the blocks in batches");
    assert!(log.contains("this home has no validator key: the node follows"), "{log}");

    for node in &mut town.nodes {
        node.kill()?;
    }
    // Every certificate is checked with the set of its height, and every row compared.
    for at in [0, FOLLOWER] {
        assert!(town.nodes[at].db("verify")?.contains("verified"));
    }
    assert!(town.nodes[0].db("rollback")?.contains("rolled back"));
    Ok(())
}

/// A node that was voted in says so when it starts again, and not before.
fn restarts_as_a_validator(town: &mut Town, at: usize) -> anyhow::Result<()> {
    let [outside, inside] = ["until the validators vote it in", "this node is a validator"];
    let before = town.nodes[at].logged()?;
    assert!(before.contains(outside) && !before.contains(inside), "{before}");
    assert!(before.contains(&town.key(at)), "the key to vote for: {before}");
    town.nodes[at].kill()?;
    town.start(at)?;
    let log = town.nodes[at].logged()?;
    let since = log.strip_prefix(&before).context("a log that grows")?;
    assert!(since.contains(inside) && !since.contains(outside), "{since}");
    town.nodes[at].keeps_up()
}

#[test]
fn from_v7_on_a_newcomer_gets_power_only_with_what_its_own_key_signed() -> anyhow::Result<()> {
    let mut town = Town::with(&["--v7", "0"])?;
    for at in 0..=NEWCOMER {
        town.start(at)?;
    }
    town.nodes[NEWCOMER].reaches(2)?;
    let refused = town.vote(&[0], NEWCOMER, POWER).expect_err("the newcomer has not agreed");
    assert!(refused.to_string().contains("ACCEPTANCE_INVALID"), "{refused}");

    let (acceptance, expires_at) = town.nodes[NEWCOMER].accept()?;
    let (key, ends) = (town.key(NEWCOMER), expires_at.to_string());
    for voter in 0..3 {
        let vote = ["validator-vote", &key, "--power", "10", "--acceptance", &acceptance];
        cast(&town.nodes[voter], &[&vote[..], &["--expires-at", &ends]].concat())?;
    }
    let entered = town.wait_for_set(NEWCOMER, NEWCOMER, true)?;
    town.nodes[NEWCOMER].reaches(entered + 2)
}

#[test]
fn from_v7_on_a_validator_that_signs_twice_loses_its_power_for_good() -> anyhow::Result<()> {
    const TWIN: usize = 3;
    let mut town = Town::with(&["--v7", "0"])?;
    let key = "keys/validator.key";
    let [one, other] = [TWIN, FOLLOWER].map(|at| town.nodes[at].home().join(key));
    std::fs::copy(one, other)?;
    for at in [0, 1, 2, TWIN, FOLLOWER] {
        town.start(at)?;
    }
    let known = town.wait_for_set(0, TWIN, false)?;
    // Some node that saw it has sent it, and two heights later the key is not in the set.
    let height = (1..=known).find_map(|height| evidence_in(&town.nodes[0], height).transpose());
    let (height, sender) = height.expect("a block with evidence")?;
    assert!(keys(&town.nodes[0], height + 1)?.contains(&town.key(TWIN)));
    let rest = keys(&town.nodes[0], height + 2)?;
    assert!(rest.len() == 3 && !rest.contains(&town.key(TWIN)), "{rest:?}");
    let mut members = validators(&town.nodes[0], height + 2)?.into_iter();
    assert!(members.any(|member| member["address"] == sender), "{sender} is honest");

    // It was sent once, the others go on, and nobody takes the key again.
    let refused = town.vote(&[0], TWIN, POWER).expect_err("the key is punished");
    assert!(refused.to_string().contains("ACCEPTANCE_INVALID"), "{refused}");
    for at in 0..3 {
        town.nodes[at].reaches(known + 4)?;
    }
    for later in height + 1..=known + 4 {
        assert_eq!(evidence_in(&town.nodes[0], later)?, None);
    }
    // Whoever asks any of them is told which key it was, and in which block the evidence stands.
    let key = town.key(TWIN);
    let address = address(&town.nodes[0], height + 1, &key)?;
    let punished = json!([{"publicKey": key, "address": address, "punishedAt": height}]);
    for node in &town.nodes[..3] {
        let listed = node.call("ombra_listPunishedKeys", &json!([]))?;
        assert_eq!((&listed["items"], &listed["nextCursor"]), (&punished, &Value::Null));
    }
    Ok(())
}

/// The height of a block with evidence, and who sent that; none for other blocks.
fn evidence_in(node: &HomeNode, height: u64) -> anyhow::Result<Option<(u64, String)>> {
    let block = node.call("ombra_getBlock", &json!([height, true]))?;
    let transactions = block["transactions"].as_array().into_iter().flatten();
    let senders = transactions.filter_map(|tx| {
        let is_evidence = tx["type"] == "EVIDENCE";
        is_evidence.then(|| tx["from"].as_str().unwrap_or_default().to_owned())
    });
    let senders: Vec<String> = senders.collect();
    anyhow::ensure!(senders.len() <= 1, "evidence against one key was taken twice: {block}");
    Ok(senders.into_iter().next().map(|sender| (height, sender)))
}
