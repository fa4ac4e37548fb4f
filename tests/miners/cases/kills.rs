//! `kill -9` of miners at random moments under load, and of the node in the middle.

use std::time::{Duration, Instant};

use anyhow::ensure;
use testkit::crowd::Crowd;
use testkit::dice::Dice;
use testkit::miners::{Miner, MinerHome, explain_all};
use testkit::parallel::joined;
use testkit::suite::say;

use crate::Extent;

/// Runs that are asked for in each second of deaths.
const RUNS_PER_SECOND: u64 = 3;
/// How long a life is, milliseconds.
const LIFE_MS: (u64, u64) = (100, 900);

pub(crate) fn run(extent: Extent) -> anyhow::Result<String> {
    say(&format!("seed {}", extent.seed));
    let mut dice = Dice::new(extent.seed);
    let runs = usize::try_from(extent.seconds * RUNS_PER_SECOND)?;
    let mut crowd = Crowd::new()?;
    let mut miners =
        crowd.miners.iter().map(MinerHome::start).collect::<anyhow::Result<Vec<_>>>()?;
    let node = crowd.node.rpc;
    let asking = std::thread::spawn(move || Crowd::ask(node, runs));
    let deaths = kill(&mut crowd, &mut miners, &mut dice, extent.seconds)?;
    joined(asking.join(), "a requester")?;
    crowd.settled(runs).map_err(|fault| explain_all(&crowd.miners, fault))?;
    miners.into_iter().try_for_each(Miner::stop)?;
    crowd.check(runs).map_err(|fault| explain_all(&crowd.miners, fault))?;
    let questions = crowd.questions();
    Ok(format!(
        "{runs} runs over {deaths} deaths of miners and one of the node; {questions} questions"
    ))
}

/// Kills and starts again, until the time is over. Answers how many miners died.
fn kill(
    crowd: &mut Crowd,
    miners: &mut [Miner],
    dice: &mut Dice,
    seconds: u64,
) -> anyhow::Result<usize> {
    let begun = Instant::now();
    let over = Duration::from_secs(seconds);
    let (mut deaths, mut node_lives) = (0, true);
    while begun.elapsed() < over {
        // How long a life is, is what is tried.
        std::thread::sleep(Duration::from_millis(dice.roll(LIFE_MS.0, LIFE_MS.1)));
        if node_lives && begun.elapsed() > over / 2 {
            node_lives = false;
            crowd.node.kill()?;
            // The miners try in vain for a while.
            std::thread::sleep(Duration::from_secs(1));
            crowd.node.restart_in_place()?;
        }
        let place = usize::try_from(dice.roll(0, u64::try_from(miners.len())?))?;
        let (Some(miner), Some(home)) = (miners.get_mut(place), crowd.miners.get(place)) else {
            continue;
        };
        miner.kill()?;
        *miner = home.start()?;
        deaths += 1;
    }
    ensure!(!node_lives && deaths > 0, "nothing died");
    Ok(deaths)
}
