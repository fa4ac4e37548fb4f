//! A validator that has taken blocks back, on a chain of processes.

use anyhow::Context as _;
use serde_json::json;
use testkit::net::{Member, Net};
use testkit::node::wait_until;

use crate::support::{chain, logs};

/// Slow enough that a node that was taken back for a moment is not far behind.
const PARAMS: [&str; 2] = ["minBlockIntervalMs=50", "heartbeatMs=2500"];

fn start(validators: usize) -> anyhow::Result<Net> {
    Net::start_as(&chain(validators, 0, &PARAMS))
}

/// Takes blocks of a stopped validator back until this is the last one, if one is named, and at least
/// one; answers the last block then.
fn takes_back(member: &Member, goal: Option<u64>) -> anyhow::Result<(u64, String)> {
    loop {
        let said = member.db("rollback")?;
        std::fs::remove_dir_all(member.home().join("data/db.before-rollback"))?;
        let (_, named) = said.split_once("up to block ").context("it names the block")?;
        let mut named = named.split([' ', ',']).map(str::to_owned);
        let height: u64 = named.next().context("a height")?.parse()?;
        if goal.is_none_or(|goal| height <= goal) {
            return Ok((height, named.next().context("a hash")?));
        }
    }
}

#[test]
fn a_validator_that_took_a_block_back_follows_and_then_signs_by_itself() -> anyhow::Result<()> {
    let mut net = start(4)?;
    net.members[0].reaches(3)?;
    net.members[0].stop()?;
    net.members[0].db("rollback")?;
    net.members[0].start()?;
    logs(&net.members[0], "from now on the node signs again")?;
    assert!(net.members[0].logged()?.contains("the node follows without signing"));
    wait_until("its votes", || {
        let signed = net.members[0].metric("ombra_consensus_votes_signed_total")?;
        Ok(signed > 0)
    })?;
    // Its vote is needed now.
    net.members[1].stop()?;
    let height = net.members[0].height()?;
    net.same_block(height + 2)?;
    for member in net.running() {
        let set = member.call("ombra_getValidators", &json!([]))?;
        let seen = set.as_array().context("a list of validators")?;
        let pairs: Vec<_> = seen.iter().map(|it| it["equivocations"].as_u64()).collect();
        assert_eq!([Some(0); 4], *pairs, "{set}");
    }
    assert_eq!(net.members[0].metric("ombra_consensus_sign_refusals_total")?, 0);
    Ok(())
}

#[test]
fn no_block_is_taken_back_silently_where_the_others_cannot_decide_without_the_validator()
-> anyhow::Result<()> {
    let mut net = start(3)?;
    net.members[0].reaches(3)?;
    net.members[0].stop()?;
    let refused = net.members[0].db("rollback").expect_err("the chain could stand");
    assert!(refused.to_string().contains("--may-stop-chain"), "{refused}");
    let said = net.members[0].tell(&["db", "rollback", "--may-stop-chain"])?;
    assert!(said.contains("it follows without signing until the others"), "{said}");
    Ok(())
}

#[test]
fn validators_that_have_all_forgotten_go_on_when_their_operators_agree() -> anyhow::Result<()> {
    let mut net = start(4)?;
    net.running().try_for_each(|member| member.reaches(3))?;
    net.members.iter_mut().try_for_each(Member::stop)?;
    let mut tips: Vec<(u64, String)> =
        net.members.iter().map(|it| takes_back(it, None)).collect::<anyhow::Result<_>>()?;
    let (lowest, hash) = tips.iter().min().cloned().context("a validator")?;
    for (member, tip) in net.members.iter().zip(&mut tips) {
        if tip.0 > lowest {
            *tip = takes_back(member, Some(lowest))?;
        }
        assert_eq!((lowest, &hash), (tip.0, &tip.1), "{}", member.name);
    }
    for member in &mut net.members {
        member.start_with(&[("OMBRA__SYNC__WAIT_MS", "0".to_owned())])?;
    }
    net.running().try_for_each(|member| logs(member, "the node follows without signing"))?;
    net.members.iter_mut().try_for_each(Member::stop)?;

    let (height, flag) = (lowest.to_string(), "--all-validators-agreed");
    let again = ["db", "sign-again", "--height", &height, "--hash", &hash];
    let refused = net.members[0].tell(&again).expect_err("nobody said that they agreed");
    assert!(refused.to_string().contains(flag), "{refused}");
    // Three are a quorum. The fourth comes back by itself.
    for member in &net.members[..3] {
        member.tell(&[&again[..], &[flag]].concat())?;
    }
    net.members.iter_mut().try_for_each(Member::start)?;
    net.same_block(lowest + 2)?;
    logs(&net.members[3], "from now on the node signs again")?;
    for member in &mut net.members {
        member.stop()?;
        assert!(member.db("verify")?.contains("verified"));
    }
    Ok(())
}
