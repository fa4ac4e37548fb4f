//! A validator forgets, again and again: its last block is taken back, and with it the engine's log. It
//! must not sign what it has signed, and must come back by itself.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::harness::{Town, User};
use testkit::node::wait_until;
use testkit::suite::say;
use testkit::workload::key;

/// How often it forgets.
const ROUNDS: usize = 3;
/// The longest that the user may wait for a block: a turn of a validator that has just stopped costs
/// its timeouts, until the others know that it is away.
const INCLUSION_MAX: Duration = Duration::from_secs(6);
/// Who forgets.
const FORGETFUL: usize = 0;
/// Whom the user asks.
const ASKED: usize = 1;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::start(4, 0)?;
    let user = User::start(town.node(ASKED)?.rpc, key(0)?);
    let started = Instant::now();
    for _ in 0..ROUNDS {
        town.goes_on(&[ASKED], 3)?;
        let node = town.node_mut(FORGETFUL)?;
        node.stop()?;
        node.db("rollback")?;
        std::fs::remove_dir_all(node.home().join("data/db.before-rollback"))?;
        // Consensus starts before the node has got what it is behind, unless peers were quick.
        node.start_with(&[("OMBRA__SYNC__WAIT_MS", "0".to_owned())])?;
        let node = town.node(FORGETFUL)?;
        wait_until("its votes", || Ok(node.metric("ombra_consensus_votes_signed_total")? > 0))?;
        let refused = node.metric("ombra_consensus_sign_refusals_total")?;
        ensure!(refused == 0, "the guard had to refuse");
    }
    let seen = user.stop()?;
    let log = town.node(FORGETFUL)?.logged()?;
    let followed = log.matches("the node follows without signing").count();
    let signed = log.matches("from now on the node signs again").count();
    ensure!(followed == signed, "it followed {followed} times and signed again {signed} times");
    for node in town.net.running() {
        let set = node.call("ombra_getValidators", &json!([]))?;
        let contradictions = |member: &Value| member["equivocations"].as_u64().unwrap_or(0);
        let seen: u64 = set.as_array().into_iter().flatten().map(contradictions).sum();
        ensure!(seen == 0, "{} has seen contradictions: {set}", node.name);
    }
    say(&format!(
        "   {ROUNDS} times a block back in {:.0?}, {followed} times it had to follow first; it signs again, no contradiction",
        started.elapsed()
    ));
    seen.tell("while one of four forgets");
    seen.is_served_within(INCLUSION_MAX)
}
