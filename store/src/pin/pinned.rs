//! A pin: the state after one block, read through the memory of hot rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use state::Base;
use state::draft::Changes;
use state::error::StorageError;
use state::table::{Table, TableId};
use state::tables::Turns;
use state::view::{Range, RawRow, Read, Still};

use super::kept::Kept;
use super::tables::pinned_tables;
use crate::database::{Inner, Store};
use crate::latest::Latest;

/// The state after one block: no answer changes, whatever is committed meanwhile. It has the tables
/// that transactions read; other tables are refused.
pub struct Pinned {
    latest: Latest,
    kept: Arc<Kept>,
    height: u64,
}

impl Store {
    /// The state of this moment, for whoever asks much and must be fast. Waits for a commit that is
    /// being written.
    ///
    /// # Errors
    /// [`StorageError::Empty`] before [`Store::init`].
    pub fn pin(&self) -> Result<Pinned, StorageError> {
        let _nobody_writes = self.0.writer.lock();
        let height = self.tip()?.height;
        let kept = self.0.memory.pins.add();
        Ok(Pinned { latest: Latest(Arc::clone(&self.0)), kept, height })
    }
}

/// What the pinned rows among `changes` are before they are written.
pub(crate) fn former(inner: &Arc<Inner>, changes: &Changes) -> Result<Changes, StorageError> {
    let latest = Latest(Arc::clone(inner));
    let mut former = Changes::new();
    for table in pinned_tables() {
        let Some(rows) = changes.get(&table) else { continue };
        let before = rows.keys().map(|key| {
            // A turn has the hash of its transaction: it is written once.
            let value = if table == Turns::ID { None } else { latest.get_raw(table, key)? };
            Ok((key.clone(), value))
        });
        former.insert(table, before.collect::<Result<_, StorageError>>()?);
    }
    Ok(former)
}

impl Pinned {
    /// The block after which this is the state.
    #[must_use]
    pub const fn height(&self) -> u64 {
        self.height
    }
}

impl From<Pinned> for Still {
    fn from(pinned: Pinned) -> Self {
        Self::vouched(Arc::new(pinned))
    }
}

impl From<Pinned> for Base {
    fn from(pinned: Pinned) -> Self {
        Self { height: pinned.height(), state: pinned.into() }
    }
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pinned({})", self.height)
    }
}

// The lock is held during the look-up below: a commit gives the former values before it writes, and
// waits for this one to end. It is a read lock that nobody holds for longer than one look-up.
impl Read for Pinned {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let former = self.kept.0.read();
        former.check(self.height, table)?;
        match former.value(table, key) {
            Some(value) => Ok(value.clone()),
            None => self.latest.get_raw(table, key),
        }
    }

    fn contains_raw(&self, table: TableId, key: &[u8]) -> Result<bool, StorageError> {
        let former = self.kept.0.read();
        former.check(self.height, table)?;
        match former.value(table, key) {
            Some(value) => Ok(value.is_some()),
            None => self.latest.contains_raw(table, key),
        }
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        let kept = self.kept.0.read();
        kept.check(self.height, table)?;
        if kept.values.is_empty() {
            return self.latest.scan_raw(table, range);
        }
        let is_inside = |key: &[u8]| range.from <= key && range.to.is_none_or(|to| key < to);
        let mut former = BTreeMap::new();
        // The earliest value is the last one to be put in.
        for values in kept.values.iter().rev() {
            let rows = values.get(&table).into_iter().flatten();
            former.extend(rows.filter(|(key, _)| is_inside(key)));
        }
        let limit = range.limit.saturating_add(former.len());
        let newest = self.latest.scan_raw(table, Range { limit, ..range })?;
        let mut rows: BTreeMap<_, _> = newest.into_iter().collect();
        for (key, value) in former {
            match value {
                Some(value) => drop(rows.insert(key.clone(), value.clone())),
                None => drop(rows.remove(key)),
            }
        }
        Ok(rows.into_iter().take(range.limit).collect())
    }
}
