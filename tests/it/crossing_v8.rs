//! A running chain of v7 that comes to the rules of fork v8, the agent market, by the votes of its
//! validators.

use anyhow::ensure;
use fixtures::{MANIFEST, judge_of};
use serde_json::json;
use testkit::actor::Actor;
use testkit::harness::load::Load;
use testkit::market::Market;
use testkit::miners::text;
use testkit::net::Net;
use testkit::node::wait_until;
use testkit::workload::key;
use types::Address;

use crate::forks::{
    AHEAD, BEYOND, EARLY, LATE, WHOLE, begins_with_snapshot, cast, ends_well, forks,
    has_crossed_to, height_of, is_ready_for, net_with, snapshots, stopped_and_verified,
};
use crate::support::{MIN_BOND, earliest};

/// Three of four validators vote for a height; all nodes that run say so.
fn vote_for_v8(net: &Net) -> anyhow::Result<u64> {
    let height = net.members[0].height()? + AHEAD;
    for member in &net.members[..2] {
        cast(member, &["fork-vote", "v8", &height.to_string()])?;
    }
    ensure!(height_of("v8", &net.members[0])?.is_none(), "two of four");
    cast(&net.members[2], &["fork-vote", "v8", &height.to_string()])?;
    for member in net.running() {
        wait_until(&format!("the fixed height on {}", member.name), || {
            Ok(height_of("v8", member)? == Some(height))
        })?;
        is_ready_for("v8", height, member)?;
        ensure!(member.metric("ombra_unknown_fork_height")? == 0, "{}", member.name);
    }
    Ok(height)
}

/// Every node that runs has the agent and its owner's offer.
fn is_known(net: &Net, owner: Address) -> anyhow::Result<()> {
    for member in net.running() {
        let known = member.call("ombra_getAgent", &json!([judge_of(owner)]))?;
        ensure!(known["name"] == "judge", "{}: {known}", member.name);
        let offers = member.call("ombra_listOffers", &json!([{ "miner": owner }]))?;
        ensure!(offers["items"].as_array().is_some_and(|it| it.len() == 1), "{offers}");
    }
    Ok(())
}

#[test]
fn a_running_chain_crosses_to_v8_under_load_by_the_votes_of_its_validators() -> anyhow::Result<()> {
    let mut net = net_with(Some(0), 3)?;
    let height = vote_for_v8(&net)?;
    let mut author = Actor::new(key(9)?);
    let info = net.members[0].call("ombra_chainInfo", &json!([]))?;
    let market = Market::new(text(&info, "chainId"), &author, MANIFEST);
    let early = market.publish(&mut author.clone());
    let refused = net.members[0].send(&early).expect_err("there is no market yet");
    ensure!(refused.to_string().contains("FORK_NOT_ACTIVE"), "{refused:#}");

    let voted = net.members[0].height()?;
    net.members[0].reaches(voted + 22)?;
    begins_with_snapshot(&mut net.members[EARLY])?;
    ensure!(height_of("v8", &net.members[EARLY])? == Some(height), "the state says it");
    ensure!(forks(&net.members[EARLY])?.get("missing").is_none(), "no earlier vote matters to it");
    ensure!(net.members[0].height()? + 20 < height, "this machine is too busy");
    let load = Load::start(&net, &[0, 1], 4, std::time::Duration::from_millis(20))?;
    load.confirms(5)?;
    for goal in (0..height - 8).step_by(10) {
        net.members[0].reaches(goal)?;
    }
    net.members[3].kill()?;
    net.members[0].reaches(height + BEYOND)?;
    net.members[3].start_with(&snapshots())?;
    load.confirms(20)?;
    net.same_block(height + BEYOND)?;

    let published = market.publish(&mut author);
    for text in [vec![published], market.join(&mut author, MIN_BOND, 1).to_vec()].concat() {
        net.members[0].includes(&net.members[0].send(&text)?)?;
    }
    net.members[WHOLE].start()?;
    let tip = net.members[0].height()?;
    net.members[WHOLE].reaches(tip)?;
    ensure!(earliest(&net.members[WHOLE])? == 1);
    net.members[0].reaches(tip.max(height + 2 * BEYOND) + 11)?;
    begins_with_snapshot(&mut net.members[LATE])?;
    for member in net.running() {
        has_crossed_to("v8", height, member)?;
    }
    is_known(&net, author.address())?;
    ends_well(load, &net)?;
    stopped_and_verified(&mut net)
}
