//! What this node has seen of validators that contradicted themselves, kept beside the chain.

use std::collections::BTreeMap;

use state::error::StorageError;
use state::table::{Key, Table, encode_value};
use types::Address;

use super::database::Store;
use super::rocks::{Batch, Durability};
use super::tables::{Equivocation, EquivocationRows, Equivocations};

impl Store {
    /// Keeps pairs of messages that contradict each other, by who signed them; synced. A pair that
    /// is kept already is not counted again.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn add_equivocations(&self, pairs: &[(Address, Equivocation)]) -> Result<(), StorageError> {
        let _writing = self.0.writer.lock();
        let snapshot = self.snapshot();
        let mut rows: BTreeMap<Address, Equivocations> = BTreeMap::new();
        for (address, pair) in pairs {
            if !rows.contains_key(address) {
                rows.insert(*address, snapshot.equivocations(address)?);
            }
            rows.entry(*address).or_default().add(*pair);
        }
        drop(snapshot);
        let mut batch = Batch::default();
        let table = self.0.rocks.table(EquivocationRows::ID)?;
        for (address, row) in &rows {
            batch.put(&table, &address.to_bytes(), &encode_value::<EquivocationRows>(row));
        }
        self.0.rocks.write(batch, Durability::Synced)
    }
}
