//! Offers of miners, and those for each executor in the order of bonds (docs/protocol.md section 17.1).
//!
//! Anybody with a small bond may offer for an executor, so there can be many more offers than an election may
//! read. `offers_by_executor` has them with the largest bonds first: an election reads as many rows as
//! count, from the first on. So a row stands where its miner's bond puts it, and whoever changes a bond
//! moves the rows of that miner: at most [`OFFERS_PER_MINER_MAX`], those of one miner alone.

use types::agent::ExecutorId;
use types::params::OFFERS_PER_MINER_MAX;
use types::{Address, Amount, Offer, Params};

use crate::draft::Draft;
use crate::error::StorageError;
use crate::table::{Key, Table};
use crate::tables::{Bonds, OfferCounts, Offers, OffersByExecutor};
use crate::view::{self, Range, Read};

/// An offer for an executor that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ranked {
    /// Whose it is.
    pub miner: Address,
    /// That miner's bond.
    pub bond: Amount,
    /// What it says.
    pub offer: Offer,
}

/// The offers for an executor that count, the largest bonds first, ties by lower address: at most
/// `offersPerExecutorMax`, and none whose miner's bond is below `minBond`. Reads no row besides, however
/// many offers there are.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn counting(
    state: &dyn Read,
    executor: ExecutorId,
    params: &Params,
) -> Result<Vec<Ranked>, StorageError> {
    // A bond of nothing has the last place of all, and counts nowhere.
    let last = OffersByExecutor::place(Amount::ZERO);
    let (from, to) = (executor.to_bytes(), (executor, last).to_bytes());
    let limit = usize::try_from(params.offers_per_executor_max).unwrap_or(usize::MAX);
    let rows = view::scan::<OffersByExecutor>(state, Range { from: &from, to: Some(&to), limit })?;
    let ranked = rows.into_iter().map(|((_, place, miner), offer)| Ranked {
        miner,
        bond: OffersByExecutor::bond(place),
        offer,
    });
    Ok(ranked.take_while(|it| it.bond >= params.min_bond).collect())
}

/// How many offers a miner has.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn count(state: &dyn Read, miner: Address) -> Result<u32, StorageError> {
    Ok(view::get::<OfferCounts>(state, &miner)?.unwrap_or_default())
}

/// The offers of a miner, in the order of executors.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn of_miner(
    state: &dyn Read,
    miner: Address,
) -> Result<Vec<(ExecutorId, Offer)>, StorageError> {
    // No executor has such a first byte.
    let (from, to) = (miner.to_bytes(), (miner, u8::MAX).to_bytes());
    let limit = usize::try_from(OFFERS_PER_MINER_MAX).unwrap_or(usize::MAX);
    let rows = view::scan::<Offers>(state, Range { from: &from, to: Some(&to), limit })?;
    Ok(rows.into_iter().map(|((_, executor), offer)| (executor, offer)).collect())
}

/// The place of an offer among those for its executor.
#[must_use]
pub const fn index_key(
    executor: ExecutorId,
    bond: Amount,
    miner: Address,
) -> (ExecutorId, u64, Address) {
    (executor, OffersByExecutor::place(bond), miner)
}

/// Puts or replaces an offer. The caller has checked how many the miner has.
pub(crate) fn put(
    draft: &mut Draft,
    miner: Address,
    executor: ExecutorId,
    offer: &Offer,
) -> Result<(), StorageError> {
    const MANY: StorageError =
        StorageError::Inconsistent { what: "a miner has more offers than can be counted" };
    let key = (miner, executor);
    let place = index_key(executor, bonded(draft, miner)?, miner);
    if view::contains::<Offers>(draft, &key)? {
        draft.put::<Offers>(&key, offer);
        draft.put::<OffersByExecutor>(&place, offer);
        return Ok(());
    }
    let count = count(draft, miner)?.checked_add(1).ok_or(MANY)?;
    draft.put::<OfferCounts>(&miner, &count);
    draft.insert::<Offers>(&key, offer);
    draft.insert::<OffersByExecutor>(&place, offer);
    Ok(())
}

/// Removes an offer, if the miner has one for this executor.
pub(crate) fn remove(
    draft: &mut Draft,
    miner: Address,
    executor: ExecutorId,
) -> Result<(), StorageError> {
    let key = (miner, executor);
    if !view::contains::<Offers>(draft, &key)? {
        return Ok(());
    }
    draft.delete::<Offers>(&key);
    let place = index_key(executor, bonded(draft, miner)?, miner);
    draft.delete::<OffersByExecutor>(&place);
    match count(draft, miner)?.checked_sub(1).filter(|left| *left > 0) {
        Some(left) => draft.put::<OfferCounts>(&miner, &left),
        None => draft.delete::<OfferCounts>(&miner),
    }
    Ok(())
}

/// A miner's bond has changed: its offers stand elsewhere among those for their executors.
pub(crate) fn follow_bond(
    draft: &mut Draft,
    miner: Address,
    before: Amount,
    after: Amount,
) -> Result<(), StorageError> {
    // A draft that only checks does not keep the order: CALL_APPEAL reads that of the committed state.
    if before == after || !draft.keeps(OffersByExecutor::ID) || count(draft, miner)? == 0 {
        return Ok(());
    }
    for (executor, offer) in of_miner(draft, miner)? {
        draft.delete::<OffersByExecutor>(&index_key(executor, before, miner));
        draft.insert::<OffersByExecutor>(&index_key(executor, after, miner), &offer);
    }
    Ok(())
}

fn bonded(draft: &Draft, miner: Address) -> Result<Amount, StorageError> {
    Ok(draft.get::<Bonds>(&miner)?.unwrap_or_default().bonded)
}
