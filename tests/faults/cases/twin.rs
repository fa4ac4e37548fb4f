//! A validator that runs twice with one key, and so proposes and votes twice.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::node::wait_for;

use crate::Extent;
use testkit::harness::{Load, Town};
use testkit::suite::say;

const HONEST: &[usize] = &[0, 1, 2];
const ONE: usize = 3;
/// The follower, which gets the validator's key.
const OTHER: usize = 4;

pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let mut town = Town::make(4, 1)?;
    let key = "keys/validator.key";
    std::fs::copy(town.node(ONE)?.home().join(key), town.node(OTHER)?.home().join(key))?;
    let liar = town.node(ONE)?.validator_key()?.address().to_string();
    town.start_all()?;
    let load = Load::full(&town.net, HONEST, 6)?;
    // The honest nodes go on, whatever the two tell them.
    town.goes_on(HONEST, extent.pick(40, 400))?;

    let seen = wait_for("evidence against the twins", || {
        let mut seen = 0;
        for at in HONEST {
            let validators = town.node(*at)?.call("ombra_getValidators", &json!([]))?;
            let members = validators.as_array().context("a list of validators")?;
            for member in members {
                let count = member["equivocations"].as_u64().unwrap_or(0);
                if member["address"].as_str() == Some(&liar) {
                    check_evidence(member)?;
                    seen += count;
                } else {
                    ensure!(count == 0, "an honest validator is accused: {member}");
                }
            }
        }
        Ok((seen > 0).then_some(seen))
    })?;
    say(&format!("   the honest nodes hold {seen} pairs of contradicting messages of the twins"));
    load.confirms(20)?;
    town.kill(ONE)?;
    town.kill(OTHER)?;
    town.goes_on(HONEST, 4)?;
    town.check(&*load.stop()?)
}

/// Pairs are kept as soon as one is counted, and each has two different messages with signatures.
fn check_evidence(member: &Value) -> anyhow::Result<()> {
    let pairs = member["evidence"].as_array().context("a list of evidence")?;
    ensure!(pairs.is_empty() == (member["equivocations"] == 0), "{member}");
    for pair in pairs {
        let [first, second] = pair["messages"].as_array().context("messages")?.as_slice() else {
            anyhow::bail!("evidence is a pair: {pair}");
        };
        ensure!(first != second && first["signature"].is_string(), "no contradiction: {pair}");
    }
    Ok(())
}
