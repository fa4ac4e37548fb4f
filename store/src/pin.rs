//! The state of one height for as long as somebody holds it, read through the memory of hot rows.
//!
//! ```text
//!   commit of h + 1   what its rows were ─▶ every pin of h       then the write
//!   read at h         has the pin a former value? ─▶ that        else the newest value is that of h
//! ```
//!
//! RocksDB's own snapshots would do, too, but reads of them pass by the hot rows, and the pool reads
//! for each transaction. So a pin costs nothing until the database moves on, and then each commit
//! gives it the former values of the rows that it changes. Whoever holds a pin takes a new one after
//! each block; one that is held for longer than a few blocks is lost, so that a chain that catches up
//! does not collect former values for somebody who does not ask.

use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use state::Base;
use state::draft::Changes;
use state::error::StorageError;
use state::table::{Table, TableId};
use state::tables::{
    Figures, FiguresOfSubmitters, OffersByExecutor, READ_BY_CHECKS, READ_FOR_RULES, Supplies,
    Turns, Unbondings,
};
use state::view::{Range, RawRow, Read, Still};

use super::{Inner, Latest, Store};

/// The tables that executing reads and no check does; and the order of offers, which CALL_APPEAL reads from
/// the committed state alone: a draft that only checks does not keep it.
const READ_BY_EXECUTION: [TableId; 5] =
    [Figures::ID, FiguresOfSubmitters::ID, OffersByExecutor::ID, Supplies::ID, Unbondings::ID];

/// The tables that transactions read, be it to be checked or to be executed.
pub fn pinned_tables() -> impl Iterator<Item = TableId> {
    READ_BY_CHECKS.into_iter().chain(READ_BY_EXECUTION).chain(READ_FOR_RULES)
}

/// After so many commits a pin is lost. The pool takes a new one after each block, and a simulation
/// takes no longer than a block.
const COMMITS_MAX: usize = 4;

/// The state after one block: no answer changes, whatever is committed meanwhile. It has the tables
/// that transactions read; other tables are refused.
pub struct Pinned {
    latest: Latest,
    kept: Arc<Kept>,
    height: u64,
}

/// What later commits changed.
#[derive(Default)]
struct Kept(RwLock<Former>);

#[derive(Default)]
struct Former {
    /// For each commit, the earliest first, what the rows were that it changed.
    values: Vec<Arc<Changes>>,
    is_lost: bool,
}

/// Everybody's pins.
#[derive(Default)]
pub(super) struct Pins(Mutex<Vec<Weak<Kept>>>);

impl Pins {
    /// Whether anybody has a pin that is not lost.
    pub(super) fn is_any(&self) -> bool {
        self.0.lock().iter().any(|kept| kept.strong_count() > 0)
    }

    /// A commit is about to be written that changes rows with these values. Without them, because the
    /// pin was taken after the block had been prepared, a pin is lost.
    pub(super) fn keep(&self, former: Option<&Arc<Changes>>) {
        self.0.lock().retain(|pin| {
            let Some(kept) = pin.upgrade() else { return false };
            let mut kept = kept.0.write();
            match former {
                Some(values) if kept.values.len() < COMMITS_MAX => {
                    kept.values.push(Arc::clone(values));
                }
                _ => {
                    kept.is_lost = true;
                    kept.values.clear();
                }
            }
            !kept.is_lost
        });
    }
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
        let kept = Arc::new(Kept::default());
        self.0.pins.0.lock().push(Arc::downgrade(&kept));
        Ok(Pinned { latest: Latest(Arc::clone(&self.0)), kept, height })
    }
}

/// What the pinned rows among `changes` are before they are written.
pub(super) fn former(inner: &Arc<Inner>, changes: &Changes) -> Result<Changes, StorageError> {
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

impl Former {
    /// Refuses if the pin is lost, or has no such table.
    fn check(&self, height: u64, table: TableId) -> Result<(), StorageError> {
        const OTHER: StorageError =
            StorageError::Inconsistent { what: "a transaction read a table that is not pinned" };
        if self.is_lost {
            return Err(StorageError::Moved { height });
        }
        if pinned_tables().any(|pinned| pinned == table) { Ok(()) } else { Err(OTHER) }
    }

    /// What a row was, if it was changed since: the value before the first change.
    fn value(&self, table: TableId, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.values.iter().find_map(|values| values.get(&table)?.get(key))
    }
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
        let mut former = std::collections::BTreeMap::new();
        // The earliest value is the last one to be put in.
        for values in kept.values.iter().rev() {
            let rows = values.get(&table).into_iter().flatten();
            former.extend(rows.filter(|(key, _)| is_inside(key)));
        }
        let limit = range.limit.saturating_add(former.len());
        let newest = self.latest.scan_raw(table, Range { limit, ..range })?;
        let mut rows: std::collections::BTreeMap<_, _> = newest.into_iter().collect();
        for (key, value) in former {
            match value {
                Some(value) => drop(rows.insert(key.clone(), value.clone())),
                None => drop(rows.remove(key)),
            }
        }
        Ok(rows.into_iter().take(range.limit).collect())
    }
}
