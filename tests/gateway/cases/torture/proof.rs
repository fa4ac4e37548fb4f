//! What must be so at the end: on the chain, in the books, and of the keys.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::http::Connection;
use testkit::node::wait_until;

use super::Town;
use crate::scene::Scene;
use crate::worker::asked;

/// What the chain has of a request.
#[derive(Debug, Default)]
struct OnChain {
    runs: u64,
    /// Runs for which money was paid.
    paid: u64,
}

/// Proves it; says what was counted.
pub(super) fn hold(scene: &Scene, town: &Town) -> anyhow::Result<String> {
    let told = scene.check()?;
    ensure!(told["faults"] == json!([]), "the books do not agree: {told}");
    let on_chain = chain(scene)?;
    let mut faults = Vec::new();
    let (mut requests, mut paid) = (0, 0);
    let ledger = town.with(|ledger| ledger.asked.clone());
    for (title, has) in &on_chain {
        let Some(asked) = ledger.get(title) else {
            faults.push(format!("{title} is on the chain, and nobody asked it"));
            continue;
        };
        let most = if asked.is_named { 1 } else { asked.firsts };
        if has.paid > most {
            let attempts = asked.attempts.join("\n   ");
            faults.push(format!("{title} may be paid {most} times: {has:?}\n   {attempts}"));
        }
        paid += has.paid;
    }
    for (title, asked) in &ledger {
        requests += asked.firsts;
        if on_chain.get(title).is_none_or(|has| has.paid == 0) {
            faults.push(format!("{title} was answered, and no run was paid"));
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    keys(scene, &told)?;
    let runs: u64 = on_chain.values().map(|it| it.runs).sum();
    Ok(format!("{requests} requests, {runs} runs, {paid} of them paid"))
}

/// Every run on the chain, by its title. All of them have ended.
fn chain(scene: &Scene) -> anyhow::Result<BTreeMap<String, OnChain>> {
    let mut found: BTreeMap<String, OnChain> = BTreeMap::new();
    let mut connection = Connection::open(scene.node.rpc)?;
    for run in connection.pages("ombra_listAgentRuns", |page| json!([{}, page]))? {
        let status = run["status"].as_str().unwrap_or_default();
        let is_open = ["pending", "claimed", "running"].contains(&status);
        ensure!(!is_open, "a run is forgotten: {run}");
        let text = asked(scene.node.rpc, &run)?;
        let title = text.split_once(' ').context("a title")?.1.to_owned();
        let has = found.entry(title).or_default();
        has.runs += 1;
        has.paid += u64::from(micro(&run["minerReward"]) + micro(&run["networkFee"]) > 0);
    }
    Ok(found)
}

/// Nothing is open or reserved, and what the keys have spent is what the requests have cost.
fn keys(scene: &Scene, told: &Value) -> anyhow::Result<()> {
    let keys = scene.home.told(&["key", "list"])?;
    let keys = keys.as_array().context("keys")?;
    let sum = |name: &str| keys.iter().map(|key| micro(&key[name])).sum::<u64>();
    ensure!((sum("open"), sum("reservedMicro")) == (0, 0), "something is open: {keys:?}");
    ensure!(json!(sum("spentMicro")) == told["spentMicro"], "{keys:?} have not spent {told}");
    let listed = scene.home.told(&["requests", "--limit", "100000"])?;
    let listed = listed.as_array().context("requests")?;
    ensure!(json!(listed.len()) == told["requests"], "{} are listed of {told}", listed.len());
    // Clients that hung up are known as such, and nobody is said to wait.
    wait_until("nobody to wait", || {
        let listed = scene.home.told(&["requests", "--limit", "100000"])?;
        let waits = |it: &Value| it["delivery"] == "waiting";
        Ok(!listed.as_array().into_iter().flatten().any(waits))
    })
}

fn micro(amount: &Value) -> u64 {
    let number = amount.as_u64();
    number.or_else(|| amount.as_str()?.parse().ok()).unwrap_or_default()
}
