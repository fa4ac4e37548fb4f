//! The market as requesters see it: what a call would cost, and from whom members were drawn.

use std::time::Duration;

use parking_lot::Mutex;
use rpc::ports::{self, CallEstimate, CallWish, HeldElection, PortFault};
use state::StorageError;
use state::market::estimate::{Estimate, Known, Wish, at_prices, estimate};
use state::tables::{CallCandidates, Calls};
use state::view;
use types::{AgentVersion, Hash, Params};

use super::{Reads, fault};

/// How long somebody waits for what another one is reading, before it reads for itself: it has a place among
/// those who read meanwhile.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// What was read for estimates at the latest height that was asked for. An estimate may read thousands of
/// rows, and anybody may ask for one.
pub(super) type Estimates = AtHeight<Known>;

/// What is known at a height.
#[derive(Debug, Default)]
pub(super) struct AtHeight<K>(Mutex<(u64, K)>);

impl<K: Default> AtHeight<K> {
    /// Asks with what is known at this height. Who looks at an earlier block than others knows nothing.
    fn at<T>(&self, height: u64, ask: impl FnOnce(&mut K) -> T) -> T {
        let Some(mut kept) = self.0.try_lock_for(WAIT_MAX) else {
            return ask(&mut K::default());
        };
        let (newest, known) = &mut *kept;
        if height < *newest {
            return ask(&mut K::default());
        }
        if height > *newest {
            (*newest, *known) = (height, K::default());
        }
        ask(known)
    }
}

impl ports::Market for Reads {
    fn estimate(
        &self,
        agent: &AgentVersion,
        wish: &CallWish,
    ) -> Result<Option<CallEstimate>, PortFault> {
        let CallWish { committee_size, consensus, is_appealable, limits, prices } = *wish;
        let wish = Wish { committee_size, consensus, is_appealable, limits };
        let read = || -> Result<_, StorageError> {
            let snapshot = self.snapshot();
            let (height, rules) = self.rules(&snapshot)?;
            let params = &rules.params;
            let found = self.estimates.at(height, |known| match prices {
                Some(prices) => at_prices((&snapshot, known), params, agent, (&wish, &prices)),
                None => estimate((&snapshot, known), params, agent, &wish).map(Some),
            });
            Ok(found?.map(|found| told(&found, &wish, params)))
        };
        read().map_err(fault("estimating a call"))
    }

    fn election(&self, call_id: &Hash, round: u8) -> Result<Option<HeldElection>, PortFault> {
        let snapshot = self.snapshot();
        let call = view::get::<Calls>(&snapshot, call_id).map_err(fault("reading a call"))?;
        let held = call.and_then(|call| {
            let held = call.rounds.get(usize::from(round))?;
            Some((held.elected_in, CallCandidates::key(&call, round)))
        });
        let Some((height, key)) = held else { return Ok(None) };
        let read = view::get::<CallCandidates>(&snapshot, &key);
        let candidates = read.map_err(fault("reading the candidates of a call"))?;
        if candidates.is_none() {
            // A database that began with a snapshot has the candidates from there on.
            return Err(PortFault::history(self.chain.store().earliest()));
        }
        Ok(candidates.map(|candidates| HeldElection { height, candidates }))
    }
}

/// What is told of an estimate. The fee of reveals may be twice what it is when the call is in a block.
fn told(estimate: &Estimate, wish: &Wish, params: &Params) -> CallEstimate {
    let Estimate { prices, budget, floor, lock, needed, eligible, full, offering } = *estimate;
    let spare = params.reveal_fee.checked_mul(u64::from(wish.committee_size));
    let max_fee = spare.and_then(|spare| floor.checked_add(spare)).unwrap_or(floor);
    CallEstimate { prices, budget, floor, max_fee, lock, needed, eligible, full, offering }
}

#[cfg(test)]
mod tests {
    //! For how long what was read is known.

    use super::*;

    #[test]
    fn what_was_read_is_known_at_its_height_alone() {
        let kept = AtHeight::<u32>::default();
        let asked = |height| {
            kept.at(height, |times| {
                *times += 1;
                *times
            })
        };
        assert_eq!([1, 2, 1], [5, 5, 6].map(asked));
        assert_eq!([1, 2], [5, 6].map(asked), "who looks at an earlier block changes nothing");
    }

    #[test]
    fn nobody_waits_for_long_while_another_one_reads() {
        let kept = AtHeight::<u32>::default();
        let reading = kept.0.lock();
        assert_eq!(0, kept.at(5, |times| *times));
        drop(reading);
    }
}
