//! Runs that are to be decided about.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use types::{Address, Hash};

use crate::chain::RunView;

/// Runs that wait at most: more than twice what one look at the waiting runs lists. Where there are as
/// many, the next list has what does not find room.
const RUNS_MAX: usize = 4_096;

/// A run's place: first by the rank of its submitter, then those that pay most.
type Place = (u32, Reverse<u64>, Hash);

/// Runs that are to be decided about, in the order in which that happens.
#[derive(Debug, Default)]
pub(super) struct Queue {
    runs: BTreeMap<Place, RunView>,
    places: BTreeMap<Hash, Place>,
}

impl Queue {
    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Nothing waits any more.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.places.clear();
    }

    /// Adds a run of a submitter with this rank, or puts it in the place of what was known of it.
    pub(super) fn add(&mut self, run: RunView, rank: u32) {
        if let Some(place) = self.places.remove(&run.id) {
            self.runs.remove(&place);
        }
        if self.runs.len() >= RUNS_MAX {
            return;
        }
        let place = (rank, Reverse(run.max_fee_micro), run.id);
        self.places.insert(run.id, place);
        self.runs.insert(place, run);
    }

    /// The next run, by what the rank of its submitter is now.
    pub(super) fn next(&mut self, rank: impl Fn(&Address) -> u32) -> Option<RunView> {
        loop {
            let (place, run) = self.runs.pop_first()?;
            self.places.remove(&run.id);
            let now = rank(&run.submitter);
            if now <= place.0 {
                return Some(run);
            }
            self.add(run, now);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Who is decided about first.

    use super::*;
    use crate::chain::fake::FakeChain;

    fn run(submitter: u8, max_fee_micro: u64) -> RunView {
        let chain = FakeChain::new();
        let run = chain.run_of(&chain.add_run("x", 10_000, 10));
        let id = Hash::digest(&[submitter, max_fee_micro.to_be_bytes()[7]]);
        RunView { id, submitter: Address::new([submitter; 20]), max_fee_micro, ..run }
    }

    #[test]
    fn those_that_pay_most_come_first_but_for_submitters_that_wait_behind_others() {
        let mut queue = Queue::default();
        let runs = [run(1, 50), run(1, 40), run(2, 30), run(2, 20)];
        for run in &runs {
            queue.add(run.clone(), 0);
        }
        // It is there already.
        queue.add(runs[2].clone(), 0);
        let rank_of_one = std::cell::Cell::new(0);
        let rank = |who: &Address| if *who == runs[0].submitter { rank_of_one.get() } else { 0 };
        let mut fees = Vec::new();
        while let Some(run) = queue.next(rank) {
            fees.push(run.max_fee_micro);
            // The first one was not worth the look.
            rank_of_one.set(1);
        }
        assert_eq!(vec![50, 30, 20, 40], fees);
        assert!(queue.is_empty());
    }
}
