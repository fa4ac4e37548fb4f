//! Two validators have signed a history of which nobody knows. In the history that everybody has, one of
//! them was voted out, as validators are that retire. All certificates of both histories are good, and
//! the two peers that a node names when it begins have the hidden one.
//!
//! Two voices that agree are no help against that: `sync.trusted` is. The node ends when it meets
//! another block at the trusted height, takes nothing after it, and with honest peers takes the chain.

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::harness::{Town, User};
use testkit::node::wait_until;
use testkit::suite::say;
use testkit::workload::key;

use super::{give_history, peers};

const VALIDATOR: usize = 0;
const RETIRED: usize = 1;
const FOLLOWER: usize = 2;
const LIARS: [usize; 2] = [3, 4];
const NEWCOMER: usize = 5;
/// The blocks of the hidden history.
const BLOCKS: u64 = 60;
/// The program's exit code for a chain that is not the one that its operator trusts.
const OTHER_CHAIN: i32 = 5;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::make_with(2, 4, &["minBlockIntervalMs=50", "heartbeatMs=50"])?;
    make_hidden_history(&mut town)?;
    let trusted = make_history(&mut town)?;
    let hash = town.node(VALIDATOR)?.block_hash(trusted)?;
    let user = User::start(town.node(VALIDATOR)?.rpc, key(0)?);

    let trust = [
        ("OMBRA__SYNC__TRUSTED__HEIGHT", trusted.to_string()),
        ("OMBRA__SYNC__TRUSTED__HASH", hash),
    ];
    let named = |town: &Town, nodes: &[usize]| -> anyhow::Result<Vec<(&str, String)>> {
        Ok([&trust[..], &[peers(town, nodes)?]].concat())
    };
    let (settings, nobody) = (named(&town, &LIARS)?, [peers(&town, &[])?]);
    let newcomer = town.node_mut(NEWCOMER)?;
    newcomer.launch(&settings)?;
    let ended = newcomer.ended()?.code();
    ensure!(ended == Some(OTHER_CHAIN), "the node has ended with {ended:?}");
    newcomer.start_with(&nobody)?;
    let taken = newcomer.height()?;
    newcomer.kill()?;
    ensure!(taken < trusted, "the node has {taken} blocks of the hidden history");

    // What it has of that history goes.
    std::fs::remove_dir_all(newcomer.home().join("data"))?;
    let settings = named(&town, &[LIARS[0], VALIDATOR, FOLLOWER])?;
    town.node_mut(NEWCOMER)?.start_with(&settings)?;
    let height = town.height(&[VALIDATOR])?;
    town.node(NEWCOMER)?.reaches(height)?;
    let [honest, own] = [VALIDATOR, NEWCOMER].map(|at| town.node(at)?.block_hash(height));
    ensure!(honest? == own?, "the node has taken the hidden history");
    say(&format!(
        "   with two liars the node ended before block {trusted}, which it trusts; with one and two honest peers it has the chain"
    ));
    let seen = user.tell("while a node begins among keys that were retired")?;
    seen.is_served()
}

/// Has both validators sign a history and gives it to the liars.
fn make_hidden_history(town: &mut Town) -> anyhow::Result<()> {
    let nobody = [peers(town, &[])?];
    for at in [VALIDATOR, RETIRED] {
        town.node_mut(at)?.start_with(&nobody)?;
    }
    for at in [VALIDATOR, RETIRED] {
        town.node(at)?.reaches(BLOCKS)?;
    }
    for at in [VALIDATOR, RETIRED] {
        town.node_mut(at)?.stop()?;
    }
    for (at, liar) in [VALIDATOR, RETIRED].into_iter().zip(LIARS) {
        give_history(town, at, liar)?;
    }
    Ok(())
}

/// Has both validators begin again and vote one of them out. Answers a height after that.
fn make_history(town: &mut Town) -> anyhow::Result<u64> {
    let nobody = [peers(town, &[])?];
    for at in [VALIDATOR, RETIRED] {
        town.node_mut(at)?.start_with(&nobody)?;
    }
    let alone = [peers(town, &[VALIDATOR])?];
    town.node_mut(FOLLOWER)?.start_with(&alone)?;
    let retired = town.node(RETIRED)?.validator_key()?.public_key();
    for at in [VALIDATOR, RETIRED] {
        let key = town.node(at)?.validator_key()?;
        let vote = json!({
            "from": key.address(), "publicKey": key.public_key(),
            "candidateKey": retired, "power": 0,
        });
        let node = town.node(VALIDATOR)?;
        let built = node.call("ombra_buildValidatorVote", &vote)?;
        let message = built["signingMessage"].as_str().context("what to sign")?;
        let signature = key.sign(message.as_bytes()).to_string();
        node.call("ombra_sendSigned", &json!([{ "tx": built["tx"], "signature": signature }]))?;
    }
    let node = town.node(VALIDATOR)?;
    wait_until("one validator to be voted out", || {
        let set = node.call("ombra_getValidators", &json!([]))?;
        Ok(set.as_array().map(Vec::len) == Some(1))
    })?;
    let trusted = node.height()?;
    town.node(FOLLOWER)?.reaches(trusted)?;
    let hidden = town.node(LIARS[0])?;
    ensure!(hidden.height()? >= trusted, "the hidden history ends before block {trusted}");
    ensure!(hidden.block_hash(trusted)? != node.block_hash(trusted)?, "it is the same history");
    Ok(trusted)
}
