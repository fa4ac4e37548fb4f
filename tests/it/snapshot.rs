//! A node that begins with a snapshot of a chain on which much is open, and lives on from there.

mod liars;

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};
use testkit::actor::{
    self, Actor, blob_chunk, blob_finalize, blob_init, people, register_miner, transfer, turn,
};
use testkit::http::Connection;
use testkit::net::{Member, Net};
use testkit::node::{wait_for, wait_until};
use testkit::workload::key;
use types::tx::ChatTurn;
use types::{Body, Hash};

use crate::forks::cast;
use crate::support::{chain, earliest};

/// Of which heights the nodes of these tests offer snapshots.
const INTERVAL: u64 = 20;
const VALIDATORS: usize = 3;
const FOLLOWER: usize = 3;
/// Bytes of a blob of two chunks.
const BLOB_BYTES: usize = 400_010;

/// The setting of how often a node makes a snapshot, and the one that has it begin with a snapshot.
const EVERY: &str = "snapshots.interval_blocks";
const FETCH: &str = "snapshots.fetch";

/// A testnet whose validators can change, and which makes snapshots often. Only the validators run.
fn net() -> anyhow::Result<Net> {
    let params = ["minBlockIntervalMs=50", "heartbeatMs=200", "pendingTtlMs=12000"];
    let mut net = Net::make_as(&chain(VALIDATORS, 1, &params))?;
    for member in &net.members {
        member.configure(EVERY, &INTERVAL.to_string())?;
    }
    net.members[FOLLOWER].configure(FETCH, "true")?;
    net.members[..VALIDATORS].iter_mut().try_for_each(Member::start)?;
    Ok(net)
}

/// All validators vote for another power of the last one.
fn change_validators(net: &Net) -> anyhow::Result<()> {
    let set = net.members[0].call("ombra_getValidators", &json!([]))?;
    let key = set[VALIDATORS - 1]["publicKey"].as_str().context("a key")?.to_owned();
    for member in &net.members[..VALIDATORS] {
        cast(member, &["validator-vote", &key, "--power", "2"])?;
    }
    wait_until("the new power", || {
        let set = net.members[0].call("ombra_getValidators", &json!([]))?;
        let powers = set.as_array().into_iter().flatten();
        Ok(powers.clone().any(|member| member["power"] == 2))
    })
}

/// What is open when the snapshot is made.
struct Open {
    miner: Actor,
    /// A run with a step.
    run: Hash,
    turn: String,
    blob: Vec<u8>,
}

/// Makes history, and leaves a run, a request, a blob and a conversation open.
fn story(node: &Member) -> anyhow::Result<Open> {
    let [mut user, mut miner] = people()?;
    let blob = vec![7; BLOB_BYTES];
    let mut texts =
        vec![user.sign(&transfer(miner.address(), 5)), miner.sign(&register_miner("m"))];
    let request = user.request("a question", 100_000, 20);
    let run = request.agent_run_id;
    texts.push(user.sign(&Body::AgentRequest(request)));
    texts.push(miner.sign(&Body::AgentClaim(miner.claim(run))));
    texts.push(miner.sign(&actor::step(run, 0, 500)));
    texts.push(user.sign(&Body::AgentRequest(user.request("nobody answers", 100_000, 20))));
    texts.push(user.sign(&blob_init("half", &blob).into()));
    texts.push(user.sign(&blob_chunk("half", 0, &blob[..400_000])));
    let mut last = String::new();
    for text in texts {
        last = node.send(&text)?;
    }
    node.includes(&last)?;
    let turn = node.send(&miner.sign(&Body::ChatTurn(turn("hello"))))?;
    node.includes(&turn)?;
    Ok(Open { miner, run, turn, blob })
}

/// The validators of a height: key and power.
fn powers(node: &Member, height: u64) -> anyhow::Result<Vec<(Value, Value)>> {
    let set = node.call("ombra_getValidators", &json!([height]))?;
    let members = set.as_array().into_iter().flatten();
    Ok(members.map(|it| (it["publicKey"].clone(), it["power"].clone())).collect())
}

fn folders(path: &Path) -> anyhow::Result<Vec<u64>> {
    let names = std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name()));
    let names: Vec<_> = names.collect::<anyhow::Result<_>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// Finishes through the follower what was open, and answers the last height that it concerns.
