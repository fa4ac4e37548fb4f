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
//!
//! Executors cost nothing to make up, and anybody may ask about them. So the lists that only snapshots asked
//! for have room of their own: they push out each other and never one that the chain reads.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use state::draft::Changes;
use state::error::StorageError;
use state::table::{Table, TableId};
use state::tables::OffersByExecutor;
use state::view::{Range, RawRow};

use super::meta::{TIP_CELL, Tip};
use super::rocks::Source;

/// So many bytes of a key are the executor: its form and 32 bytes.
const EXECUTOR_BYTES: usize = 33;
/// So many rows are read for an executor: twice the most that `offersPerExecutorMax` may be.
const KEPT: usize = 2_048;
/// A list that has grown to so many is cut to [`KEPT`].
const ROWS_MAX: usize = 2 * KEPT;
/// So many rows are kept for the executors that the chain reads: some tens of megabytes. The list that was
/// read longest ago goes first.
const CHAIN_ROWS_MAX: usize = 1 << 17;
/// So many are kept for those that only questions are about.
const QUESTION_ROWS_MAX: usize = 1 << 15;
/// A list takes the memory of so many rows besides its own.
const LIST_ROWS: usize = 16;

/// The first rows for executors that were asked for.
pub(super) struct Leading(Mutex<State>);

struct State {
    lists: BTreeMap<Vec<u8>, List>,
    chain: Share,
    questions: Share,
    /// Grows with each answer.
    clock: u64,
    /// The height of the last commit.
    height: u64,
    /// How many commits were written. What was read while one was proves nothing.
    writes: u64,
    is_writing: bool,
}

/// On whose behalf a list is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asker {
    /// Blocks and the pool, which read the newest state.
    Chain,
    /// Whoever reads a snapshot.
    Question,
}

/// The lists of one asker.
#[derive(Debug)]
struct Share {
    /// Executors in the order in which they were asked for last.
    order: BTreeMap<u64, Vec<u8>>,
    rows: usize,
    rows_max: usize,
}

impl Share {
    const fn of(rows_max: usize) -> Self {
        Self { order: BTreeMap::new(), rows: 0, rows_max }
    }

    fn add(&mut self, executor: &[u8], list: &List) {
        self.order.insert(list.used, executor.to_vec());
        self.rows = self.rows.saturating_add(list.size());
    }

    fn take(&mut self, list: &List) {
        self.order.remove(&list.used);
        self.rows = self.rows.saturating_sub(list.size());
    }

    /// The executor that was asked for longest ago, if there is too much.
    fn superfluous(&self) -> Option<&Vec<u8>> {
        let oldest = self.order.first_key_value().map(|(_, executor)| executor);
        oldest.filter(|_| self.rows > self.rows_max)
    }
}

struct List {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    /// No row below this key is missing; none if there are no others.
    end: Option<Vec<u8>>,
    /// When it was asked for last; no two lists have the same.
    used: u64,
    /// Whose share it is in.
    asker: Asker,
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
    /// What it takes of its share.
    fn size(&self) -> usize {
        self.rows.len().saturating_add(LIST_ROWS)
    }

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
    fn known(&mut self, asker: Asker, executor: &[u8], range: &Range<'_>) -> Option<Vec<RawRow>> {
        let rows = self.lists.get(executor)?.scan(range);
        self.use_list(asker, executor);
        rows
    }

    /// Notes that a list was asked for. What the chain has read stays in its share, and questions do not
    /// make it look younger.
    fn use_list(&mut self, asker: Asker, executor: &[u8]) {
        let is_of_chain = |list: &List| (list.asker, asker) == (Asker::Chain, Asker::Question);
        if self.lists.get(executor).is_none_or(is_of_chain) {
            return;
        }
        if let Some(list) = self.remove(executor) {
            self.insert(executor, List { asker, ..list });
        }
    }

    const fn share(&mut self, asker: Asker) -> &mut Share {
        match asker {
            Asker::Chain => &mut self.chain,
            Asker::Question => &mut self.questions,
        }
    }

    fn remove(&mut self, executor: &[u8]) -> Option<List> {
        let list = self.lists.remove(executor)?;
        self.share(list.asker).take(&list);
        Some(list)
    }

    /// Puts in a list that is not there, as the youngest of its share.
    fn insert(&mut self, executor: &[u8], list: List) {
        self.clock = self.clock.saturating_add(1);
        let list = List { used: self.clock, ..list };
        self.put(executor, list);
    }

    /// Puts in a list that is not there.
    fn put(&mut self, executor: &[u8], list: List) {
        let asker = list.asker;
        self.share(asker).add(executor, &list);
        self.lists.insert(executor.to_vec(), list);
        while let Some(oldest) = self.share(asker).superfluous().cloned() {
            if self.remove(&oldest).is_none() {
                return;
            }
        }
    }

