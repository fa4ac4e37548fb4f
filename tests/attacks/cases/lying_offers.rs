//! A crowd that offers snapshots which are none, to a node that wants to begin with one.
//!
//! The first release counted its attempts for all offers together: eight lies, each of a greater height
//! than the honest offer, and the node began with genesis, however good the offers of others were.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::harness::rogue::{Plan, Question, Rogue};
use testkit::harness::town::Town;
use testkit::harness::user::User;
use testkit::net::{Member, Network};
use testkit::node::wait_for;
use testkit::suite::say;
use testkit::workload::keys;
use types::Hash;

/// How many liars there are.
const LIARS: u64 = 12;
/// Of which heights the honest node makes snapshots.
const INTERVAL: u64 = 20;
/// Far above what the chain has.
const HEIGHT: u64 = 1_000_000;
const VALIDATOR: usize = 0;
const NEWCOMER: usize = 1;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::make(1, 1)?;
    let interval = format!("interval_blocks = {INTERVAL}");
    super::edit(town.node(VALIDATOR)?, "interval_blocks = 1000", &interval)?;
    super::edit(town.node(NEWCOMER)?, "fetch = false", "fetch = true")?;
    town.node_mut(VALIDATOR)?.start()?;
    super::is_ready(town.node(VALIDATOR)?)?;
    let rpc = town.node(VALIDATOR)?.rpc;
    let user = User::start(rpc, keys(1)?.pop().context("a key")?);
    town.node(VALIDATOR)?.reaches(INTERVAL + 1)?;
    let offer = town.node(VALIDATOR)?.home().join(format!("data/snapshots/{INTERVAL}/offer"));
    wait_for("the honest snapshot", || Ok(offer.exists().then_some(())))?;

    let target = town.node(NEWCOMER)?.p2p_address(Network::Gossip);
    let liars = (0..LIARS)
        .map(|number| liar(town.node(VALIDATOR)?, number, &target))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let started = Instant::now();
    town.node_mut(NEWCOMER)?.start()?;
    let began = started.elapsed();
    let seen = user.stop()?;
    seen.tell("beside a crowd of liars");
    let info = town.node(NEWCOMER)?.call("ombra_chainInfo", &json!([]))?;
    let earliest = info.get("earliestBlock").and_then(Value::as_u64).context("earliestBlock")?;
    let heard = liars.iter().filter(|liar| liar.asked("/sync/") > 0).count();
    say(&format!(
        "   {heard} liars were asked; the new node began at block {earliest} after {began:.0?}"
    ));
    ensure!(heard > 8, "only {heard} liars were asked: that proves nothing");
    ensure!(earliest > 1, "the new node began with genesis");
    seen.is_served()
}

/// One who offers a snapshot of a great height whose bytes are none.
fn liar(honest: &Member, number: u64, target: &str) -> anyhow::Result<Rogue> {
    let lie = format!("this is no offer, said the liar {number}").into_bytes();
    let (hash, height) = (Hash::digest(&lie), HEIGHT + number);
    let mut plan = Plan::gossip(honest, "sync")?.without_topics();
    let first = plan.protocols.first().context("a protocol")?.clone();
    plan.protocols.insert(0, first.replace("/sync/1", "/sync/2"));
    let answer = move |Question { bytes, .. }: &Question| {
        let mut answer = vec![1];
        match bytes.first()? {
            0 => answer.extend([(height + 1).to_le_bytes(); 2].concat()),
            2 | 4 => {
                answer.extend(height.to_le_bytes());
                answer.extend(hash.as_bytes());
                answer.extend(u64::try_from(lie.len()).ok()?.to_le_bytes());
            }
            3 => answer.extend(&lie),
            _ => return None,
        }
        Some(answer)
    };
    Rogue::start_with(plan, &[target.to_owned()], Box::new(answer))
}
