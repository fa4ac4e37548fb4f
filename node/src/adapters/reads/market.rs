//! The market as requesters see it: what a call would cost, and from whom members were drawn.

use rpc::ports::{self, CallEstimate, CallWish, HeldElection, PortFault};
use state::StorageError;
use state::market::estimate::{Estimate, Wish, at_prices, estimate};
use state::tables::{CallCandidates, Calls};
use state::view;
use types::{AgentVersion, Hash, Params};

use super::{Reads, fault};

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
            let (_, rules) = self.rules(&snapshot)?;
            let found = match prices {
                Some(prices) => at_prices(&snapshot, &rules.params, agent, (&wish, &prices))?,
                None => Some(estimate(&snapshot, &rules.params, agent, &wish)?),
            };
            Ok(found.map(|found| told(&found, &wish, &rules.params)))
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
