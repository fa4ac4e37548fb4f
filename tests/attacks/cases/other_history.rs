//! The key of a validator has signed two histories from the same genesis, as a key may that was sold
//! when it was worth nothing any more. All certificates of both are good. A peer that has the other
//! history is the first to answer a node that begins.

use std::time::{Duration, Instant};

use anyhow::ensure;
use testkit::harness::{Town, User};
use testkit::process::Signal;
use testkit::suite::say;
use testkit::workload::key;

use super::{give_history, peers};

const VALIDATOR: usize = 0;
const FOLLOWERS: [usize; 2] = [1, 2];
const LIAR: usize = 3;
const NEWCOMER: usize = 4;
/// A height that both histories have.
const HEIGHT: u64 = 10;
/// How many blocks the other history has.
const BLOCKS: u64 = 60;
/// How long the honest peers are out of reach.
const ALONE: Duration = Duration::from_secs(3);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::make_with(1, 4, &["minBlockIntervalMs=100", "heartbeatMs=100"])?;
    make_other_history(&mut town)?;
    let validator = [peers(&town, &[VALIDATOR])?];
    for at in FOLLOWERS {
        town.node_mut(at)?.start_with(&validator)?;
        town.node(at)?.reaches(HEIGHT)?;
    }
    ensure!(
        town.node(LIAR)?.block_hash(HEIGHT)? != town.node(VALIDATOR)?.block_hash(HEIGHT)?,
        "it is the same history"
    );
    let user = User::start(town.node(VALIDATOR)?.rpc, key(0)?);
    for at in FOLLOWERS {
        town.node(at)?.signal(Signal::STOP)?;
    }
    let named = peers(&town, &[LIAR, FOLLOWERS[0], FOLLOWERS[1]])?;
    town.node_mut(NEWCOMER)?.start_with(&[named])?;
    let begun = Instant::now();
    while begun.elapsed() < ALONE && town.node(NEWCOMER)?.height()? == 0 {
        // The liar's time is bounded; a node that believes it needs less.
        std::thread::sleep(Duration::from_millis(20));
    }
    for at in FOLLOWERS {
        town.node(at)?.signal(Signal::CONT)?;
    }
    town.node(NEWCOMER)?.reaches(HEIGHT)?;
    let [honest, taken] = [VALIDATOR, NEWCOMER].map(|at| town.node(at)?.block_hash(HEIGHT));
    let seen = user.tell("while a node begins beside another history")?;
    ensure!(honest? == taken?, "the node that begins has taken the other history");
    let height = town.height(&[VALIDATOR])?;
    town.node(NEWCOMER)?.reaches(height)?;
    say(&format!(
        "   the node that begins waited {ALONE:.0?} for a second voice, and has the chain"
    ));
    seen.is_served()
}

/// Has the validator sign a history, gives it to the liar, and has the validator begin again.
fn make_other_history(town: &mut Town) -> anyhow::Result<()> {
    let nobody = [peers(town, &[])?];
    town.node_mut(VALIDATOR)?.start_with(&nobody)?;
    town.node(VALIDATOR)?.reaches(BLOCKS)?;
    town.node_mut(VALIDATOR)?.stop()?;
    give_history(town, VALIDATOR, LIAR)?;
    town.node_mut(VALIDATOR)?.start_with(&nobody)?;
    town.node(VALIDATOR)?.reaches(HEIGHT)
}
