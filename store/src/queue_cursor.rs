//! Where the deadlines begin, and the elections that wait.
//!
//! The sweep reads the table of deadlines from its start after every block, and each row that it
//! or a later transaction deletes stays there as a tombstone until the next compaction. Under load
//! that would be tens of thousands of tombstones to step over, each time. So the lowest key that
//! can exist is remembered: what a scan found to be empty stays empty until a commit writes there.
//! What is taken out of a bond has a deadline as long as it is there, so the same bound holds for it.
//! Elections come in at the end of their table and go from its front, so that front is all tombstones.

use parking_lot::Mutex;
use state::draft::Changes;
use state::table::{Table, TableId};
use state::tables::{CallQueue, Deadlines};
use state::view::{Range, RawRow};

/// A lower bound of the keys of each table that is read from its start.
pub(super) struct QueueCursors {
    pub(super) deadlines: QueueCursor,
    elections: QueueCursor,
}

/// A lower bound of the keys of a table.
pub(super) struct QueueCursor {
    table: TableId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// No row has a key below this one.
    lowest: Vec<u8>,
    /// How many commits were written. A scan that one overtook proves nothing.
    writes: u64,
    /// Whether one is being written.
    writing: bool,
}

/// Above every key: no kind of deadline has this number, and no block this height.
const ABOVE_ALL: [u8; 9] = [0xff; 9];

/// What a scan needs to report back.
pub(super) struct Start {
    /// Where the scan may begin.
    pub(super) from: Vec<u8>,
    writes: u64,
}

impl Default for QueueCursors {
    fn default() -> Self {
        let of = |table| QueueCursor { table, state: Mutex::default() };
        Self { deadlines: of(Deadlines::ID), elections: of(CallQueue::ID) }
    }
}

impl QueueCursors {
    fn all(&self) -> [&QueueCursor; 2] {
        [&self.deadlines, &self.elections]
    }

    /// That of a table, if it has one.
    pub(super) fn of(&self, table: TableId) -> Option<&QueueCursor> {
        self.all().into_iter().find(|cursor| cursor.table == table)
    }

    /// The lowest keys that changes add, for [`QueueCursors::before_write`].
    pub(super) fn lowest(changes: &Changes) -> [Option<Vec<u8>>; 2] {
        [Deadlines::ID, CallQueue::ID].map(|table| {
            let mut rows = changes.get(&table)?.iter();
            rows.find(|(_, value)| value.is_some()).map(|(key, _)| key.clone())
        })
    }

    /// A commit is about to be written: its rows count from now on.
    pub(super) fn before_write(&self, lowest: [Option<Vec<u8>>; 2]) {
        for (cursor, lowest) in self.all().into_iter().zip(lowest) {
            cursor.before_write(lowest);
        }
    }

    /// The commit is in the database.
    pub(super) fn after_write(&self) {
        for cursor in self.all() {
            cursor.after_write();
        }
    }
}

impl QueueCursor {
    /// Where a scan that wants to begin at `from` may begin.
    pub(super) fn start(&self, from: &[u8]) -> Start {
        let state = self.state.lock();
        let from = if from < state.lowest.as_slice() { state.lowest.clone() } else { from.into() };
        Start { from, writes: state.writes }
    }

    /// Takes a look at the database, and answers below which key it has no row.
    pub(super) fn beside<T>(&self, look: impl FnOnce() -> T) -> (T, Vec<u8>) {
        let state = self.state.lock();
        (look(), state.lowest.clone())
    }

    /// Learns from a scan of `range` that began at `start` and found `rows`.
    pub(super) fn learn(&self, start: &Start, range: &Range<'_>, rows: &[RawRow]) {
        if range.limit == 0 {
            return; // it has not looked
        }
        let empty_below = match (rows.first(), range.to) {
            (Some((key, _)), _) => key.as_slice(),
            (None, Some(to)) => to,
            (None, None) => &ABOVE_ALL,
        };
        let mut state = self.state.lock();
        let undisturbed = !state.writing && state.writes == start.writes;
        let from_bottom = start.from.as_slice() <= state.lowest.as_slice();
        if undisturbed && from_bottom && empty_below > state.lowest.as_slice() {
            state.lowest = empty_below.to_vec();
        }
    }

    fn before_write(&self, lowest: Option<Vec<u8>>) {
        let mut state = self.state.lock();
        state.writing = true;
        if let Some(lowest) = lowest.filter(|key| *key < state.lowest) {
            state.lowest = lowest;
        }
    }

    fn after_write(&self) {
        let mut state = self.state.lock();
        state.writing = false;
        state.writes = state.writes.wrapping_add(1);
    }
}
