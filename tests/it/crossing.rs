//! A running chain that comes to the rules of fork v7 by the votes of its validators.

use std::time::Instant;

use anyhow::{Context, ensure};
use fixtures::bond;
use genesis::Genesis;
use node::replay::ChainReplay;
use serde_json::{Value, json};
use store::snapshots::{Intake, Offer, SnapshotStore, import};
use store::{Options, Store};
use testkit::actor::Actor;
use testkit::harness::load::Load;
use testkit::net::{Member, Net};
use testkit::node::wait_until;
use testkit::workload::key;

use crate::forks::{
    AHEAD, BEYOND, EARLY, LATE, VALIDATORS, WHOLE, begins_with_snapshot, cast, ends_well, fixes,
    forks, has_base_fee, has_crossed_to, height_of, is_ready_for, net_with, shown, snapshots,
    stopped_and_verified, votes,
};
use crate::support::earliest;

/// Blocks from the votes to the height where little happens between them.
const NEAR: u64 = 60;

fn fees(member: &Member) -> anyhow::Result<Value> {
    member.call("ombra_feeSchedule", &json!([]))
}

/// Three of four validators vote for a height that is so far ahead; all nodes that run come to the same,
/// and say so.
fn vote_for_v7(net: &Net, ahead: u64) -> anyhow::Result<u64> {
    let height = net.members[0].height()? + ahead;
    for member in &net.members[..2] {
        votes(member, height)?;
    }
    ensure!(forks(&net.members[0])?["forks"][0].get("fixed").is_none(), "two of four");
    ensure!(height_of("v7", &net.members[0])?.is_none());
    votes(&net.members[2], height)?;
    for member in &net.members[..VALIDATORS] {
        fixes(member, height)?;
        is_ready_for("v7", height, member)?;
        let left = member.metric("ombra_fork_blocks_left")?;
        ensure!(left > 0 && left <= ahead, "{left} blocks left");
    }
    let told = shown(&net.members[0])?;
    ensure!(told.contains(&format!("v7 begins with block {height}, ")), "{told}");
    ensure!(told.contains(" from now: in about "), "{told}");
    // What is fixed stays, whatever is voted now.
    votes(&net.members[3], height + 9)?;
    ensure!(forks(&net.members[0])?["forks"][0]["fixed"]["height"] == height);
    ensure!(fees(&net.members[0])?.get("baseFee").is_none());
    Ok(height)
}

/// What holds only under the rules of v7: a base fee, bonds, votes on parameters and on later forks.
fn has_the_rules_of_v7(net: &Net) -> anyhow::Result<()> {
    let node = &net.members[0];
    let told = fees(node)?;
    ensure!(told["baseFee"] == "10", "{told}");
    let mut miner = Actor::new(key(9)?);
    node.includes(&node.send(&miner.sign(&bond(100_000)))?)?;
    let stake = node.call("ombra_getBond", &json!([miner.address().to_string()]))?;
    ensure!(stake["bonded"] == "100000", "{stake}");
    let at = node.height()? + 40;
    for member in &net.members[..3] {
        cast(member, &["param-vote", "baseFeeFloor", "70", &at.to_string()])?;
    }
    cast(node, &["fork-vote", "v8", &(at + 1_000).to_string(), "--for-another-program"])?;
    let counted = forks(node)?;
    let later = counted["forks"].as_array().and_then(|all| all.last()).context("a fork")?;
    ensure!(later["fork"] == "v8", "{counted}");
    net.running().try_for_each(|member| has_base_fee(member, "70"))
}

/// The blocks of one node make the same database of another one.
fn moves_by_file(net: &Net) -> anyhow::Result<()> {
    let file = net.members[WHOLE].home().join("blocks.ombra");
    let path = file.to_str().context("a path in UTF-8")?.to_owned();
    net.members[WHOLE].tell(&["db", "export", &path])?;
    let empty = &net.members[LATE];
    std::fs::remove_dir_all(empty.home().join("data/db"))?;
    empty.tell(&["db", "import", &path])?;
    let said = empty.db("verify")?;
    ensure!(said.contains("verified"), "{said}");
    let said = net.members[0].db("rollback")?;
    ensure!(!said.is_empty());
    ensure!(net.members[0].db("verify")?.contains("verified"));
    Ok(())
}

#[test]
fn a_running_chain_crosses_to_v7_under_load_by_the_votes_of_its_validators() -> anyhow::Result<()> {
    let mut net = net_with(None, 3)?;
    let height = vote_for_v7(&net, AHEAD)?;
    // One that has not the blocks with the votes comes to the same. Two snapshots are made after them.
    let voted = net.members[0].height()?;
    net.members[0].reaches(voted + 22)?;
    begins_with_snapshot(&mut net.members[EARLY])?;
    wait_until("the count of the one that begins early", || {
        Ok(forks(&net.members[EARLY])? == forks(&net.members[0])?)
    })?;
    ensure!(net.members[0].height()? + 40 < height, "this machine is too busy");
    let load = Load::start(&net, &[0, 1], 4, std::time::Duration::from_millis(20))?;
    load.confirms(5)?;
    // One is restarted before the fork, and one is not there when it comes.
    for goal in (0..height - 25).step_by(10) {
        net.members[0].reaches(goal)?;
    }
    net.members[2].stop()?;
    net.members[2].start_with(&snapshots())?;
    net.members[0].reaches(height - 8)?;
    net.members[3].kill()?;
    net.members[0].reaches(height + BEYOND)?;
    net.members[3].start_with(&snapshots())?;
    load.confirms(20)?;
    net.same_block(height + BEYOND)?;

    net.members[WHOLE].start()?;
    net.members[WHOLE].reaches(height + BEYOND)?;
    ensure!(earliest(&net.members[WHOLE])? == 1);
    net.members[0].reaches(height + 3 * BEYOND)?;
    begins_with_snapshot(&mut net.members[LATE])?;
    let begun = earliest(&net.members[LATE])?;
    ensure!(begun > height, "it begins with block {begun}");
    ensure!(forks(&net.members[LATE])?.get("missing").is_none(), "no earlier vote matters to it");
    for member in net.running() {
        has_crossed_to("v7", height, member)?;
        let none = member.metric("ombra_fork_blocks_left").expect_err("no other fork is fixed");
        ensure!(none.to_string().contains("has no metric"), "{none:#}");
    }
    has_the_rules_of_v7(&net)?;
    ends_well(load, &net)?;
    stopped_and_verified(&mut net)?;
    moves_by_file(&net)
}

