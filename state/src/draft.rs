//! Writing: changes on top of a state, kept apart until they are committed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use types::{Address, Amount, BondChange, Credit, Hash, PublicKey};

use crate::error::StorageError;
use crate::table::{Key, Table, TableId, decode_value, encode_value};
use crate::tables;
use crate::view::{Range, RawRow, Read};

/// New values by table and key; `None` deletes. Ordered, so that the same block gives the same
/// bytes in the same order everywhere.
pub type Changes = BTreeMap<TableId, BTreeMap<Vec<u8>, Option<Vec<u8>>>>;

/// The place of a row: its table and its key.
pub type RowId = (TableId, Vec<u8>);

/// What becomes of the part of a miner's bond that is locked for a run, at the end of the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Release {
    pub(crate) agent_run_id: Hash,
    pub(crate) miner: Address,
    pub(crate) change: BondChange,
}

/// A state with uncommitted changes. Reads see them.
pub struct Draft {
    base: Arc<dyn Read>,
    changes: Changes,
    /// Rows of `changes` that the base does not have: deleting one leaves no trace.
    fresh: BTreeMap<TableId, BTreeSet<Vec<u8>>>,
    scope: Scope,
    /// Money that accounts received without a transaction of their own.
    credits: Vec<Credit>,
    /// Whether the transactions are through, so that every credit is one of those.
    is_at_end: bool,
    /// What the end of the block will do to bonds.
    releases: Vec<Release>,
    /// The consensus keys that the end of the block takes the power from.
    punished: BTreeSet<PublicKey>,
    /// Calls that the end of the block looks at, whatever their deadlines.
    calls: BTreeSet<Hash>,
}

/// What a draft is for, and so which writes it keeps.
enum Scope {
    /// A block: all of them.
    Block,
    /// Telling what a transaction would do: all but the bytes of blobs.
    Simulation,
    /// Those that a check may read, with a note of each write and of each credit.
    Checks { notes: Notes },
}

/// What only blocks need.
const BYTES_OF_BLOBS: [TableId; 2] = [tables::BlobChunks::ID, tables::BlobRemains::ID];

/// What happened to a draft for checks since it was last asked.
#[derive(Default)]
pub(crate) struct Notes {
    /// Its writes, in their order.
    pub(crate) written: Vec<Written>,
    /// What accounts were credited with.
    pub(crate) credited: Vec<(Address, Amount)>,
}

/// One write, and what the draft had at the place before: nothing, or a change.
pub(crate) struct Written {
    pub(crate) row: RowId,
    pub(crate) before: Option<Option<Vec<u8>>>,
}

impl Draft {
    /// An empty draft over `base`.
    #[must_use]
    pub fn new(base: Arc<dyn Read>) -> Self {
        Self::with_scope(base, Scope::Block)
    }

    /// An empty draft whose changes are looked at and thrown away.
    pub(crate) fn for_simulation(base: Arc<dyn Read>) -> Self {
        Self::with_scope(base, Scope::Simulation)
    }

    /// An empty draft that keeps only what a check may read ([`tables::READ_BY_CHECKS`]): for the
    /// pool, which checks transactions against each other and commits nothing.
    pub(crate) fn for_checks(base: Arc<dyn Read>) -> Self {
        Self::with_scope(base, Scope::Checks { notes: Notes::default() })
    }

    const fn with_scope(base: Arc<dyn Read>, scope: Scope) -> Self {
        Self {
            base,
            changes: Changes::new(),
            fresh: BTreeMap::new(),
            scope,
            credits: Vec::new(),
            is_at_end: false,
            releases: Vec::new(),
            punished: BTreeSet::new(),
            calls: BTreeSet::new(),
        }
    }

    /// The value of a key, changes included.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the value does not decode.
    pub fn get<T: Table>(&self, key: &T::Key) -> Result<Option<T::Value>, StorageError> {
        let key = key.to_bytes();
        match self.changed(T::ID, &key) {
            Some(changed) => changed.as_deref().map(decode_value::<T>).transpose(),
            None => self.base.get_raw(T::ID, &key)?.as_deref().map(decode_value::<T>).transpose(),
        }
    }

    /// Sets a row.
    pub fn put<T: Table>(&mut self, key: &T::Key, value: &T::Value) {
        if self.keeps(T::ID) {
            self.change(T::ID, key.to_bytes(), Some(encode_value::<T>(value)));
        }
    }

    /// Sets a row that the caller knows not to exist. If it is deleted again before the commit,
    /// the database never hears of it.
    pub fn insert<T: Table>(&mut self, key: &T::Key, value: &T::Value) {
        if !self.keeps(T::ID) {
            return;
        }
        let key = key.to_bytes();
        // Below a draft for checks the base moves on and may get the row.
        if self.commits() && self.changed(T::ID, &key).is_none() {
            self.fresh.entry(T::ID).or_default().insert(key.clone());
        }
        self.change(T::ID, key, Some(encode_value::<T>(value)));
    }

