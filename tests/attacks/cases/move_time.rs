//! A validator of four that would move the chain's time: its clock, and so what it proposes, is ahead or
//! behind by more than a minute. A proposer that could do that would end claims and runs before their
//! time, or keep them from ending. From fork v7 on the others vote its blocks down; each costs a round,
//! and nothing else. Before, they took whatever was less than `maxClockSkewMs` ahead.
//!
//! A proposer behind the previous block can only go on from that, so its blocks are right where others
//! follow soon.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::harness::clock::{self, now_ms};
use testkit::harness::{FAST, Town, User};
use testkit::suite::say;
use testkit::workload::key;

const HONEST: &[usize] = &[0, 1, 2];
const LIAR: usize = 3;
/// How far its clock is off: less than `maxClockSkewMs`.
const OFF_S: i64 = 90;
/// How long each of the two attacks lasts.
const TIME: Duration = Duration::from_secs(12);
/// How often the time of the latest block is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How far the chain's time may be from the machine's: what honest blocks are late by when rounds fail,
/// and far less than the liar's clock is off.
const OFF_MS_MAX: u64 = 20_000;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let library = clock::compile(folder.path())?;
    for (off_s, direction) in [(OFF_S, "ahead"), (-OFF_S, "behind")] {
        let mut town = Town::from_v7(4, 0, FAST)?;
        town.node_mut(LIAR)?.environment = clock::wrong_by(&library, off_s);
        town.start_all()?;
        let user = User::start(town.node(0)?.rpc, key(0)?);
        let off_ms = watch(&town)?;
        let seen = user.stop()?;
        seen.tell(&format!("while a proposer's clock is {direction}"));
        ensure!(off_ms < OFF_MS_MAX, "the chain's time was off by {off_ms} ms");
        let turned_down = HONEST.iter().map(|at| {
            let name =
                format!("ombra_consensus_proposals_untimely_total{{direction=\"{direction}\"}}");
            town.node(*at)?.metric(&name)
        });
        let turned_down = turned_down.collect::<anyhow::Result<Vec<_>>>()?;
        say(&format!(
            "   {} blocks; the chain's time was off by at most {off_ms} ms; turned down by the \
             others: {turned_down:?}",
            town.height(HONEST)?
        ));
        seen.is_always_ready()?;
        if off_s > 0 {
            ensure!(turned_down.iter().all(|count| *count > 0), "somebody let it move the time");
            town.takes_nothing_of(LIAR)?;
        }
        town.goes_on(HONEST, 3)?;
    }
    Ok(())
}

/// How far the time of the latest block was from the machine's at most, in milliseconds, while the attack
/// lasted.
fn watch(town: &Town) -> anyhow::Result<u64> {
    let end = now_ms()? + u64::try_from(TIME.as_millis())?;
    let mut most = 0;
    loop {
        let now = now_ms()?;
        if now >= end {
            return Ok(most);
        }
        let info = town.node(0)?.call("ombra_chainInfo", &json!([]))?;
        let time = info["latestBlockTime"].as_u64().context("the time of the latest block")?;
        if info["height"].as_u64().is_some_and(|height| height > 0) {
            most = most.max(time.abs_diff(now));
        }
        // What is looked at is a course of time.
        std::thread::sleep(LOOK);
    }
}
