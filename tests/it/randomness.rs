//! Randomness in the headers of a chain of processes: whoever knows the validators' keys can check it,
//! and a node that comes later has checked it.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::net::{Member, Net, NetOptions};
use types::randomness::Input;
use types::{Hash, Keypair};

use crate::support::chain;

const VALIDATORS: usize = 4;
const LATECOMER: usize = 4;
/// The first block with randomness.
const V7: u64 = 4;
const LAST: u64 = 24;

/// Checks a block as somebody would who has nothing but the keys of the validators; answers its
/// randomness.
fn check(block: &Value, keys: &[Keypair], previous: Hash) -> anyhow::Result<Hash> {
    let text =
        |member: &str| block[member].as_str().with_context(|| format!("no {member}: {block}"));
    let key = keys.iter().find(|key| block["proposer"] == json!(key.address()));
    let key = key.context("the proposer is no validator")?.public_key();
    let height = block["index"].as_u64().context("no index")?;
    let input = Input { chain_id: text("chainId")?, previous, height };
    let proof = text("randomnessProof")?.parse()?;
    let proved = input.verify(&key, &proof).context("the proof proves nothing")?;
    ensure!(text("randomness")? == proved.to_string(), "the proof proves {proved}: {block}");
    Ok(proved)
}

fn block(member: &Member, height: u64) -> anyhow::Result<Value> {
    member.call("ombra_getBlock", &json!([height, false]))
}

#[test]
fn every_block_from_v7_on_proves_its_randomness_and_a_later_node_has_checked_it()
-> anyhow::Result<()> {
    let options = chain(VALIDATORS, 1, &["minBlockIntervalMs=50", "heartbeatMs=150"]);
    let mut net = Net::make_as(&NetOptions { v7: Some(V7), ..options })?;
    net.members[..VALIDATORS].iter_mut().try_for_each(Member::start)?;
    net.members[0].reaches(LAST)?;
    let keys: Vec<Keypair> =
        net.members[..VALIDATORS].iter().map(Member::validator_key).collect::<Result<_, _>>()?;
    let info = net.members[0].call("ombra_chainInfo", &json!([]))?;
    let genesis = info["genesisHash"].as_str().context("no genesis hash")?;
    let mut previous = Hash::parse(genesis)?;
    let mut proposers = BTreeSet::new();
    for height in 1..=LAST {
        let block = block(&net.members[0], height)?;
        if height < V7 {
            assert_eq!(None, block.get("randomness").or_else(|| block.get("randomnessProof")));
        } else {
            previous = check(&block, &keys, previous)?;
            proposers.insert(block["proposer"].to_string());
        }
    }
    assert_eq!(VALIDATORS, proposers.len(), "everybody had a turn");

    net.members[LATECOMER].start()?;
    net.same_block(LAST)?;
    let latecomer = &mut net.members[LATECOMER];
    assert_eq!(json!(previous), block(latecomer, LAST)?["randomness"]);
    latecomer.stop()?;
    latecomer.db("verify").map(drop)
}