    fn change(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let Some(executor) = key.get(..EXECUTOR_BYTES).map(<[u8]>::to_vec) else { return };
        let Some(mut list) = self.remove(&executor) else { return };
        list.change(key, value);
        if list.rows.len() >= ROWS_MAX {
            list.cut(KEPT);
        }
        if list.is_of_use() {
            self.put(&executor, list);
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
            chain: Share::of(CHAIN_ROWS_MAX),
            questions: Share::of(QUESTION_ROWS_MAX),
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
            if let Some(rows) = state.known(Asker::Chain, executor, &range) {
                return Ok(rows);
            }
            state.writes
        };
        let is_right = |state: &State| !state.is_writing && state.writes == writes;
        self.load(Asker::Chain, executor, live, is_right)?;
        // What is not among the first rows, or was overtaken by a commit.
        if let Some(rows) = self.0.lock().known(Asker::Chain, executor, &range) {
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
        let tip: Option<Tip> = source.cell(TIP_CELL)?;
        let height = tip.map_or(0, |tip| tip.height);
        let is_newest = |state: &State| state.height == height;
        {
            let mut state = self.0.lock();
            if !is_newest(&state) {
                return source.scan(table, range);
            }
            if let Some(rows) = state.known(Asker::Question, executor, &range) {
                return Ok(rows);
            }
        }
        self.load(Asker::Question, executor, source, is_newest)?;
        source.scan(table, range)
    }

    /// Reads the first rows for an executor, if they are not there.
    /// They must be those that memory would have followed to here.
    fn load(
        &self,
        asker: Asker,
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
        let mut list = List { rows: rows.into_iter().collect(), end: None, used: 0, asker };
        list.cut(KEPT);
        self.keep(executor, list, is_right);
        Ok(())
    }

    /// Keeps a list that was read without the lock, unless it is wrong by now, or another thread has read
    /// the same meanwhile: that one stays, in the share in which it is.
    fn keep(&self, executor: &[u8], list: List, is_right: impl Fn(&State) -> bool) {
        let mut state = self.0.lock();
        if is_right(&state) && !state.lists.contains_key(executor) {
            state.insert(executor, list);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn executor(number: u32) -> Vec<u8> {
        let mut executor = vec![2; EXECUTOR_BYTES];
        executor[1..5].copy_from_slice(&number.to_be_bytes());
        executor
    }

    fn state() -> State {
        let Leading(state) = Leading::at(1);
        state.into_inner()
    }

    fn list(rows: usize, asker: Asker) -> List {
        let rows = (0..rows).map(|row| (row.to_be_bytes().to_vec(), Vec::new())).collect();
        List { rows, end: None, used: 0, asker }
    }

    fn range(executor: &[u8]) -> Range<'_> {
        Range { from: executor, to: None, limit: 1 }
    }

    #[test]
    fn made_up_executors_push_out_none_that_elections_read() {
        let mut state = state();
        state.insert(&executor(0), list(256, Asker::Chain));
        let made_up = u32::try_from(2 * QUESTION_ROWS_MAX).unwrap_or(u32::MAX);
        for number in 1..=made_up {
            state.insert(&executor(number), list(0, Asker::Question));
        }
        assert!(state.lists.contains_key(&executor(0)), "the chain's");
        assert!(state.lists.contains_key(&executor(made_up)), "the last one");
        assert!(!state.lists.contains_key(&executor(1)), "the first made up");
        assert!(state.questions.rows <= QUESTION_ROWS_MAX);
        assert_eq!(state.lists.len(), 1 + QUESTION_ROWS_MAX / LIST_ROWS);
        assert_eq!(state.questions.order.len(), state.lists.len() - 1);
    }

    #[test]
    fn the_chain_takes_over_a_list_that_a_question_had_read_and_keeps_it() {
        let mut state = state();
        state.insert(&executor(0), list(1, Asker::Question));
        state.known(Asker::Chain, &executor(0), &range(&executor(0)));
        state.known(Asker::Question, &executor(0), &range(&executor(0)));
        assert_eq!(state.lists[&executor(0)].asker, Asker::Chain);
        assert_eq!((state.chain.rows, state.questions.rows), (1 + LIST_ROWS, 0));
    }

    #[test]
    fn of_two_threads_that_read_one_list_the_second_takes_it_away_from_nobody() {
        let leading = Leading::at(1);
        leading.keep(&executor(0), list(3, Asker::Chain), |_| true);
        leading.keep(&executor(0), list(3, Asker::Question), |_| true);
        let state = leading.0.lock();
        assert_eq!(state.lists[&executor(0)].asker, Asker::Chain);
        assert_eq!((state.chain.rows, state.questions.rows), (3 + LIST_ROWS, 0));
    }

    #[test]
    fn of_the_chain_s_lists_the_one_goes_that_was_read_longest_ago() {
        let mut state = state();
        let size = CHAIN_ROWS_MAX / 2 - LIST_ROWS;
        state.insert(&executor(0), list(size, Asker::Chain));
        state.insert(&executor(1), list(size, Asker::Chain));
        state.known(Asker::Chain, &executor(0), &range(&executor(0)));
        state.insert(&executor(2), list(1, Asker::Chain));
        let kept: Vec<_> = state.lists.keys().cloned().collect();
        assert_eq!(kept, [executor(0), executor(2)]);
    }
}
