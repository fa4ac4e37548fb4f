//! A state in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::draft::Changes;
use crate::error::StorageError;
use crate::table::TableId;
use crate::view::{Range, RawRow, Read, Still};

type Rows = BTreeMap<Vec<u8>, Arc<[u8]>>;
/// A table is copied when it changes while a copy of the state has it, too.
type Tables = BTreeMap<TableId, Arc<Rows>>;

/// Rows in memory. Starts empty.
#[derive(Debug, Default)]
pub struct Memory {
    tables: RwLock<Tables>,
}

impl Memory {
    /// Makes changes part of the state.
    pub fn apply(&self, changes: &Changes) {
        let mut tables = self.tables.write();
        for (table, rows) in changes {
            let ours = Arc::make_mut(tables.entry(*table).or_default());
            for (key, value) in rows {
                match value {
                    Some(value) => drop(ours.insert(key.clone(), value.as_slice().into())),
                    None => drop(ours.remove(key)),
                }
            }
        }
    }

    /// A copy that nobody changes. Costs next to nothing until the state changes.
    #[must_use]
    pub fn still(&self) -> Still {
        let tables = RwLock::new(self.tables.read().clone());
        Still::vouched(Arc::new(Self { tables }))
    }

    /// Every row in order: two states are equal if and only if these are.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
        let tables = self.tables.read();
        let rows = tables.iter().flat_map(|(table, rows)| {
            rows.iter().map(|(key, value)| (table.name, key.clone(), value.to_vec()))
        });
        rows.collect()
    }
}

impl Read for Memory {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let tables = self.tables.read();
        Ok(tables.get(&table).and_then(|rows| rows.get(key)).map(|value| value.to_vec()))
    }

    fn contains_raw(&self, table: TableId, key: &[u8]) -> Result<bool, StorageError> {
        Ok(self.tables.read().get(&table).is_some_and(|rows| rows.contains_key(key)))
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        let tables = self.tables.read();
        let Some(rows) = tables.get(&table) else { return Ok(Vec::new()) };
        let inside = rows
            .range::<[u8], _>((std::ops::Bound::Included(range.from), std::ops::Bound::Unbounded))
            .take_while(|(key, _)| range.to.is_none_or(|to| key.as_slice() < to))
            .take(range.limit);
        Ok(inside.map(|(key, value)| (key.clone(), value.to_vec())).collect())
    }
}
