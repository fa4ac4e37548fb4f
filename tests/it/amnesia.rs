//! A validator that has taken blocks back, on a chain of processes.

use serde_json::json;
use tests::net::{Net, NetOptions};
use tests::node::wait_for;

/// Slow enough that a node that was taken back for a moment is not far behind.
const PARAMS: [&str; 2] = ["minBlockIntervalMs=50", "heartbeatMs=2500"];

#[test]
fn a_validator_that_took_a_block_back_follows_and_then_signs_by_itself() -> anyhow::Result<()> {
    let params = PARAMS.map(str::to_owned).to_vec();
    let mut net = Net::start_as(&NetOptions { params, ..NetOptions::new(4, 0) })?;
    net.members[0].reaches(3)?;
    net.members[0].stop()?;
    net.members[0].db("rollback")?;
    net.members[0].start()?;
    wait_for("the validator to sign again", || {
        let log = net.members[0].logged()?;
        Ok(log.contains("from now on the node signs again").then_some(()))
    })?;
    assert!(net.members[0].logged()?.contains("the node follows without signing"));
    wait_for("its votes", || {
        let signed = net.members[0].metric("ombra_consensus_votes_signed_total")?;
        Ok((signed > 0).then_some(()))
    })?;
    // Its vote is needed now.
    net.members[1].stop()?;
    let height = net.members[0].height()?;
    net.same_block(height + 2)?;
    for member in net.running() {
        let set = member.call("ombra_getValidators", &json!([]))?;
        let seen = set.as_array().into_iter().flatten();
        assert!(seen.clone().all(|it| it["equivocations"] == 0), "{set}");
    }
    assert_eq!(net.members[0].metric("ombra_consensus_sign_refusals_total")?, 0);
    Ok(())
}
