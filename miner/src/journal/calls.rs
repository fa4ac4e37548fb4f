//! Calls in the journal.

use std::collections::BTreeMap;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};
use types::Hash;
use types::agent::ExecutorId;

use redb::ReadableDatabase;

use super::Journal;
use super::call::{CallEntry, Compared, Paused, Served};
use super::call_tables::{CALLS, COMPARED, COMPARED_KEPT, OPEN_CALLS, PAUSED};
use super::entry::Parcel;
use super::tables::{META, OUTBOX, Result, json, read};

/// The row of META with the sums.
const SERVED: &str = "served";

/// A call as it is written.
struct Row {
    entry: CallEntry,
    bytes: Vec<u8>,
}

impl Row {
    fn of(entry: &CallEntry) -> Result<Self> {
        Ok(Self { entry: entry.clone(), bytes: json(entry)? })
    }

    fn put(&self, write: &WriteTransaction) -> Result<()> {
        let key = (*self.entry.call.as_bytes(), self.entry.round);
        let mut calls = write.open_table(CALLS)?;
        let before: Option<CallEntry> = calls.get(key)?.map(|row| read(row.value())).transpose()?;
        calls.insert(key, self.bytes.as_slice())?;
        let mut open = write.open_table(OPEN_CALLS)?;
        if self.entry.is_over() {
            open.remove(key)?;
        } else {
            open.insert(key, ())?;
        }
        let mut meta = write.open_table(META)?;
        let sums: Option<Served> = meta.get(SERVED)?.map(|row| read(row.value())).transpose()?;
        let sums = sums.unwrap_or_default().after(before.as_ref(), &self.entry);
        meta.insert(SERVED, json(&sums)?.as_slice())?;
        Ok(())
    }
}

/// What a table tells; what an empty one does where an older version made the journal.
fn there<T: Default>(answer: Result<T>) -> Result<T> {
    match answer {
        Err(error) if error.is_missing_table() => Ok(T::default()),
        answer => answer,
    }
}