    /// Deletes a row.
    pub fn delete<T: Table>(&mut self, key: &T::Key) {
        if !self.keeps(T::ID) {
            return;
        }
        let key = key.to_bytes();
        if self.fresh.get_mut(&T::ID).is_some_and(|rows| rows.remove(&key)) {
            self.forget(&(T::ID, key));
        } else {
            self.change(T::ID, key, None);
        }
    }

    /// Puts another state below the changes.
    pub(crate) fn rebase(&mut self, base: Arc<dyn Read>) {
        self.base = base;
    }

    /// What was changed, without the draft.
    #[must_use]
    pub fn into_changes(self) -> Changes {
        self.changes
    }

    /// What was changed, and the credits that were noted.
    pub(crate) fn into_parts(self) -> (Changes, Vec<Credit>) {
        (self.changes, self.credits)
    }

    /// The transactions are through: from now on every credit is noted.
    pub(crate) const fn begin_end_of_block(&mut self) {
        self.is_at_end = true;
    }

    /// An account was credited. The draft of a block notes this only at the end of the block, because until
    /// then the credits belong to transactions. A draft for checks notes every credit.
    pub(crate) fn note_credited(&mut self, address: Address, amount: Amount) {
        if self.is_at_end {
            self.note_credit(address, amount);
        }
        if let Scope::Checks { notes } = &mut self.scope {
            notes.credited.push((address, amount));
        }
    }

    /// Notes money that an account received without a transaction of its own. One that follows another
    /// to the same account is added to it.
    pub(crate) fn note_credit(&mut self, address: Address, amount: Amount) {
        if amount.is_zero() {
            return;
        }
        let last = self.credits.last_mut().filter(|last| last.address == address);
        if let Some(last) = last
            && let Some(sum) = last.amount.checked_add(amount)
        {
            last.amount = sum;
        } else {
            self.credits.push(Credit { address, amount });
        }
    }

    /// Notes what the end of the block will do to a bond. A draft that is of no block has no end.
    pub(crate) fn note_release(&mut self, release: Release) {
        if self.is_of_a_block() {
            self.releases.push(release);
        }
    }

    /// What was noted so far, which is forgotten.
    pub(crate) fn take_releases(&mut self) -> Vec<Release> {
        std::mem::take(&mut self.releases)
    }

    /// Notes that the end of the block takes a key's power. A draft that is of no block has no end.
    pub(crate) fn note_punished(&mut self, key: PublicKey) {
        if self.is_of_a_block() {
            self.punished.insert(key);
        }
    }

    /// The keys that were noted so far, which are forgotten.
    pub(crate) fn take_punished(&mut self) -> BTreeSet<PublicKey> {
        std::mem::take(&mut self.punished)
    }

    /// Notes that a phase of a call may end with the block. A draft that is of no block has no end.
    pub(crate) fn note_call(&mut self, call_id: Hash) {
        if self.is_of_a_block() {
            self.calls.insert(call_id);
        }
    }

    /// The calls that were noted so far, which are forgotten.
    pub(crate) fn take_calls(&mut self) -> BTreeSet<Hash> {
        std::mem::take(&mut self.calls)
    }

    /// Makes a row what the base has.
    pub(crate) fn forget(&mut self, (table, key): &RowId) {
        if let Some(rows) = self.changes.get_mut(table) {
            rows.remove(key);
        }
    }

    /// What happened since the last call. Nothing unless the draft is [`Draft::for_checks`].
    pub(crate) fn take_notes(&mut self) -> Notes {
        match &mut self.scope {
            Scope::Block | Scope::Simulation => Notes::default(),
            Scope::Checks { notes } => std::mem::take(notes),
        }
    }

    /// Makes a row what the draft had for it once, without a note of it.
    pub(crate) fn restore(&mut self, (table, key): &RowId, before: Option<Vec<u8>>) {
        self.changes.entry(*table).or_default().insert(key.clone(), before);
    }

    /// The value that a key has below the changes.
    pub(crate) fn below<T: Table>(&self, key: &[u8]) -> Result<Option<T::Value>, StorageError> {
        self.base.get_raw(T::ID, key)?.as_deref().map(decode_value::<T>).transpose()
    }

    /// Undoes what was written since [`Draft::take_notes`] was last called. Only for a draft that
    /// is [`Draft::for_checks`].
    pub(crate) fn undo_written(&mut self) {
        for Written { row: (table, key), before } in self.take_notes().written.into_iter().rev() {
            let rows = self.changes.entry(table).or_default();
            match before {
                Some(before) => drop(rows.insert(key, before)),
                None => drop(rows.remove(&key)),
            }
        }
    }

    /// Whether this draft is of one block, and so knows the block's proposer.
    pub(crate) const fn commits(&self) -> bool {
        match self.scope {
            Scope::Block | Scope::Simulation => true,
            Scope::Checks { .. } => false,
        }
    }

    /// Whether this draft becomes a block's changes, so that what takes long and changes no answer has
    /// to be done.
    pub(crate) const fn is_of_a_block(&self) -> bool {
        match self.scope {
            Scope::Block => true,
            Scope::Simulation | Scope::Checks { .. } => false,
        }
    }