#[test]
fn validators_that_are_killed_around_the_height_go_on_to_one_chain() -> anyhow::Result<()> {
    let mut net = net_with(None, 0)?;
    let height = vote_for_v7(&net, NEAR)?;
    // The block before the height is the last one that they have, then the first one of v7 is.
    for last in [height - 1, height] {
        net.members[0].reaches(last)?;
        net.members.iter_mut().try_for_each(Member::kill)?;
        for member in &mut net.members {
            member.start_with(&snapshots())?;
        }
    }
    net.members[0].reaches(height + BEYOND)?;
    for around in height - 2..=height + 2 {
        net.same_block(around)?;
    }
    for member in net.running() {
        ensure!(height_of("v7", member)? == Some(height), "{}", member.name);
    }
    ensure!(fees(&net.members[0])?["baseFee"] == "10");
    stopped_and_verified(&mut net)
}

/// Makes the database of a node out of the newest snapshot of another one, as if it had fetched it.
/// Neither runs. Answers the height of the snapshot.
fn takes_snapshot(from: &Member, to: &Member) -> anyhow::Result<u64> {
    let genesis = std::fs::read(from.home().join("genesis.json"))?;
    let genesis = Genesis::parse(&genesis).map_err(|faults| anyhow::anyhow!("{faults}"))?;
    let replay = ChainReplay::new(&genesis)?;
    let store = Store::open(&from.home().join("data/db"), Options::default())?;
    let snapshot_store = SnapshotStore::open(&from.home().join("data/snapshots"), 4, &store)?;
    let head = *snapshot_store.offers().first().context("an offer")?;
    let piece = |hash| snapshot_store.piece(&hash, 0, usize::MAX)?.context("a piece");
    let verified = Offer::decode(&piece(head.hash)?)?.verify(&replay.replay())?;
    let intake = Intake::open(&to.home().join("data/snapshot-intake"), &verified.offer.manifest)?;
    for want in intake.missing() {
        intake.keep(&want, &piece(want.hash)?)?;
    }
    let place = to.home().join("data/db");
    let place = (place.as_path(), Options::default());
    import(&intake, &verified, &replay.replay(), place, &mut |_, _| true)?;
    Ok(head.height)
}

#[test]
fn a_node_without_the_votes_waits_before_the_height_and_goes_on_when_somebody_has_them()
-> anyhow::Result<()> {
    let mut net = net_with(None, 2)?;
    let (source, waiting) = (VALIDATORS, VALIDATORS + 1);
    net.members[source].start_with(&snapshots())?;
    let height = vote_for_v7(&net, NEAR + 40)?;
    let voted = net.members[source].height()?;
    net.members[source].reaches(voted + 22)?;
    net.members[source].stop()?;
    let began = takes_snapshot(&net.members[source], &net.members[waiting])?;
    ensure!(began >= voted && began < height, "a snapshot of block {began}");
    // It knows the peers of consensus, and none that would give it the blocks with the votes.
    let alone = [
        ("OMBRA__P2P__GOSSIP__PEERS", "[]".to_owned()),
        ("OMBRA__P2P__GOSSIP__LISTEN", "/ip4/127.0.0.1/tcp/0".to_owned()),
    ];
    net.members[waiting].start_with(&alone)?;
    net.members[waiting].reaches(height - 1)?;
    let since = Instant::now();
    net.members[0].reaches(height + BEYOND)?;
    let waits = &net.members[waiting];
    ensure!(waits.height()? == height - 1);
    // It does not ask its peers for the block without end.
    let refused = waits.logged()?.matches("Invalid certificate received").count();
    ensure!(refused < 10 + 4 * usize::try_from(since.elapsed().as_secs())?, "{refused} times");
    ensure!(forks(waits)?["missing"] == json!({ "from": 1, "to": began }), "{}", forks(waits)?);
    ensure!(height_of("v7", waits)?.is_none());
    let said = waits.check("forks")?;
    let detail = said["detail"].as_str().unwrap_or_default();
    let expected = format!("the votes in the blocks 1 to {began} are not counted yet");
    ensure!(said["ok"] == false && detail.ends_with(&expected), "{said}");
    // Now somebody has them.
    waits.add_gossip_peer(&net.members[0])?;
    fixes(waits, height)?;
    let tip = net.members[0].height()?;
    waits.reaches(tip)?;
    net.same_block(height)?;
    net.same_block(tip)?;
    let said = net.members[waiting].check("forks")?;
    ensure!(said["ok"] == true, "{said}");
    net.members[waiting].stop()?;
    net.members[waiting].db("verify").map(drop)
}
