//! Writing: changes on top of a state, kept apart until they are committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::codec;

use crate::error::StorageError;
use crate::table::{Key, Table, TableId};
use crate::view::{self, Range, RawRow, Read};

/// New values by table and key; `None` deletes. Ordered, so that the same block gives the same
/// bytes in the same order everywhere.
pub type Changes = BTreeMap<TableId, BTreeMap<Vec<u8>, Option<Vec<u8>>>>;

/// A state with uncommitted changes. Reads see them.
pub struct Draft {
    base: Arc<dyn Read>,
    changes: Changes,
}

impl Draft {
    /// An empty draft over `base`.
    #[must_use]
    pub fn new(base: Arc<dyn Read>) -> Self {
        Self { base, changes: Changes::new() }
    }

    /// The value of a key, changes included.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the value does not decode.
    pub fn get<T: Table>(&self, key: &T::Key) -> Result<Option<T::Value>, StorageError> {
        view::get::<T>(self, key)
    }

    /// Sets a row.
    pub fn put<T: Table>(&mut self, key: &T::Key, value: &T::Value) {
        self.change(T::ID, key.to_bytes(), Some(codec::encode(value)));
    }

    /// Deletes a row.
    pub fn delete<T: Table>(&mut self, key: &T::Key) {
        self.change(T::ID, key.to_bytes(), None);
    }

    fn change(&mut self, table: TableId, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.changes.entry(table).or_default().insert(key, value);
    }

    /// What was changed so far.
    #[must_use]
    pub const fn changes(&self) -> &Changes {
        &self.changes
    }

    /// What was changed, without the draft.
    #[must_use]
    pub fn into_changes(self) -> Changes {
        self.changes
    }

    /// Puts the draft over another base and forgets the changes that the base now holds.
    /// For the pool's draft after a commit.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn rebase(&mut self, base: Arc<dyn Read>, committed: &Changes) -> Result<(), StorageError> {
        for (table, rows) in committed {
            let Some(ours) = self.changes.get_mut(table) else { continue };
            for (key, value) in rows {
                if ours.get(key) == Some(value) {
                    ours.remove(key);
                }
            }
        }
        self.base = base;
        Ok(())
    }
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rows: usize = self.changes.values().map(BTreeMap::len).sum();
        write!(f, "Draft({rows} changed rows)")
    }
}

impl Read for Draft {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        match self.changes.get(&table).and_then(|rows| rows.get(key)) {
            Some(changed) => Ok(changed.clone()),
            None => self.base.get_raw(table, key),
        }
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        let Some(changed) = self.changes.get(&table) else {
            return self.base.scan_raw(table, range);
        };
        let above = changed.range(range.from.to_vec()..);
        let inside: Vec<_> =
            above.take_while(|(key, _)| range.to.is_none_or(|to| key.as_slice() < to)).collect();
        let deleted = inside.iter().filter(|(_, value)| value.is_none()).count();
        let limit = range.limit.saturating_add(deleted);
        let below = self.base.scan_raw(table, Range { limit, ..range })?;
        let mut rows: BTreeMap<Vec<u8>, Vec<u8>> = below.into_iter().collect();
        for (key, value) in inside {
            match value {
                Some(value) => drop(rows.insert(key.clone(), value.clone())),
                None => drop(rows.remove(key)),
            }
        }
        Ok(rows.into_iter().take(range.limit).collect())
    }
}
