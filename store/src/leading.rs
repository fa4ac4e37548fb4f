//! The offers that may count for an executor, in memory.
//!
//! An election, and whoever checks an appeal, reads the first rows of [`OffersByExecutor`] for an executor.
//! A bond that changes moves the offers of its miner, and a row that has moved stays in RocksDB as a
//! tombstone until the next compaction: for the fees of some thousand small changes anybody could have all
//! elections step over tens of thousands of them. So the first rows for each executor that was asked for are
//! kept here, and follow the commits.
//!
//! ```text
//!   rows     b₁ b₂ … bₙ   all that there are below `end`      beyond `end`   RocksDB knows
//! ```
//!
//! When too few are left, the list is forgotten and read again: that steps over tombstones once for each
//! [`KEPT`] / 2 rows that somebody has paid to take away.
//!
//! Of a snapshot only the newest state is answered; one that a commit has overtaken asks RocksDB.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use state::draft::Changes;
use state::error::StorageError;
use state::table::{Table, TableId};
use state::tables::OffersByExecutor;
use state::view::{Range, RawRow};

use super::rocks::Source;
use super::{TIP_CELL, Tip, read_cell};

/// So many bytes of a key are the executor: its form and 32 bytes.
const EXECUTOR_BYTES: usize = 33;
/// So many rows are read for an executor: twice the most that `offersPerExecutorMax` may be.
const KEPT: usize = 2_048;
/// A list that has grown to so many is cut to [`KEPT`].
const ROWS_MAX: usize = 2 * KEPT;
/// So many rows are kept for all executors together: some tens of megabytes. The list that nobody has asked
/// for the longest goes first.
const ALL_ROWS_MAX: usize = 1 << 17;

/// The first rows for executors that were asked for.
pub(super) struct Leading(Mutex<State>);

struct State {
    lists: BTreeMap<Vec<u8>, List>,
    /// Rows in all lists, and one for each list.
    rows: usize,
    /// Grows with each answer.
    clock: u64,
    /// The height of the last commit.
    height: u64,
    /// How many commits were written. What was read while one was proves nothing.
    writes: u64,
    is_writing: bool,
}

struct List {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    /// No row below this key is missing; none if there are no others.
    end: Option<Vec<u8>>,
    /// When it was asked for last.
    used: u64,
}

