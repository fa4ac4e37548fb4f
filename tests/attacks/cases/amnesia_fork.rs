//! Two of four validators forget the last block together, while the one that has proposed it is away
//! and the fourth has never seen it: restored from yesterday's copies, for example. If they sign that
//! height anew, two blocks of one height have good certificates, and a confirmed payment is gone. The
//! first release tried, and ended when the record of its signatures stood against it. They must not
//! sign it after a crash either.

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::actor::{Actor, transfer};
use testkit::harness::Town;
use testkit::node::wait_for;
use testkit::suite::say;
use testkit::workload::key;

/// Who takes the last block back.
const FORGETFUL: [usize; 2] = [0, 1];
/// Who proposed it, and remembers.
const PROPOSER: usize = 2;
/// Who has never seen it.
const AWAY: usize = 3;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::start(4, 0)?;
    town.goes_on(&[PROPOSER], 2)?;
    town.kill(AWAY)?;
    let mut user = Actor::new(key(0)?);
    let (height, payment) = wait_for("a block of the proposer that all three have", || {
        let payment = town.node(PROPOSER)?.send(&user.sign(&transfer(user.address(), 1)))?;
        let (height, _) = town.node(PROPOSER)?.includes(&payment)?;
        Ok(is_last_everywhere(&town, height)?.then_some((height, payment)))
    })?;
    for at in FORGETFUL {
        town.kill(at)?;
    }
    let confirmed = town.node(PROPOSER)?.block_hash(height)?;
    ensure!(town.height(&[PROPOSER])? == height, "another block came: it proves nothing");
    town.kill(PROPOSER)?;

    for at in FORGETFUL {
        town.node(at)?.db("rollback")?;
    }
    for at in FORGETFUL.into_iter().chain([AWAY]) {
        // Nobody has more than they have.
        town.node_mut(at)?.start_with(&[("OMBRA__SYNC__WAIT_MS", "0".to_owned())])?;
    }
    // A quorum of those that signed this height is bound to it. It waits for whoever has it.
    let waiting = [FORGETFUL[0], FORGETFUL[1], AWAY];
    town.stands_still(&waiting).context("they decide again what was decided, or end")?;
    // A start that only followed must leave nothing that the next one takes for a memory.
    for at in FORGETFUL {
        town.kill(at)?;
    }
    for at in FORGETFUL {
        town.node_mut(at)?.start_with(&[("OMBRA__SYNC__WAIT_MS", "0".to_owned())])?;
    }
    town.stands_still(&waiting).context("after a crash they decide it again")?;
    town.restart(PROPOSER)?;
    town.goes_on(&[0, 1, 2, 3], 3)?;
    ensure!(town.net.same_block(height)? == confirmed, "the confirmed block {height} is gone");
    let (seen, _) = town.node(AWAY)?.includes(&payment)?;
    ensure!(seen == height, "the payment moved from block {height} to {seen}");
    say(&format!("   block {height} was forgotten by two of four, and is the one it was"));
    Ok(())
}

/// Whether the block at this height is the proposer's, and the last one of all who run.
fn is_last_everywhere(town: &Town, height: u64) -> anyhow::Result<bool> {
    let proposer = town.node(PROPOSER)?;
    let block = proposer.call("ombra_getBlock", &json!([height, false]))?;
    let own = proposer.validator_key()?.address().to_string();
    if block.get("proposer").and_then(serde_json::Value::as_str) != Some(own.as_str()) {
        return Ok(false);
    }
    for at in FORGETFUL {
        town.node(at)?.reaches(height)?;
    }
    Ok(town.height(&[0, 1, 2])? == height)
}
