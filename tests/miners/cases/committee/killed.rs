//! The killed miner: `kill -9` in each phase of its calls, as `ombra miner assignments` tells them,
//! and started again at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use testkit::miners::{Miner, MinerHome};

use super::LOOK;

/// The phases of a call in which there is something to lose.
const PHASES: [&str; 4] = ["assigned", "executed", "committed", "revealed"];

/// In which phases the miner died, and how often.
#[derive(Clone, Default, Debug)]
pub(super) struct Deaths(BTreeMap<&'static str, usize>);

impl Deaths {
    fn count(&self, phase: &'static str) -> usize {
        self.0.get(phase).copied().unwrap_or_default()
    }

    /// A phase in which it has not died yet.
    pub(super) fn missing(&self) -> Option<&'static str> {
        PHASES.into_iter().find(|phase| self.count(phase) == 0)
    }
}

impl fmt::Display for Deaths {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = PHASES.map(|phase| format!("{phase} {}", self.count(phase)));
        let times: usize = self.0.values().sum();
        write!(formatter, "{times} times ({})", counts.join(", "))
    }
}

/// Kills the miner until it is told to stop, at most once in the course of each call: in the phase
/// in which it died the fewest times. Answers the miner that lives at last.
pub(super) fn kill_again_and_again(
    home: &MinerHome,
    mut miner: Miner,
    stop: &AtomicBool,
    deaths: &Mutex<Deaths>,
) -> anyhow::Result<Miner> {
    let mut touched: BTreeSet<String> = BTreeSet::new();
    while !stop.load(Ordering::SeqCst) {
        let open = home.told(&["assignments", "--open"])?;
        let open = open.as_array().cloned().unwrap_or_default();
        let mut phase = None;
        {
            let deaths = deaths.lock().map_err(|_poison| anyhow!("the course panicked"))?;
            let least = PHASES.map(|phase| deaths.count(phase)).into_iter().min();
            for call in &open {
                let Some(id) = call["call"].as_str().filter(|id| !touched.contains(*id)) else {
                    continue;
                };
                let now = PHASES.into_iter().find(|phase| call["phase"] == *phase);
                let is_due = |phase: &&'static str| Some(deaths.count(phase)) == least;
                if let Some(now) = now.filter(is_due) {
                    phase = Some((now, id.to_owned()));
                    break;
                }
            }
        }
        let Some((phase, call)) = phase else {
            // The miner is asked again and again.
            std::thread::sleep(LOOK);
            continue;
        };
        miner.kill()?;
        touched.insert(call);
        {
            let mut deaths = deaths.lock().map_err(|_poison| anyhow!("the course panicked"))?;
            *deaths.0.entry(phase).or_default() += 1;
        }
        miner = home.start()?;
    }
    Ok(miner)
}
