//! Offers of miners for executors.

use rpc::ports::{self, OfferEntry, OfferFilter, OfferPlace, PortFault, Slice};
use state::StorageError;
use state::market::list::{Filter, Listed, OfferCursor, list};

use super::{Reads, fault, page};

impl ports::Offers for Reads {
    fn list(
        &self,
        filter: &OfferFilter,
        after: Option<OfferPlace>,
        limit: usize,
    ) -> Result<Slice<OfferEntry, OfferPlace>, PortFault> {
        let OfferFilter { executor, miner } = *filter;
        let after = after.map(|OfferPlace { miner, executor, bonded }| OfferCursor {
            miner,
            executor,
            bonded,
        });
        let read = || -> Result<Vec<Listed>, StorageError> {
            let snapshot = self.snapshot();
            let (_, rules) = self.rules(&snapshot)?;
            let filter = Filter { executor, miner };
            list(&snapshot, &rules.params, &filter, after.as_ref(), limit.saturating_add(1))
        };
        let listed = read().map_err(fault("listing offers"))?;
        let entries = listed.into_iter().map(entry).collect();
        Ok(page(entries, limit, |it: &OfferEntry| OfferPlace {
            miner: it.miner,
            executor: it.executor,
            bonded: it.bond.bonded,
        }))
    }
}

fn entry(listed: Listed) -> OfferEntry {
    let Listed { miner, executor, offer, bond, open, counts } = listed;
    OfferEntry { miner, executor, offer, bond, open, counts }
}