impl Journal {
    /// A call, for a round.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn call(&self, call: &Hash, round: u8) -> Result<Option<CallEntry>> {
        there(call_in(&self.database.begin_read()?, call, round))
    }

    /// A call for each round for which this miner was drawn, which is one as the rules are.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn rounds_of(&self, call: &Hash) -> Result<Vec<CallEntry>> {
        let rounds = [0, 1].map(|round| self.call(call, round));
        rounds.into_iter().filter_map(Result::transpose).collect()
    }

    /// All calls, in order of their ids.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn calls(&self) -> Result<Vec<CallEntry>> {
        let all = || -> Result<Vec<CallEntry>> {
            let table = self.database.begin_read()?.open_table(CALLS)?;
            table.iter()?.map(|row| read(row?.1.value())).collect()
        };
        there(all())
    }

    /// The calls that are not over, in order of their ids.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn open_calls(&self) -> Result<Vec<CallEntry>> {
        let all = || -> Result<Vec<CallEntry>> {
            let tables = self.database.begin_read()?;
            let mut entries = Vec::new();
            for row in tables.open_table(OPEN_CALLS)?.iter()? {
                let (call, round) = row?.0.value();
                entries.extend(call_in(&tables, &Hash::new(call), round)?);
            }
            Ok(entries)
        };
        there(all())
    }

    /// What became of all calls.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn served(&self) -> Result<Served> {
        let table = self.database.begin_read()?.open_table(META)?;
        let row = table.get(SERVED)?;
        row.map_or_else(|| Ok(Served::default()), |row| read(row.value()))
    }

    /// Writes a call down.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn put_call(&self, entry: &CallEntry) -> Result<()> {
        let row = Row::of(entry)?;
        self.synced(move |write| row.put(write)).await
    }

    /// Writes down that a transaction of a call is signed, with the phase that says so.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn sign_call(&self, entry: &CallEntry, parcel: &Parcel) -> Result<()> {
        let row = Row::of(entry)?;
        let (nonce, bytes) = (parcel.nonce, json(parcel)?);
        let change = move |write: &WriteTransaction| {
            row.put(write)?;
            write.open_table(OUTBOX)?.insert(nonce, bytes.as_slice())?;
            Ok(())
        };
        self.synced(change).await
    }

    /// Writes down that the fate of a transaction of a call is known, and what follows from it.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn resolve_call(&self, entry: &CallEntry, nonce: u64) -> Result<()> {
        let row = Row::of(entry)?;
        let change = move |write: &WriteTransaction| {
            row.put(write)?;
            write.open_table(OUTBOX)?.remove(nonce)?;
            Ok(())
        };
        self.synced(change).await
    }

    /// Writes a call down whose answer was compared with those of others, and remembers that for its
    /// executor. An appeal may compare it again; the last time counts. Gives how many of the last
    /// [`COMPARED_KEPT`] answers of the executor were not those that stand.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn put_compared(
        &self,
        entry: &CallEntry,
        executor: &ExecutorId,
        agreed: bool,
    ) -> Result<usize> {
        let row = Row::of(entry)?;
        let name = executor.to_string();
        let compared = Compared { call: entry.call, round: entry.round, agreed };
        let change = move |write: &WriteTransaction| {
            row.put(write)?;
            let mut table = write.open_table(COMPARED)?;
            let before = table.get(name.as_str())?.map(|row| read(row.value())).transpose()?;
            let mut last: Vec<Compared> = before.unwrap_or_default();
            last.retain(|it| (it.call, it.round) != (compared.call, compared.round));
            last.push(compared);
            let excess = last.len().saturating_sub(COMPARED_KEPT);
            last.drain(..excess);
            table.insert(name.as_str(), json(&last)?.as_slice())?;
            Ok(())
        };
        self.synced(change).await?;
        Ok(self.compared(executor)?.iter().filter(|it| !it.agreed).count())
    }

    /// The last answers of an executor that were compared, newest last.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn compared(&self, executor: &ExecutorId) -> Result<Vec<Compared>> {
        let all = || -> Result<Vec<Compared>> {
            let table = self.database.begin_read()?.open_table(COMPARED)?;
            let row = table.get(executor.to_string().as_str())?;
            row.map_or_else(|| Ok(Vec::new()), |row| read(row.value()))
        };
        there(all())
    }

    /// Writes down that an executor is not offered until somebody resumes it. If it was not offered
    /// before, the first reason stays.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn pause_offers(&self, executor: &ExecutorId, paused: &Paused) -> Result<()> {
        let (name, bytes) = (executor.to_string(), json(paused)?);
        let change = move |write: &WriteTransaction| {
            let mut table = write.open_table(PAUSED)?;
            if table.get(name.as_str())?.is_none() {
                table.insert(name.as_str(), bytes.as_slice())?;
            }
            Ok(())
        };
        self.synced(change).await
    }

    /// The executors that are not offered after dissents.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn paused(&self) -> Result<BTreeMap<String, Paused>> {
        let all = || -> Result<BTreeMap<String, Paused>> {
            let table = self.database.begin_read()?.open_table(PAUSED)?;
            let one = |row: std::result::Result<_, redb::StorageError>| {
                let (name, paused): (redb::AccessGuard<'_, &str>, redb::AccessGuard<'_, &[u8]>) =
                    row?;
                Ok((name.value().to_owned(), read(paused.value())?))
            };
            table.iter()?.map(one).collect()
        };
        there(all())
    }

    /// Offers an executor again, and forgets the answers of it that were compared; whether it was paused.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn resume_offers(&self, executor: &ExecutorId) -> Result<bool> {
        let name = executor.to_string();
        let was_paused = self.paused()?.contains_key(&name);
        if was_paused {
            let change = move |write: &WriteTransaction| {
                write.open_table(PAUSED)?.remove(name.as_str())?;
                write.open_table(COMPARED)?.remove(name.as_str())?;
                Ok(())
            };
            self.synced(change).await?;
        }
        Ok(was_paused)
    }
}

fn call_in(tables: &ReadTransaction, call: &Hash, round: u8) -> Result<Option<CallEntry>> {
    let table = tables.open_table(CALLS)?;
    table.get((*call.as_bytes(), round))?.map(|row| read(row.value())).transpose()
}
