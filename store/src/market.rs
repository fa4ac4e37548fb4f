//! Rows of the agent market that no root covers, made from those that it does: for a database that begins
//! with a snapshot.

use state::error::StorageError;
use state::market::offers::index_key;
use state::table::{Key, Table, encode_value};
use state::tables::{Bonds, CallMembers, CallsByMember, OfferCounts, Offers, OffersByExecutor};
use state::view::{self, Range};
use types::{Address, Amount, TxLocation};

use super::database::Store;
use super::rocks::{Batch, Durability};

/// How many offers, or members of calls, are looked at together.
const PAGE: usize = 1_000;

/// A miner in the walk over all offers, which are in the order of miners.
struct Turn {
    miner: Address,
    bonded: Amount,
    offers: u32,
}

/// Makes the rows of [`OffersByExecutor`] and [`OfferCounts`], and those of [`CallsByMember`] of calls
/// that are not settled: who was a member of the others is not in a snapshot.
pub(super) fn fill(store: &Store) -> Result<(), StorageError> {
    fill_offers(store)?;
    fill_members(store)
}

fn fill_members(store: &Store) -> Result<(), StorageError> {
    const MISSING: StorageError = StorageError::Inconsistent { what: "a member of no call" };
    let table = store.0.rocks.table(CallsByMember::ID)?;
    let snapshot = store.snapshot();
    let mut from = Vec::new();
    loop {
        let mut batch = Batch::default();
        let range = Range { from: &from, to: None, limit: PAGE };
        let page = view::scan::<CallMembers>(&snapshot, range)?;
        for ((id, miner), _) in &page {
            let TxLocation { height, position } = snapshot.call(id)?.ok_or(MISSING)?.request;
            let key = (*miner, height, position).to_bytes();
            batch.put(&table, &key, &encode_value::<CallsByMember>(id));
        }
        store.0.rocks.write(batch, Durability::Buffered)?;
        let Some((last, _)) = page.last().filter(|_| page.len() == PAGE) else { return Ok(()) };
        from = last.to_bytes();
        from.push(0);
    }
}

fn fill_offers(store: &Store) -> Result<(), StorageError> {
    let rocks = &store.0.rocks;
    let (index, counts) = (rocks.table(OffersByExecutor::ID)?, rocks.table(OfferCounts::ID)?);
    let snapshot = store.snapshot();
    let (mut from, mut turn) = (Vec::new(), None::<Turn>);
    loop {
        let mut batch = Batch::default();
        let page = view::scan::<Offers>(&snapshot, Range { from: &from, to: None, limit: PAGE })?;
        for ((miner, executor), offer) in &page {
            let mut now = match turn.take() {
                Some(turn) if turn.miner == *miner => turn,
                Some(_) | None => {
                    let bond = snapshot.get::<Bonds>(miner)?.unwrap_or_default();
                    Turn { miner: *miner, bonded: bond.bonded, offers: 0 }
                }
            };
            now.offers = now.offers.saturating_add(1);
            let place = index_key(*executor, now.bonded, *miner).to_bytes();
            batch.put(&index, &place, &encode_value::<OffersByExecutor>(offer));
            // The last one of a miner counts all.
            let count = encode_value::<OfferCounts>(&now.offers);
            batch.put(&counts, &miner.to_bytes(), &count);
            turn = Some(now);
        }
        rocks.write(batch, Durability::Buffered)?;
        let Some((last, _)) = page.last().filter(|_| page.len() == PAGE) else { return Ok(()) };
        from = last.to_bytes();
        from.push(0);
    }
}
