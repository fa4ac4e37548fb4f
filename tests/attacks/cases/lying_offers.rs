//! A crowd that offers snapshots which are none, to a node that wants to begin with one.
//!
//! The first release counted its attempts for all offers together: eight lies, each of a greater height
//! than the honest offer, and the node began with genesis, however good the offers of others were.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use testkit::harness::{Plan, Question, Rogue, Town};
use testkit::net::{Member, Network};
use testkit::node::wait_until;
use testkit::suite::say;
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
    let user = super::begin_snapshots(&mut town, INTERVAL)?;
    town.node(VALIDATOR)?.reaches(INTERVAL + 1)?;
    let offer = town.node(VALIDATOR)?.home().join(format!("data/snapshots/{INTERVAL}/offer"));
    wait_until("the honest snapshot", || Ok(offer.exists()))?;

    let target = town.node(NEWCOMER)?.p2p_address(Network::Gossip);
    let liars = (0..LIARS)
        .map(|number| liar(town.node(VALIDATOR)?, number, &target))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let started = Instant::now();
    town.node_mut(NEWCOMER)?.start()?;
    let began = started.elapsed();
    let seen = user.tell("beside a crowd of liars")?;
    let earliest = super::earliest(town.node(NEWCOMER)?)?;
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