fn finish(follower: &Member, open: Open) -> anyhow::Result<u64> {
    let Open { mut miner, run, turn: parent, blob } = open;
    let settled = follower.call("ombra_settlement", &json!([run]))?;
    let amount = |name: &str| -> anyhow::Result<u64> {
        let text = settled[name].as_str().context("an amount")?;
        Ok(text.parse()?)
    };
    let parts = [amount("minerReward")?, amount("userRefund")?, amount("networkFee")?];
    let reply = ChatTurn { parent_turn_hash: Some(Hash::parse(&parent)?), ..turn("an answer") };
    let end = actor::finish(run, 500, parts);
    for body in [Body::ChatTurn(reply), Body::AgentFinish(end)] {
        follower.includes(&follower.send(&miner.sign(&body))?)?;
    }
    let user = Actor::new(key(0)?);
    let account = follower.call("ombra_getAccount", &json!([user.address()]))?;
    let mut user = user.at(account["nonce"].as_u64().context("a nonce")?);
    for body in [blob_chunk("half", 1, &blob[400_000..]), blob_finalize("half")] {
        follower.includes(&follower.send(&user.sign(&body))?)?;
    }
    assert_eq!(follower.call("ombra_getBlob", &json!(["half"]))?["final"], true);
    // The request that nobody claimed runs out, and no escrow is left.
    wait_until("the deadline of the open request", || {
        let supply = follower.call("ombra_getSupply", &json!([]))?;
        Ok(supply["escrowed"] == "0")
    })?;
    follower.height()
}

#[test]
fn a_follower_that_begins_with_a_snapshot_finishes_what_was_open_and_serves_in_turn()
-> anyhow::Result<()> {
    let mut net = net()?;
    change_validators(&net)?;
    let open = story(&net.members[0])?;
    let told = net.members[0].height()?;
    let height = told.next_multiple_of(INTERVAL);
    net.members[0].reaches(height + 1)?;
    wait_until("the snapshot", || {
        let made = net.members[0].home().join(format!("data/snapshots/{height}/offer"));
        Ok(made.exists())
    })?;

    net.members[FOLLOWER].start()?;
    let follower = &net.members[FOLLOWER];
    let earliest = earliest(follower)?;
    assert!(earliest > height, "{earliest}, {}", follower.logged()?);
    assert_eq!(earliest % INTERVAL, 1);
    let old = open.run;
    for (method, params) in [
        ("ombra_getBlock", json!([1])),
        ("ombra_getAgentRun", json!([old])),
        ("ombra_getAgentSteps", json!([old])),
        ("ombra_getTransaction", json!([open.turn])),
        ("ombra_getAccountTransactions", json!([open.miner.address()])),
        ("ombra_getConversation", json!([actor::conversation()])),
    ] {
        let error = Connection::open(follower.rpc)?.rejection(method, &params)?;
        assert_eq!(error["code"], -32052, "{method}: {error}");
        assert_eq!(error["data"]["code"], "HISTORY_UNAVAILABLE", "{method}");
        assert_eq!(error["data"]["earliestBlock"], earliest, "{method}");
    }
    for height in [1, earliest] {
        assert_eq!(powers(follower, height)?, powers(&net.members[0], height)?);
    }

    // It may have begun some blocks behind.
    wait_until("the follower to have caught up", || {
        let info = follower.call("ombra_chainInfo", &json!([]))?;
        Ok(info["syncing"] == false)
    })?;
    let last = finish(follower, open)?;
    net.same_block(last + 2)?;
    let own = follower.home().join("data/snapshots");
    follower.reaches(last.next_multiple_of(INTERVAL) + 1)?;
    wait_for("a snapshot of the follower", || {
        Ok(folders(&own)?.pop().filter(|at| *at > earliest))
    })?;

    net.members[FOLLOWER].stop()?;
    let said = net.members[FOLLOWER].db("verify")?;
    assert!(said.contains(&format!("its first block is {earliest}")), "{said}");
    // It goes on where it was.
    net.members[FOLLOWER].start()?;
    net.same_block(last + 10)?;
    Ok(())
}

#[test]
fn a_node_begins_with_a_snapshot_though_each_soon_gives_way_to_a_newer_one() -> anyhow::Result<()> {
    let params = ["minBlockIntervalMs=50", "heartbeatMs=200"];
    let mut net = Net::make_as(&chain(VALIDATORS, 1, &params))?;
    // Ten blocks take less time than a newcomer looks for more peers.
    let one = [
        ("OMBRA__SNAPSHOTS__INTERVAL_BLOCKS", "10".to_owned()),
        ("OMBRA__SNAPSHOTS__KEEP", "1".to_owned()),
        ("OMBRA__SNAPSHOTS__FETCH", "true".to_owned()),
    ];
    for member in net.members.iter_mut().take(VALIDATORS) {
        member.start_with(&one[..2])?;
    }
    net.members[0].reaches(22)?;
    let follower = &mut net.members[FOLLOWER];
    follower.start_with(&one)?;
    assert!(earliest(follower)? > 1, "{}", follower.logged()?);
    Ok(())
}

#[test]
fn without_an_offer_a_node_begins_with_genesis() -> anyhow::Result<()> {
    let mut net = Net::make(1, 1)?;
    net.members[1].configure(FETCH, "true")?;
    net.members[0].configure(EVERY, "0")?;
    net.members[0].start()?;
    net.members[0].reaches(2)?;
    net.members[1].start()?;
    net.same_block(2)?;
    assert_eq!(earliest(&net.members[1])?, 1);
    assert!(net.members[1].logged()?.contains("no peer offers a snapshot"));
    Ok(())
}
