//! The batch of a commit in the making.

use state::draft::Changes;
use state::error::StorageError;
use state::params::BASE_FEE_FLOOR;
use state::table::{Key, Table, TableId, decode_value, encode_value};
use state::tables::ParamRows;
use types::{Block, BlockEvents, TxLocation, codec};

use crate::meta::{TIP_CELL, Tip};
use crate::rocks::{Batch, Rocks};
use crate::tables::{
    AccountHistory, BODIES, FeeFloors, META, TREE_NODES, TREE_STALE, TxIndex, TxKey,
};
use crate::tree::TreeUpdate;
use crate::{bodies, history};

/// A batch with room for what a block will put into it: growing it later means copying it.
pub(super) fn room_for(block: &Block) -> Batch {
    let sizes = block.transactions.iter().map(|tx| tx.encoded_bytes());
    let bytes = sizes.fold(16 << 10, usize::saturating_add);
    Batch::with_capacity(bytes.saturating_mul(2))
}

/// A batch in the making.
pub(super) struct Writer<'a> {
    pub(super) rocks: &'a Rocks,
    pub(super) batch: Batch,
}

impl Writer<'_> {
    pub(super) fn raw(
        &mut self,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), StorageError> {
        self.batch.put(&self.rocks.table(table)?, key, value);
        Ok(())
    }

    pub(super) fn typed<T: Table>(
        &mut self,
        key: &T::Key,
        value: &T::Value,
    ) -> Result<(), StorageError> {
        self.raw(T::ID, &key.to_bytes(), &encode_value::<T>(value))
    }

    /// Rows of execution.
    pub(super) fn rows(&mut self, changes: &Changes) -> Result<(), StorageError> {
        for (table, rows) in changes {
            let table = self.rocks.table(*table)?;
            for (key, value) in rows {
                match value {
                    Some(value) => self.batch.put(&table, key, value),
                    None => self.batch.delete(&table, key),
                }
            }
        }
        Ok(())
    }

    /// The lowest base fee from a block on, if the block touches it.
    pub(super) fn fee_floor(&mut self, height: u64, changes: &Changes) -> Result<(), StorageError> {
        let rows = changes.get(&ParamRows::ID);
        let row = rows.and_then(|rows| rows.get(BASE_FEE_FLOOR.as_bytes()));
        let Some(Some(row)) = row else { return Ok(()) };
        self.typed::<FeeFloors>(&height, &decode_value::<ParamRows>(row)?.at(height))
    }

    /// Nodes of the tree, and the tip.
    pub(super) fn tree(&mut self, tree: &TreeUpdate, tip: &Tip) -> Result<(), StorageError> {
        let nodes = self.rocks.table(TREE_NODES)?;
        for (key, node) in &tree.nodes {
            self.batch.put(&nodes, key, node);
        }
        if !tree.stale.is_empty() {
            self.raw(TREE_STALE, &tip.height.to_be_bytes(), &tree.stale_value())?;
        }
        self.raw(META, TIP_CELL, &codec::encode(tip))
    }

    /// The block's transactions and their indexes, each table in the order of its keys: RocksDB
    /// finds the place of a row faster beside the one before.
    pub(super) fn block(
        &mut self,
        block: &Block,
        events: &BlockEvents,
    ) -> Result<(), StorageError> {
        let height = block.header.index;
        let bodies = self.rocks.table(BODIES)?;
        for (first, bytes) in bodies::segments(block) {
            self.batch.put(&bodies, &(height, first).to_bytes(), &bytes);
        }
        let mut index: Vec<(TxKey, u32)> = block
            .transactions
            .iter()
            .zip(0_u32..)
            .map(|(tx, position)| (TxKey::of(&tx.hash()), position))
            .collect();
        index.sort_unstable();
        let table = self.rocks.table(TxIndex::ID)?;
        for (key, position) in index {
            let place = encode_value::<TxIndex>(&TxLocation { height, position });
            self.batch.put(&table, &key.to_bytes(), &place);
        }
        for (address, positions) in history::positions(block, events) {
            self.typed::<AccountHistory>(&(address, height), &positions)?;
        }
        Ok(())
    }
}
