//! Offers for whoever asks: in pages, with what their miners have at stake and do.

use types::agent::ExecutorId;
use types::{Address, Amount, Bond, Offer, Params};

use super::assignments;
use super::offers::{Ranked, counting, index_key};
use crate::error::StorageError;
use crate::table::{Key, Table};
use crate::tables::{Bonds, Offers, OffersByExecutor};
use crate::view::{self, Range, Read};

/// Which offers; conditions that are given must both hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// For this executor: the largest bonds first, ties by lower address.
    pub executor: Option<ExecutorId>,
    /// Of this miner.
    pub miner: Option<Address>,
}

/// The place of an offer in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OfferCursor {
    /// Its miner.
    pub miner: Address,
    /// Its executor.
    pub executor: ExecutorId,
    /// The miner's bond.
    pub bonded: Amount,
}

/// An offer in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Whose it is.
    pub miner: Address,
    /// For which executor.
    pub executor: ExecutorId,
    /// What it says.
    pub offer: Offer,
    /// What the miner has at stake.
    pub bond: Bond,
    /// At how many calls the miner works for this executor.
    pub open: u32,
    /// Whether an election would read it; only told of the offers for one executor.
    pub counts: Option<bool>,
}

impl Listed {
    /// Its place in the list.
    #[must_use]
    pub const fn place(&self) -> OfferCursor {
        OfferCursor { miner: self.miner, executor: self.executor, bonded: self.bond.bonded }
    }
}

/// Offers after a place, at most `limit`: for one executor in the order of bonds, else by miner and executor.
/// Reads a few rows for each of them, and for one executor the offers that count.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn list(
    state: &dyn Read,
    params: &Params,
    filter: &Filter,
    after: Option<&OfferCursor>,
    limit: usize,
) -> Result<Vec<Listed>, StorageError> {
    let found = match *filter {
        Filter { executor: Some(executor), miner: Some(miner) } => {
            let offer = view::get::<Offers>(state, &(miner, executor))?;
            let found = offer.filter(|_| after.is_none() && limit > 0);
            found.map(|offer| (miner, executor, offer)).into_iter().collect()
        }
        Filter { executor: Some(executor), miner: None } => {
            let key =
                |place: &OfferCursor| index_key(executor, place.bonded, place.miner).to_bytes();
            let rows =
                rows::<OffersByExecutor>(state, &executor.to_bytes(), after.map(key), limit)?;
            rows.into_iter().map(|((_, _, miner), offer)| (miner, executor, offer)).collect()
        }
        Filter { executor: None, miner } => {
            let key = |place: &OfferCursor| (place.miner, place.executor).to_bytes();
            let prefix = miner.map(|miner| miner.to_bytes()).unwrap_or_default();
            let rows = rows::<Offers>(state, &prefix, after.map(key), limit)?;
            rows.into_iter().map(|((miner, executor), offer)| (miner, executor, offer)).collect()
        }
    };
    listed(state, params, filter.executor, found)
}

/// What the list tells beside the offers.
fn listed(
    state: &dyn Read,
    params: &Params,
    executor: Option<ExecutorId>,
    found: Vec<(Address, ExecutorId, Offer)>,
) -> Result<Vec<Listed>, StorageError> {
    let counting = executor.map(|executor| counting(state, executor, params)).transpose()?;
    let list = found.into_iter().map(|(miner, executor, offer)| {
        let is_it = |it: &Ranked| it.miner == miner;
        Ok(Listed {
            miner,
            executor,
            offer,
            bond: view::get::<Bonds>(state, &miner)?.unwrap_or_default(),
            open: assignments::open(state, miner, executor)?,
            counts: counting.as_ref().map(|counting| counting.iter().any(is_it)),
        })
    });
    list.collect()
}

/// Rows whose keys begin with `prefix`, after a key.
fn rows<T: Table>(
    state: &dyn Read,
    prefix: &[u8],
    after: Option<Vec<u8>>,
    limit: usize,
) -> Result<Vec<view::Row<T>>, StorageError> {
    let mut from = prefix.to_vec();
    if let Some(after) = after {
        from = after;
        from.push(0);
    }
    // Longer than what is behind a prefix, and above it.
    let to = [prefix, &[0xff; 64]].concat();
    let to = (!prefix.is_empty()).then_some(to.as_slice());
    view::scan::<T>(state, Range { from: &from, to, limit })
}
