//! What follows from offers and bonds is there, and nothing else.

use std::collections::BTreeMap;

use types::agent::ExecutorId;
use types::{Address, Offer};

use super::{Walk, count, pages};
use crate::error::StorageError;
use crate::market::offers::index_key;
use crate::table::Table;
use crate::tables::{Assignments, Bonds, OfferCounts, Offers, OffersByExecutor};
use crate::view;

impl Walk<'_> {
    /// Each offer stands where its miner's bond puts it, each miner's offers are counted, and no row is left
    /// over. Nobody is noted as working nowhere.
    pub(super) fn offers(&mut self) -> Result<(), StorageError> {
        let (state, mut faults) = (self.state, Vec::new());
        let mut counts: BTreeMap<Address, u32> = BTreeMap::new();
        let mut offers = 0_u64;
        pages::<Offers>(state, |(miner, executor): (Address, ExecutorId), offer: Offer| {
            offers = offers.saturating_add(1);
            let count = counts.entry(miner).or_default();
            *count = count.saturating_add(1);
            let bonded = view::get::<Bonds>(state, &miner)?.unwrap_or_default().bonded;
            let place = index_key(executor, bonded, miner);
            if view::get::<OffersByExecutor>(state, &place)? != Some(offer) {
                faults.push(format!("the offer of {miner} for {executor} stands elsewhere"));
            }
            Ok(())
        })?;
        for (miner, count) in &counts {
            let counted = view::get::<OfferCounts>(state, miner)?.unwrap_or_default();
            if counted != *count {
                faults.push(format!("{miner} has {count} offers, {counted} were counted"));
            }
        }
        pages::<Assignments>(state, |(miner, executor): (Address, ExecutorId), open: u32| {
            if open == 0 {
                faults.push(format!("{miner} works nowhere for {executor}"));
            }
            Ok(())
        })?;
        for what in faults {
            self.index(Offers::ID.name, what);
        }
        let miners = u64::try_from(counts.len()).unwrap_or(u64::MAX);
        let rows = [
            (OffersByExecutor::ID.name, count::<OffersByExecutor>(state)?, offers),
            (OfferCounts::ID.name, count::<OfferCounts>(state)?, miners),
        ];
        for (table, got, expected) in rows.into_iter().filter(|(_, got, expected)| got != expected)
        {
            self.index(table, format!("{got} rows, expected {expected}"));
        }
        Ok(())
    }
}
