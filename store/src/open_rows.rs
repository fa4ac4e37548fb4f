//! The runs that have not ended and the calls that are not settled, in memory.
//!
//! A run leaves each of its open statuses after a while, and a row that is deleted stays in RocksDB as a
//! tombstone until the next compaction. Whoever reads the rows of such a status in their order steps over
//! the tombstones: under load over tens of thousands of them, for a question that anybody may ask. No
//! bound of the rows would help, because one run that waits for long has them on both sides. So the rows
//! of [`RunsByStatus`] that have not ended are kept here as well, and those of [`CallsByStatus`] that are
//! not settled. There are as many as runs and calls hold an escrow.
//!
//! ```text
//!   commit of h   which rows come and go ─▶ here          then the write
//!   question at h or h − 1                                rows that are there at that height
//!   question at an earlier height                         not answered: RocksDB knows
//! ```
//!
//! A row that the newest commit deletes stays for those who read the height before. The next commit
//! forgets it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use parking_lot::RwLock;
use state::draft::Changes;
use state::error::StorageError;
use state::table::{Key, Table};
use state::tables::{CallsByStatus, RunsByStatus};
use types::call::CallStatus;
use types::{Hash, RunStatus, TxLocation};

use super::rocks::Source;
use super::row::typed;

/// The key of a row: the status, and where the run or call was requested.
type StatusKey = (u8, u64, u32);

/// An index by status, with statuses that are left.
pub(super) trait ByStatus: Table<Key = StatusKey, Value = Hash> {
    /// The statuses whose rows are kept in memory, as keys have them.
    fn kept() -> Vec<u8>;
}

impl ByStatus for RunsByStatus {
    fn kept() -> Vec<u8> {
        let open = RunStatus::ALL.into_iter().filter(|status| is_kept(*status));
        open.map(Self::place).collect()
    }
}

impl ByStatus for CallsByStatus {
    fn kept() -> Vec<u8> {
        CallStatus::ALL.into_iter().map(Self::open).collect()
    }
}

/// The rows of an index of statuses that are left.
pub(super) struct OpenRows(RwLock<State>);

struct State {
    rows: BTreeMap<StatusKey, Row>,
    /// What the commit of `newest` deleted.
    deleted: Vec<StatusKey>,
    /// The height of the commit that was taken over last. It may still be about to be written.
    newest: u64,
    /// Nobody who reads an earlier height is answered.
    oldest: u64,
}

struct Row {
    id: Hash,
    /// The first height with the row.
    since: u64,
    /// The first height without it; [`NEVER`] as long as it is there.
    until: u64,
}

const NEVER: u64 = u64::MAX;

/// What a commit does to the rows.
#[derive(Default)]
pub(super) struct OpenChanges(Vec<(StatusKey, Option<Hash>)>);

/// An answer of [`OpenRows::below`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Below {
    /// The run or call, and where it was requested; none if there is none.
    Known(Option<(TxLocation, Hash)>),
    /// The height is too old.
    Forgotten,
}

/// Whether runs leave this status.
pub(super) const fn is_kept(status: RunStatus) -> bool {
    !status.is_terminal()
}

impl OpenRows {
    /// The rows that a database has at its tip. Steps over all tombstones, this once.
    pub(super) fn read<T: ByStatus>(source: &Source<'_>, tip: u64) -> Result<Self, StorageError> {
        let mut rows = BTreeMap::new();
        let mut fault = None;
        for status in T::kept() {
            let end = [status.saturating_add(1)];
            source.walk(T::ID, &[status], Some(&end), |key, value| {
                match typed::<T>(key, value) {
                    Ok((place, id)) => drop(rows.insert(place, Row { id, since: 0, until: NEVER })),
                    Err(error) => fault = Some(error),
                }
                fault.is_none()
            })?;
        }
        let state = State { rows, deleted: Vec::new(), newest: tip, oldest: tip };
        fault.map_or(Ok(Self(RwLock::new(state))), Err)
    }

    /// A commit is about to be written: who reads its height may be there before this thread goes on.
    pub(super) fn before_write(&self, height: u64, changes: OpenChanges) {
        let mut state = self.0.write();
        let State { rows, deleted, newest, oldest } = &mut *state;
        for place in deleted.drain(..) {
            rows.remove(&place);
        }
        if *oldest != NEVER {
            *oldest = *newest;
        }
        *newest = height;
        for (place, id) in changes.0 {
            match (rows.entry(place), id) {
                (Entry::Vacant(row), Some(id)) => {
                    row.insert(Row { id, since: height, until: NEVER });
                }
                (Entry::Occupied(mut row), None) => {
                    row.get_mut().until = height;
                    deleted.push(place);
                }
                // It left its status and came back within a block.
                (Entry::Occupied(_), Some(_)) | (Entry::Vacant(_), None) => {}
            }
        }
    }

