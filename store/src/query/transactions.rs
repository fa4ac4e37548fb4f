//! Transactions by hash and by place.

use state::error::StorageError;
use state::view;
use types::{CheckedTx, Hash, TxLocation};

use crate::snapshot::Snapshot;
use crate::tables::{TxIndex, TxKey};

/// A transaction of the chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredTx {
    /// Where it is.
    pub location: TxLocation,
    /// The transaction.
    pub tx: CheckedTx,
}

impl Snapshot<'_> {
    /// Where a transaction is; none if it is in no block.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn location(&self, hash: &Hash) -> Result<Option<TxLocation>, StorageError> {
        Ok(self.transaction(hash)?.map(|stored| stored.location))
    }

    /// A transaction by its hash.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn transaction(&self, hash: &Hash) -> Result<Option<StoredTx>, StorageError> {
        let Some(location) = self.get::<TxIndex>(&TxKey::of(hash))? else { return Ok(None) };
        let tx = self.bodies_at(&[location])?.pop();
        // The index has half of the hash.
        let tx = tx.filter(|tx| tx.hash() == *hash);
        Ok(tx.map(|tx| StoredTx { location, tx }))
    }

    /// Whether a block holds a transaction, by the half of its hash that the index has. Reads no
    /// transaction, which may be long: for whoever is asked often. A transaction of another hash that
    /// is taken for this one takes its maker 2^64 work.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn has_transaction(&self, hash: &Hash) -> Result<bool, StorageError> {
        view::contains::<TxIndex>(self, &TxKey::of(hash))
    }

    /// The transactions at `places`, in that order. Neighbours cost one read together.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or one of them is not there.
    pub fn transactions(&self, places: &[TxLocation]) -> Result<Vec<CheckedTx>, StorageError> {
        self.bodies_at(places)
    }
}