/// What a commit does to the rows.
pub(super) struct LeadingChanges(Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl LeadingChanges {
    pub(super) fn of(changes: &Changes) -> Self {
        let rows = changes.get(&OffersByExecutor::ID).into_iter().flatten();
        Self(rows.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

impl List {
    /// The rows of a range, if all of them are here.
    fn scan(&self, range: &Range<'_>) -> Option<Vec<RawRow>> {
        let rows = self.rows.range(range.from.to_vec()..);
        let inside = rows.take_while(|(key, _)| range.to.is_none_or(|to| key.as_slice() < to));
        let found: Vec<RawRow> =
            inside.take(range.limit).map(|(key, value)| (key.clone(), value.clone())).collect();
        let is_whole = found.len() == range.limit
            || self.end.as_deref().is_none_or(|end| range.to.is_some_and(|to| to <= end));
        is_whole.then_some(found)
    }

    fn change(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        if self.end.as_ref().is_some_and(|end| key >= *end) {
            return;
        }
        match value {
            Some(value) => drop(self.rows.insert(key, value)),
            None => drop(self.rows.remove(&key)),
        }
    }

    /// Forgets the last rows.
    fn cut(&mut self, most: usize) {
        if let Some(end) = self.rows.keys().nth(most).cloned() {
            drop(self.rows.split_off(&end));
            self.end = Some(end);
        }
    }

    /// Whether it may answer again.
    fn is_of_use(&self) -> bool {
        self.end.is_none() || self.rows.len() >= KEPT / 2
    }
}

impl State {
    fn known(&mut self, executor: &[u8], range: &Range<'_>) -> Option<Vec<RawRow>> {
        self.clock = self.clock.saturating_add(1);
        let list = self.lists.get_mut(executor)?;
        list.used = self.clock;
        list.scan(range)
    }

    fn remove(&mut self, executor: &[u8]) {
        if let Some(list) = self.lists.remove(executor) {
            self.rows = self.rows.saturating_sub(list.rows.len().saturating_add(1));
        }
    }

    fn insert(&mut self, executor: Vec<u8>, list: List) {
        self.remove(&executor);
        self.rows = self.rows.saturating_add(list.rows.len().saturating_add(1));
        self.lists.insert(executor, list);
        while self.rows > ALL_ROWS_MAX {
            let oldest = self.lists.iter().min_by_key(|(_, list)| list.used);
            let Some(oldest) = oldest.map(|(executor, _)| executor.clone()) else { return };
            self.remove(&oldest);
        }
    }

    fn change(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let Some(executor) = key.get(..EXECUTOR_BYTES).map(<[u8]>::to_vec) else { return };
        let Some(mut list) = self.lists.remove(&executor) else { return };
        self.rows = self.rows.saturating_sub(list.rows.len().saturating_add(1));
        list.change(key, value);
        if list.rows.len() >= ROWS_MAX {
            list.cut(KEPT);
        }
        if list.is_of_use() {
            self.insert(executor, list);
        }
    }
}

/// The executor within which a range lies.
fn executor_of<'a>(table: TableId, range: &Range<'a>) -> Option<&'a [u8]> {
    let executor = range.from.get(..EXECUTOR_BYTES)?;
    let is_inside = range.to.is_some_and(|to| to.starts_with(executor));
    (table == OffersByExecutor::ID && is_inside && range.limit > 0).then_some(executor)
}

impl Leading {
    /// Nothing is known of a database at this height.
    pub(super) const fn at(height: u64) -> Self {
        Self(Mutex::new(State {
            lists: BTreeMap::new(),
            rows: 0,
            clock: 0,
            height,
            writes: 0,
            is_writing: false,
        }))
    }

    /// Rows of the newest state, which `live` is.
    pub(super) fn scan(
        &self,
        table: TableId,
        range: Range<'_>,
        live: &Source<'_>,
    ) -> Result<Vec<RawRow>, StorageError> {
        let Some(executor) = executor_of(table, &range) else { return live.scan(table, range) };
        let writes = {
            let mut state = self.0.lock();
            if let Some(rows) = state.known(executor, &range) {
                return Ok(rows);
            }
            state.writes
        };
        self.load(executor, live, |state| !state.is_writing && state.writes == writes)?;
        // What is not among the first rows, or was overtaken by a commit.
        if let Some(rows) = self.0.lock().known(executor, &range) {
            return Ok(rows);
        }
        live.scan(table, range)
    }

    /// Rows of a snapshot.
    pub(super) fn scan_at(
        &self,
        table: TableId,
        range: Range<'_>,
        source: &Source<'_>,
    ) -> Result<Vec<RawRow>, StorageError> {
        let Some(executor) = executor_of(table, &range) else { return source.scan(table, range) };
        let tip: Option<Tip> = read_cell(source, TIP_CELL)?;
        let height = tip.map_or(0, |tip| tip.height);
        let is_newest = |state: &State| state.height == height;
        {
            let mut state = self.0.lock();
            if !is_newest(&state) {
                return source.scan(table, range);
            }
            if let Some(rows) = state.known(executor, &range) {
                return Ok(rows);
            }
        }
        self.load(executor, source, is_newest)?;
        source.scan(table, range)
    }

    /// Reads the first rows for an executor, if they are not there.
    /// They must be those that memory would have followed to here.
    fn load(
        &self,
        executor: &[u8],
        source: &Source<'_>,
        is_right: impl Fn(&State) -> bool,
    ) -> Result<(), StorageError> {
        if self.0.lock().lists.contains_key(executor) {
            return Ok(());
        }
        let to = [executor, &[0xff; 64]].concat();
        let range = Range { from: executor, to: Some(&to), limit: KEPT.saturating_add(1) };
        let rows = source.scan(OffersByExecutor::ID, range)?;
        let mut list = List { rows: rows.into_iter().collect(), end: None, used: 0 };
        list.cut(KEPT);
        let mut state = self.0.lock();
        if is_right(&state) {
            list.used = state.clock;
            state.insert(executor.to_vec(), list);
        }
        Ok(())
    }

    /// A commit is about to be written.
    pub(super) fn before_write(&self) {
        self.0.lock().is_writing = true;
    }

    /// The commit is in the database.
    pub(super) fn after_write(&self, height: u64, changes: LeadingChanges) {
        let mut state = self.0.lock();
        state.is_writing = false;
        state.writes = state.writes.wrapping_add(1);
        state.height = height;
        for (key, value) in changes.0 {
            state.change(key, value);
        }
    }
}