    /// The commit was not written: from now on nobody is answered.
    pub(super) fn abandon(&self) {
        self.0.write().oldest = NEVER;
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        let state = self.0.read();
        state.rows.len().saturating_sub(state.deleted.len())
    }

    /// The newest of the place's status that was requested before the place, as it is at a height.
    pub(super) fn below(&self, place: StatusKey, height: u64) -> Below {
        let state = self.0.read();
        if height < state.oldest {
            return Below::Forgotten;
        }
        // What is stepped over was added or deleted by the newest commit.
        let mut rows = state.rows.range((place.0, 0, 0)..place).rev();
        let there = rows.find(|(_, row)| row.since <= height && height < row.until);
        Below::Known(
            there.map(|(&(_, height, position), row)| (TxLocation { height, position }, row.id)),
        )
    }
}

impl OpenChanges {
    /// What changes do to the rows of an index that are kept.
    pub(super) fn of<T: ByStatus>(changes: &Changes) -> Result<Self, StorageError> {
        const BROKEN: StorageError = StorageError::Inconsistent {
            what: "the place of a run or call among those of its status is malformed",
        };
        let open = T::kept();
        let rows = changes.get(&T::ID).into_iter().flatten();
        let rows = rows.filter(|(key, _)| key.first().is_some_and(|first| open.contains(first)));
        let rows = rows.map(|(key, value)| match value {
            Some(value) => typed::<T>(key, value).map(|(place, id)| (place, Some(id))),
            None => Ok((StatusKey::from_bytes(key).ok_or(BROKEN)?, None)),
        });
        rows.collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PENDING: u8 = 0;

    fn id(number: u8) -> Hash {
        Hash::new([number; 32])
    }

    fn empty() -> OpenRows {
        let state = State { rows: BTreeMap::new(), deleted: Vec::new(), newest: 0, oldest: 0 };
        OpenRows(RwLock::new(state))
    }

    /// A commit that adds and deletes pending runs that were requested at these heights.
    fn commit(runs: &OpenRows, height: u64, added: &[u8], deleted: &[u8]) {
        let place = |number: u8| (PENDING, u64::from(number), 0);
        let added = added.iter().map(|number| (place(*number), Some(id(*number))));
        let deleted = deleted.iter().map(|number| (place(*number), None));
        runs.before_write(height, OpenChanges(added.chain(deleted).collect()));
    }

    /// The pending runs at a height, newest first.
    fn at(runs: &OpenRows, height: u64) -> Option<Vec<u8>> {
        let (mut seen, mut place) = (Vec::new(), (PENDING, u64::MAX, u32::MAX));
        loop {
            match runs.below(place, height) {
                Below::Forgotten => return None,
                Below::Known(None) => return Some(seen),
                Below::Known(Some((at, id))) => {
                    place = (PENDING, at.height, at.position);
                    seen.extend(id.as_bytes().first());
                }
            }
        }
    }

    #[test]
    fn who_reads_the_height_before_sees_nothing_of_a_commit_that_is_being_written() {
        let runs = empty();
        commit(&runs, 1, &[1, 2, 3], &[]);
        assert_eq!((Some(vec![]), Some(vec![3, 2, 1])), (at(&runs, 0), at(&runs, 1)));
        commit(&runs, 2, &[4], &[2]);
        assert_eq!((None, Some(vec![3, 2, 1])), (at(&runs, 0), at(&runs, 1)));
        assert_eq!(Some(vec![4, 3, 1]), at(&runs, 2));
    }

    #[test]
    fn what_was_deleted_is_forgotten_with_the_next_commit_and_may_come_back() {
        let runs = empty();
        commit(&runs, 1, &[1, 2], &[]);
        commit(&runs, 2, &[], &[1]);
        commit(&runs, 3, &[1], &[]);
        assert_eq!(1, runs.0.read().rows.values().filter(|row| row.since == 3).count());
        assert_eq!((Some(vec![2]), Some(vec![2, 1])), (at(&runs, 2), at(&runs, 3)));
        commit(&runs, 4, &[], &[1, 2]);
        commit(&runs, 5, &[], &[]);
        assert!(runs.0.read().rows.is_empty());
    }

    #[test]
    fn a_run_that_comes_back_within_a_block_was_there_all_the_time() {
        let runs = empty();
        commit(&runs, 1, &[1], &[]);
        commit(&runs, 2, &[1], &[]);
        assert_eq!((Some(vec![1]), Some(vec![1])), (at(&runs, 1), at(&runs, 2)));
    }

    #[test]
    fn nobody_is_answered_after_a_commit_that_was_not_written() {
        let runs = empty();
        commit(&runs, 1, &[1], &[]);
        runs.abandon();
        commit(&runs, 1, &[2], &[]);
        commit(&runs, 2, &[3], &[]);
        assert_eq!((None, None), (at(&runs, 1), at(&runs, 2)));
    }
}
