//! A paying customer of a miner: how long plain runs take until they are settled.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use testkit::miners::{MinerHome, Requester, Wish, text};

/// How many runs are asked for.
const RUNS: usize = 8;

/// What the customer's runs took.
pub(super) struct Paid {
    median: Duration,
    most: Duration,
}

impl Paid {
    /// Has development account `account` ask a miner plain questions, one after the other.
    pub(super) fn ask(account: usize, miner: &MinerHome) -> anyhow::Result<Self> {
        let paid = Self::ask_all(Requester::new(account, miner.rpc())?);
        paid.map_err(|fault| miner.explain(&fault))
    }

    fn ask_all(mut requester: Requester) -> anyhow::Result<Self> {
        let mut took = Vec::new();
        for number in 0..RUNS {
            let began = Instant::now();
            let run = requester.ask(&Wish::new(format!("question {number}"), &[]))?;
            let record = requester.settled(&run)?;
            ensure!(text(&record, "status") == "completed", "it was not answered: {record}");
            took.push(began.elapsed());
        }
        took.sort_unstable();
        let (median, most) = (took.get(RUNS / 2), took.last());
        Ok(Self { median: *median.context("a run")?, most: *most.context("a run")? })
    }

    pub(super) fn waited_less_than(&self, most: Duration) -> anyhow::Result<()> {
        ensure!(self.most < most, "a paying customer waited {:.1?}", self.most);
        Ok(())
    }
}

impl fmt::Display for Paid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, most } = self;
        write!(to, "{RUNS} paid runs settled in p50/max {median:.1?}/{most:.1?}")
    }
}
