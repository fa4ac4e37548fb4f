//! All validators are killed at once, under load, again and again.

use std::time::{Duration, Instant};

use crate::{ALL, Extent};
use testkit::harness::{Load, Town};
use testkit::process::Signal;
use testkit::suite::say;

const ROUNDS: u64 = 3;
const ROUNDS_FULL: u64 = 20;

pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let rounds = extent.pick(ROUNDS, ROUNDS_FULL);
    let mut town = Town::start(4, 0)?;
    let load = Load::start(&town.net, ALL, 8, Duration::ZERO)?;
    let mut took = Vec::new();
    for round in 0..rounds {
        load.confirms(20)?;
        // Another moment within a block each time, without a source of randomness.
        std::thread::sleep(Duration::from_millis(round * 37 % 130));
        ALL.iter().for_each(|at| load.ledger().excuse(*at));
        // Signals first: waiting for one to be gone would give the next one time.
        for at in ALL {
            town.node(*at)?.signal(Signal::KILL)?;
        }
        for at in ALL {
            town.kill(*at)?;
        }
        let started = Instant::now();
        for at in ALL {
            town.restart(*at)?;
        }
        town.goes_on(ALL, 1)?;
        took.push(started.elapsed().as_millis());
        ALL.iter().for_each(|at| load.ledger().expect(*at));
    }
    say(&format!("   {rounds} rounds; from restart to the next block everywhere: {took:?} ms"));
    let excused = load.ledger().excused();
    let ledger = load.stop()?;
    say(&format!("   {} confirmed, {excused} requests failed meanwhile", ledger.confirmed_count()));
    town.check(&ledger)
}
