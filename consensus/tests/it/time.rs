//! Validators whose clocks are wrong, and blocks that come at the wrong time.

use consensus::{Direction, Fit, Missed};

use crate::chain::{V7_FROM, key};
use crate::town::Town;

/// How far a wrong clock is off.
const MINUTES_MS: i64 = 120_000;

impl Town {
    /// How many proposals a node has found untimely.
    fn untimely(&self, at: usize, direction: Direction) -> u64 {
        let counters = &self.node(at).counters;
        counters.untimely_proposals.get_or_create(&Missed { direction }).get()
    }
}

/// Four validators, the last one with a wrong clock; what the others and it find untimely.
async fn goes_on_with_a_wrong_clock(name: &str, ahead_ms: i64, missed: [Direction; 2]) {
    let town = Town::new(name, 4, 0).await;
    town.plans[3].disk.faults().ahead_ms = ahead_ms;
    // In eight heights each is the first proposer twice.
    let last = V7_FROM + 7;
    town.grow_to(last).await;
    town.agree_up_to(last);
    let [others, own] = missed;
    assert!((0..3).all(|at| town.untimely(at, others) > 0), "the others turn its blocks down");
    assert!(town.untimely(3, own) > 0, "and it turns down theirs, and has them all the same");
    let fit = |at: usize| town.node(at).counters.punctuality.fit();
    let Fit { proposers, ahead, behind } = fit(3);
    assert!(proposers > 0 && ahead + behind == proposers, "{:?}", fit(3));
    assert!((0..3).all(|at| fit(at).ahead + fit(at).behind <= 1), "only one clock is wrong");
    let disk = &town.plans[0].disk;
    for height in V7_FROM..=last {
        assert_ne!(disk.proposer(height), key(4).address(), "{height} has the wrong time");
        let moved = disk.timestamp(height).abs_diff(disk.timestamp(V7_FROM));
        assert!(moved < 60_000, "the time moved by {moved} ms");
    }
    town.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_of_a_clock_that_is_ahead_are_voted_down_and_its_node_takes_what_others_decide() {
    let missed = [Direction::Ahead, Direction::Behind];
    goes_on_with_a_wrong_clock("clock-ahead", MINUTES_MS, missed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_of_a_clock_that_is_behind_are_voted_down_and_its_node_takes_what_others_decide() {
    let missed = [Direction::Behind, Direction::Ahead];
    goes_on_with_a_wrong_clock("clock-behind", -MINUTES_MS, missed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_wrong_clock_that_starts_again_goes_on_taking_what_others_decide() {
    let mut town = Town::new("clock-restart", 4, 0).await;
    town.plans[3].disk.faults().ahead_ms = MINUTES_MS;
    for height in [V7_FROM + 1, V7_FROM + 3, V7_FROM + 5] {
        town.grow_to(height).await;
        town.stop(3).await;
        town.start(3).await;
    }
    town.plans[3].disk.faults().ahead_ms = 0;
    // Once its clock is right, its votes count again: without one of the others they are needed.
    town.stop(0).await;
    let last = V7_FROM + 9;
    town.grow_to(last).await;
    assert_eq!(town.refusals(), 0);
    town.start(0).await;
    town.reaches(last).await;
    town.agree_up_to(last);
    town.stop_all().await;
}