    /// Whether writes to this table are kept.
    pub(crate) fn keeps(&self, table: TableId) -> bool {
        match self.scope {
            Scope::Block => true,
            Scope::Simulation => !BYTES_OF_BLOBS.contains(&table),
            Scope::Checks { .. } => tables::READ_BY_CHECKS.contains(&table),
        }
    }

    /// What the draft has for a row, if it has changed it.
    pub(crate) fn changed(&self, table: TableId, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.changes.get(&table)?.get(key)
    }

    fn change(&mut self, table: TableId, key: Vec<u8>, value: Option<Vec<u8>>) {
        let rows = self.changes.entry(table).or_default();
        match &mut self.scope {
            Scope::Block | Scope::Simulation => drop(rows.insert(key, value)),
            Scope::Checks { notes } => {
                let before = rows.insert(key.clone(), value);
                notes.written.push(Written { row: (table, key), before });
            }
        }
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
        match self.changed(table, key) {
            Some(changed) => Ok(changed.clone()),
            None => self.base.get_raw(table, key),
        }
    }

    fn contains_raw(&self, table: TableId, key: &[u8]) -> Result<bool, StorageError> {
        match self.changed(table, key) {
            Some(changed) => Ok(changed.is_some()),
            None => self.base.contains_raw(table, key),
        }
    }

    /// Takes time for the rows that it answers and for deleted ones between them, whatever else the
    /// draft has changed.
    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        let Some(changed) = self.changes.get(&table) else {
            return self.base.scan_raw(table, range);
        };
        let above = changed.range(range.from.to_vec()..);
        let inside = above.take_while(|(key, _)| range.to.is_none_or(|to| key.as_slice() < to));
        let mut inside = inside.peekable();
        let (mut rows, mut from, mut limit) = (Vec::new(), range.from.to_vec(), range.limit);
        while rows.len() < range.limit {
            let below = self.base.scan_raw(table, Range { from: &from, to: range.to, limit })?;
            let is_end = below.len() < limit;
            if let Some((last, _)) = below.last() {
                from.clone_from(last);
                from.push(0);
            }
            for (key, value) in below {
                let mut is_changed = false;
                while rows.len() < range.limit
                    && let Some((changed, value)) = inside.next_if(|(it, _)| **it <= key)
                {
                    is_changed = *changed == key;
                    rows.extend(value.clone().map(|value| (changed.clone(), value)));
                }
                if rows.len() >= range.limit {
                    return Ok(rows);
                }
                if !is_changed {
                    rows.push((key, value));
                }
            }
            if is_end {
                let left = range.limit.saturating_sub(rows.len());
                let new = inside.filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
                rows.extend(new.take(left));
                break;
            }
            // Deleted rows were among them: the more, the more are read at once.
            limit = limit.saturating_mul(2);
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::{Account, Address};

    use super::*;
    use crate::memory::Memory;
    use crate::tables::{Accounts, Deadlines};

    type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

    fn put(rows: &Rows) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        rows.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..4_u8, 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_scan_answers_what_the_changed_state_has(
            base in prop::collection::btree_map(key(), Just(vec![1]), 0..40),
            changed in prop::collection::btree_map(key(), prop::option::of(Just(vec![2])), 0..40),
            from in key(),
            to in prop::option::of(key()),
            limit in prop_oneof![0..12_usize, Just(usize::MAX)],
        ) {
            let memory = Memory::default();
            memory.apply(&Changes::from([(Deadlines::ID, put(&base))]));
            let mut draft = Draft::new(Arc::new(memory));
            draft.changes.insert(Deadlines::ID, changed.clone());
            let mut whole = base;
            for (key, value) in changed {
                match value {
                    Some(value) => drop(whole.insert(key, value)),
                    None => drop(whole.remove(&key)),
                }
            }
            let to = to.as_deref();
            let expected: Vec<RawRow> = whole
                .into_iter()
                .filter(|(key, _)| *key >= from && to.is_none_or(|to| key.as_slice() < to))
                .take(limit)
                .collect();
            let range = Range { from: &from, to, limit };
            prop_assert_eq!(draft.scan_raw(Deadlines::ID, range).unwrap(), expected);
        }
    }

    #[test]
    fn a_row_that_the_base_has_got_meanwhile_can_be_deleted() {
        let base = Arc::new(Memory::default());
        let below: Arc<dyn Read> = Arc::<Memory>::clone(&base);
        let mut draft = Draft::for_checks(below);
        let (key, value) = (Address::default(), Account::default());
        draft.insert::<Accounts>(&key, &value);
        let rows = BTreeMap::from([(key.to_bytes(), Some(encode_value::<Accounts>(&value)))]);
        base.apply(&Changes::from([(Accounts::ID, rows)]));
        for written in draft.take_notes().written {
            draft.forget(&written.row);
        }
        draft.delete::<Accounts>(&key);
        assert_eq!(None, draft.get::<Accounts>(&key).unwrap());
    }
}
