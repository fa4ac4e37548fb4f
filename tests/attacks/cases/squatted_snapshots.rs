//! The crowd of `one_prefix` on a chain with fork v7, where each first registration burns `registerFee`.
//! Snapshots are made as before, and each time that somebody tries to stop them it costs that much.

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::actor::{Actor, transfer};
use testkit::harness::{FAST, Town};
use testkit::suite::say;
use testkit::workload::keys;

use super::one_prefix::{self, REGISTRATIONS};
use super::sending::{Senders, ombra};

/// What the first registration of an account burns, in micro.
const REGISTER_FEE: u64 = 10_000;
/// What each of the crowd is given: the fee, and its place in a block.
const GIVEN: u64 = REGISTER_FEE + 2_000;
/// Who gives it: a pool takes 2,048 transactions of one sender. The first account is the user's.
const GIVERS: usize = 2;
/// Transfers that go together.
const TOGETHER: usize = 500;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let fee = format!("registerFee={REGISTER_FEE}");
    one_prefix::squat(Town::from_v7(1, 1, &[FAST, &[fee.as_str()]].concat())?, give, tell)
}

/// The crowd has nothing, so somebody must give it what its registrations cost.
fn give(town: &Town) -> anyhow::Result<()> {
    let mut senders = Senders::open(town.node(0)?.rpc)?;
    let nobody = one_prefix::ground()?.pop().context("a key")?;
    let text = Actor::new(nobody).draft(&testkit::actor::register_miner("nobody"));
    senders.refused(&text, "INSUFFICIENT_BALANCE")?;
    let mut givers: Vec<_> = keys(GIVERS + 1)?.into_iter().skip(1).map(Actor::new).collect();
    let crowd = one_prefix::ground()?;
    let share = crowd.len().div_ceil(GIVERS);
    for (giver, crowd) in givers.iter_mut().zip(crowd.chunks(share)) {
        for part in crowd.chunks(TOGETHER) {
            let texts: Vec<String> =
                part.iter().map(|key| giver.sign(&transfer(key.address(), GIVEN))).collect();
            senders.include(&texts)?;
        }
    }
    Ok(())
}

/// What all of it burned.
fn tell(town: &Town) -> anyhow::Result<()> {
    let supply = town.node(0)?.call("ombra_getSupply", &json!([]))?;
    let burned: u64 = supply["burned"].as_str().context("burned")?.parse()?;
    let crowd = u64::try_from(REGISTRATIONS)?;
    say(&format!("   {crowd} registrations under one byte burned {} OMBRA", ombra(burned.into())));
    ensure!(burned >= crowd * REGISTER_FEE, "the crowd has burned only {burned}");
    Ok(())
}
