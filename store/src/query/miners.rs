//! The miner directory.

use state::error::StorageError;
use state::table::Key;
use state::tables::{Figures, MinerIds, Miners, Unbondings};
use state::view::{self, Range};
use types::{Address, Amount, Hash, Miner, MinerFigures};

use crate::snapshot::Snapshot;

/// An entry of the directory with what the miner has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MinerDetail {
    /// The entry.
    pub miner: Miner,
    /// What it has done.
    pub figures: MinerFigures,
}

impl Snapshot<'_> {
    /// Registered miners in the order of their addresses: those after `after`, at most `limit`.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn miners(
        &self,
        after: Option<&Address>,
        limit: usize,
    ) -> Result<Vec<MinerDetail>, StorageError> {
        let mut from = after.map(Key::to_bytes).unwrap_or_default();
        if after.is_some() {
            from.push(0); // the first key behind the mark
        }
        let rows = view::scan::<Miners>(self, Range { from: &from, to: None, limit })?;
        rows.into_iter().map(|(_, miner)| self.with_figures(miner)).collect()
    }

    /// A registered miner by its account.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn miner(&self, address: &Address) -> Result<Option<MinerDetail>, StorageError> {
        self.get::<Miners>(address)?.map(|miner| self.with_figures(miner)).transpose()
    }

    /// A registered miner by its id.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn miner_by_id(&self, id: &Hash) -> Result<Option<MinerDetail>, StorageError> {
        match self.get::<MinerIds>(id)? {
            Some(address) => self.miner(&address),
            None => Ok(None),
        }
    }

    /// What an account has done as a miner, registered or not.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn miner_figures(&self, address: &Address) -> Result<MinerFigures, StorageError> {
        Ok(self.get::<Figures>(address)?.unwrap_or_default())
    }

    /// What a miner has taken out of its bond and has not got yet, with the times at which it is due,
    /// the earliest first, at most `limit`. What it got was deleted; it is not stepped over.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn unbonding(
        &self,
        address: &Address,
        limit: usize,
    ) -> Result<Vec<(u64, Amount)>, StorageError> {
        // Nothing is due before the first deadline that is there.
        let lowest = self.beside.as_ref().map_or(&[][..], |beside| &beside.lowest_deadline);
        let first = lowest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
        let (from, to) = ((*address, first).to_bytes(), (*address, u64::MAX).to_bytes());
        let range = Range { from: &from, to: Some(&to), limit };
        let rows = view::scan::<Unbondings>(self, range)?;
        Ok(rows.into_iter().map(|((_, due), amount)| (due, amount)).collect())
    }

    fn with_figures(&self, miner: Miner) -> Result<MinerDetail, StorageError> {
        let figures = self.miner_figures(&miner.address)?;
        Ok(MinerDetail { miner, figures })
    }
}
