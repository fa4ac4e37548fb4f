//! Accounts, their history, and the supply.

use state::error::StorageError;
use state::table::Key;
use state::tables::{Accounts, Supplies};
use state::view::{self, Range};
use types::{Account, Address, Supply, TxLocation};

use super::StoredTx;
use crate::snapshot::Snapshot;
use crate::tables::AccountHistory;

/// Accounts that are in memory at the same time while all are visited.
const VISITED_TOGETHER: usize = 1_024;

impl Snapshot<'_> {
    /// An account; one that does not exist has zeros.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn account(&self, address: &Address) -> Result<Account, StorageError> {
        Ok(self.get::<Accounts>(address)?.unwrap_or_default())
    }

    /// Where the transactions are that concern an account, newest first: those below `before`, at
    /// most `limit`. It sent them, a TRANSFER names it, or an AGENT_FINISH settles its run.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn account_places(
        &self,
        address: &Address,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Vec<TxLocation>, StorageError> {
        let mut places = Vec::new();
        if limit == 0 {
            return Ok(places);
        }
        // A row holds a whole block, so the block of the mark itself has to be looked at as well.
        let below =
            before.map(|mark| TxLocation { height: mark.height.saturating_add(1), position: 0 });
        self.walk_back::<AccountHistory>(&address.to_bytes(), below, |(_, height), positions| {
            let here = positions.into_iter().rev().map(|position| TxLocation { height, position });
            places.extend(here.filter(|place| before.is_none_or(|mark| *place < mark)));
            Ok(places.len() < limit)
        })?;
        places.truncate(limit);
        Ok(places)
    }

    /// [`Snapshot::account_places`] with the transactions.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn account_transactions(
        &self,
        address: &Address,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Vec<StoredTx>, StorageError> {
        let places = self.account_places(address, before, limit)?;
        let txs = self.bodies_at(&places)?;
        Ok(places.into_iter().zip(txs).map(|(location, tx)| StoredTx { location, tx }).collect())
    }

    /// Shows every account to `visit`, in order of addresses.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn visit_accounts(
        &self,
        mut visit: impl FnMut(Address, Account),
    ) -> Result<(), StorageError> {
        let mut from = Vec::new();
        loop {
            let range = Range { from: &from, to: None, limit: VISITED_TOGETHER };
            let rows = view::scan::<Accounts>(self, range)?;
            let is_last = rows.len() < VISITED_TOGETHER;
            if let Some((address, _)) = rows.last() {
                from = address.to_bytes();
                from.push(0); // the first key behind it
            }
            rows.into_iter().for_each(|(address, account)| visit(address, account));
            if is_last {
                return Ok(());
            }
        }
    }

    /// The money of the chain.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn supply(&self) -> Result<Supply, StorageError> {
        Ok(self.get::<Supplies>(&())?.unwrap_or_default())
    }
}
