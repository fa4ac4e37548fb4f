//! The journal: what the miner is doing, written before it does it.
//!
//! ```text
//! meta     | name          | JSON                     | format version, wallet, chain; sweeps; burns
//! runs     | run id        | JSON of Entry            |
//! open     | run id        |                          | runs whose phase is not over
//! offers   | run id        | JSON of [ToolSpec]       | what the model was offered; of open runs
//! steps    | run id, index | JSON of StepRecord       |
//! outbox   | nonce         | JSON of Parcel           | signed, fate not known
//! days     | day           | JSON of Day              | days since 1970 (UTC)
//! decided  | run id        | JSON of [Noted]          | the last decisions, not synced
//! looked   | time, run id  |                          | when each was decided about last
//! ```
//!
//! Calls of the market have tables of their own (`call_tables.rs`); their transactions are in `outbox`.
//!
//! Every change is in a synced transaction of an embedded database before its future is ready. A
//! thread writes them, those together that wait at the same time. A second process that opens the
//! file is refused.

pub mod call;
mod call_tables;
mod calls;
pub mod entry;
mod error;
mod notes;
mod outbox;
mod owner;
pub mod resume;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use agent::messages::ToolSpec;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, WriteTransaction};
use types::{Address, Hash};
use wallet::ChainIdentity;

use crate::policy::Decision;
use crate::ports::{Counters, Event};
pub use call_tables::COMPARED_KEPT;
use entry::{Burned, Day, Entry, Noted, Parcel, StepRecord, Swept, SweptLast};
pub use error::JournalError;
pub use owner::{FORMAT_VERSION, Owner};
use tables::{DAYS, META, OFFERS, OPEN, OUTBOX, RUNS, Result, STEPS, json, read};
pub use writer::JournalWriter;

/// The row of META with what was sent to the cold address.
const SWEPT: &str = "swept";
/// The row of META with what was burned of the bond on the last day on which something was.
const BURNED: &str = "burned";
const MS_PER_DAY: u64 = 24 * 60 * 60 * 1_000;

/// What [`Journal::why`] tells about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The last decisions, oldest first.
    pub decisions: Vec<Noted>,
    /// How far the work is, if there is any.
    pub entry: Option<Entry>,
}

/// A run's change to the counts of the day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The time, milliseconds since 1970.
    pub now_ms: u64,
    /// What is added to that day.
    pub add: Day,
}

/// The open journal.
#[derive(Debug)]
pub struct Journal {
    database: Arc<Database>,
    writer: JournalWriter,
    /// Who hears how long writing takes.
    counters: OnceLock<Arc<dyn Counters>>,
}

impl Journal {
    /// Opens or makes the journal of a wallet on a chain.
    ///
    /// # Errors
    /// When another process has it open, it is of another wallet, chain or format, or the file
    /// cannot be read.
    pub fn open(path: &Path, miner: Address, chain: &ChainIdentity) -> Result<Self> {
        let database = Database::create(path).map_err(|source| JournalError::open(path, source))?;
        let wanted = Owner::of(miner, chain);
        let write = database.begin_write()?;
        prepare(&write, &wanted)?;
        write.commit()?;
        Self::of(database)
    }

    /// Opens the journal of a wallet as it is, whatever its chain: to read it while no miner works
    /// with it. None if there is none yet.
    ///
    /// # Errors
    /// When another process has it open, it is of another wallet or format, or the file cannot be
    /// read.
    pub fn open_existing(path: &Path, miner: Address) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let database = Database::open(path).map_err(|source| JournalError::open(path, source))?;
        let found = match owner(&database) {
            Ok(found) => found,
            // It died before its first write.
            Err(error) if error.is_missing_table() => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(found) = found else { return Ok(None) };
        let wanted = Owner { format: FORMAT_VERSION, miner, ..found.clone() };
        if found == wanted {
            return Self::of(database).map(Some);
        }
        Err(JournalError::Foreign { found: Box::new(found), wanted: Box::new(wanted) })
    }

    fn of(database: Database) -> Result<Self> {
        let database = Arc::new(database);
        let writer = JournalWriter::start(Arc::clone(&database))?;
        Ok(Self { database, writer, counters: OnceLock::new() })
    }

    /// From now on `counters` hears of every write. Only the first who asks for it does.
    pub fn count_writes(&self, counters: Arc<dyn Counters>) {
        if self.counters.set(counters).is_err() {
            tracing::warn!("the journal's writes are counted already");
        }
    }

    /// A run.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn entry(&self, run: &Hash) -> Result<Option<Entry>> {
        let table = self.database.begin_read()?.open_table(RUNS)?;
        table.get(run.as_bytes())?.map(|row| read(row.value())).transpose()
    }

    /// All runs, in order of their ids.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let table = self.database.begin_read()?.open_table(RUNS)?;
        table.iter()?.map(|row| read(row?.1.value())).collect()
    }

    /// The runs that are not over, in order of their ids.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn open_entries(&self) -> Result<Vec<Entry>> {
        let ids = self.database.begin_read()?.open_table(OPEN)?;
        let mut entries = Vec::new();
        for row in ids.iter()? {
            let id = Hash::new(row?.0.value());
            entries.extend(self.entry(&id)?);
        }
        Ok(entries)
    }

    /// Writes a run down.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn put(&self, entry: &Entry) -> Result<()> {
        let row = Row::of(entry)?;
        self.synced(move |write| row.put(write)).await
    }

    /// What the model of an open run was offered; none if it was not asked yet, or had no tools, or
    /// was asked before this was kept.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn offer(&self, run: &Hash) -> Result<Option<Vec<ToolSpec>>> {
        let table = self.database.begin_read()?.open_table(OFFERS)?;
        table.get(run.as_bytes())?.map(|row| read(row.value())).transpose()
    }

    /// Writes down what the model of an open run is offered.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn put_offer(&self, run: &Hash, tools: &[ToolSpec]) -> Result<()> {
        let (id, bytes) = (*run.as_bytes(), json(&tools)?);
        let change = move |write: &WriteTransaction| {
            write.open_table(OFFERS)?.insert(&id, bytes.as_slice())?;
            Ok(())
        };
        self.synced(change).await
    }

    /// A step of a run.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn step(&self, run: &Hash, index: u64) -> Result<Option<StepRecord>> {
        let table = self.database.begin_read()?.open_table(STEPS)?;
        table.get((*run.as_bytes(), index))?.map(|row| read(row.value())).transpose()
    }

    /// The steps of a run, in their order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn steps(&self, run: &Hash) -> Result<Vec<StepRecord>> {
        let table = self.database.begin_read()?.open_table(STEPS)?;
        let id = *run.as_bytes();
        table.range((id, 0)..=(id, u64::MAX))?.map(|row| read(row?.1.value())).collect()
    }

    /// Writes a step down.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn put_step(&self, run: &Hash, index: u64, step: &StepRecord) -> Result<()> {
        let bytes = json(step)?;
        let key = (*run.as_bytes(), index);
        let change = move |write: &WriteTransaction| {
            write.open_table(STEPS)?.insert(key, bytes.as_slice())?;
            Ok(())
        };
        self.synced(change).await
    }

    /// Writes down that a transaction is signed, with the phase that says so if it is of a run.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn sign(&self, entry: Option<&Entry>, parcel: &Parcel) -> Result<()> {
        let row = entry.map(Row::of).transpose()?;
        let (nonce, bytes) = (parcel.nonce, json(parcel)?);
        let change = move |write: &WriteTransaction| {
            if let Some(row) = &row {
                row.put(write)?;
            }
            write.open_table(OUTBOX)?.insert(nonce, bytes.as_slice())?;
            Ok(())
        };
        self.synced(change).await
    }

    /// Writes down that a transfer to the cold address is signed.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn sign_sweep(&self, parcel: &Parcel, now_ms: u64) -> Result<()> {
        let (nonce, bytes) = (parcel.nonce, json(parcel)?);
        let change = move |write: &WriteTransaction| {
            write.open_table(OUTBOX)?.insert(nonce, bytes.as_slice())?;
            change_swept(write, |swept| (swept.signed_ms, swept.last) = (now_ms, None))
        };
        self.synced(change).await
    }

    /// Writes down what became of a transfer to the cold address.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn resolve_sweep(&self, nonce: u64, last: SweptLast) -> Result<()> {
        let change = move |write: &WriteTransaction| {
            write.open_table(OUTBOX)?.remove(nonce)?;
            change_swept(write, |swept| {
                if let SweptLast::Included { micro, .. } = last {
                    swept.times = swept.times.saturating_add(1);
                    swept.total_micro = swept.total_micro.saturating_add(micro);
                }
                swept.last = Some(last);
            })
        };
        self.synced(change).await
    }

    /// What was sent to the cold address.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn swept(&self) -> Result<Swept> {
        let table = self.database.begin_read()?.open_table(META)?;
        let row = table.get(SWEPT)?;
        row.map_or_else(|| Ok(Swept::default()), |row| read(row.value()))
    }

    /// Writes down that the fate of a transaction is known, and what follows from it.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn resolve(&self, entry: Option<&Entry>, nonce: u64, spent: Spent) -> Result<()> {
        let row = entry.map(Row::of).transpose()?;
        let change = move |write: &WriteTransaction| {
            if let Some(row) = &row {
                row.put(write)?;
            }
            write.open_table(OUTBOX)?.remove(nonce)?;
            add_to_day(write, spent)
        };
        self.synced(change).await
    }

    /// The counts of the day that `now_ms` is in.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn day(&self, now_ms: u64) -> Result<Day> {
        let table = self.database.begin_read()?.open_table(DAYS)?;
        let row = table.get(now_ms / MS_PER_DAY)?;
        row.map_or_else(|| Ok(Day::default()), |row| read(row.value()))
    }

    /// What was burned of the bond on the day that `now_ms` is in, as far as a miner saw it, micro-OMBRA.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn burned_micro(&self, now_ms: u64) -> Result<u64> {
        let table = self.database.begin_read()?.open_table(META)?;
        let row = table.get(BURNED)?.map(|row| read::<Burned>(row.value())).transpose()?;
        Ok(row.unwrap_or_default().on(now_ms / MS_PER_DAY))
    }

    /// Writes down that so much of the bond was burned.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is.
    pub async fn burn(&self, now_ms: u64, micro: u64) -> Result<()> {
        let change = move |write: &WriteTransaction| {
            let mut meta = write.open_table(META)?;
            let row = meta.get(BURNED)?.map(|row| read::<Burned>(row.value())).transpose()?;
            let day = now_ms / MS_PER_DAY;
            let micro = row.unwrap_or_default().on(day).saturating_add(micro);
            meta.insert(BURNED, json(&Burned { day, micro })?.as_slice())?;
            Ok(())
        };
        self.synced(change).await
    }

    /// Notes a decision. A decision that repeats the last one only counts; notes are not synced, and
    /// the last of them may be lost in a crash.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn note(&self, run: &Hash, decision: &Decision, now_ms: u64) -> Result<()> {
        let (run, decision) = (*run, decision.clone());
        let change = move |write: &WriteTransaction| notes::note(write, &run, decision, now_ms);
        self.writer.write(Durability::None, change).await
    }

    /// What was decided about a run, and how far the work on it is.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn why(&self, run: &Hash) -> Result<Why> {
        let decisions = notes::of(&self.database.begin_read()?, run)?;
        Ok(Why { decisions, entry: self.entry(run)? })
    }

    /// One change, synced before this is ready.
    async fn synced(
        &self,
        change: impl FnOnce(&WriteTransaction) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let began = Instant::now();
        self.writer.write(Durability::Immediate, change).await?;
        if let Some(counters) = self.counters.get() {
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            counters.count(Event::Written { micros });
        }
        Ok(())
    }
}

fn owner(database: &Database) -> Result<Option<Owner>> {
    let table = database.begin_read()?.open_table(META)?;
    table.get("owner")?.map(|row| read(row.value())).transpose()
}

/// Makes the tables of a new journal; checks whose an old one is.
fn prepare(write: &WriteTransaction, wanted: &Owner) -> Result<()> {
    write.open_table(RUNS)?;
    write.open_table(OPEN)?;
    write.open_table(OFFERS)?;
    write.open_table(STEPS)?;
    write.open_table(OUTBOX)?;
    write.open_table(DAYS)?;
    notes::prepare(write)?;
    call_tables::prepare(write)?;
    let mut meta = write.open_table(META)?;
    let found = meta.get("owner")?.map(|row| read::<Owner>(row.value())).transpose()?;
    match found {
        Some(found) if found == *wanted => (),
        Some(found) if !found.serves(wanted) => {
            return Err(JournalError::Foreign {
                found: Box::new(found),
                wanted: Box::new(wanted.clone()),
            });
        }
        None | Some(_) => drop(meta.insert("owner", json(wanted)?.as_slice())?),
    }
    Ok(())
}

/// A run as it is written.
struct Row {
    id: [u8; 32],
    bytes: Vec<u8>,
    is_over: bool,
}

impl Row {
    fn of(entry: &Entry) -> Result<Self> {
        let (id, is_over) = (*entry.run.id.as_bytes(), entry.is_over());
        Ok(Self { id, bytes: json(entry)?, is_over })
    }

    fn put(&self, write: &WriteTransaction) -> Result<()> {
        write.open_table(RUNS)?.insert(&self.id, self.bytes.as_slice())?;
        let mut open = write.open_table(OPEN)?;
        if self.is_over {
            open.remove(&self.id)?;
            write.open_table(OFFERS)?.remove(&self.id)?;
        } else {
            open.insert(&self.id, ())?;
        }
        Ok(())
    }
}

fn change_swept(write: &WriteTransaction, change: impl FnOnce(&mut Swept)) -> Result<()> {
    let mut meta = write.open_table(META)?;
    let before: Option<Swept> = meta.get(SWEPT)?.map(|row| read(row.value())).transpose()?;
    let mut swept = before.unwrap_or_default();
    change(&mut swept);
    meta.insert(SWEPT, json(&swept)?.as_slice())?;
    Ok(())
}

fn add_to_day(write: &WriteTransaction, spent: Spent) -> Result<()> {
    let number = spent.now_ms / MS_PER_DAY;
    let mut days = write.open_table(DAYS)?;
    let before: Option<Day> = days.get(number)?.map(|row| read(row.value())).transpose()?;
    let Day { claims, lost, spent_micro } = before.unwrap_or_default();
    let after = Day {
        claims: claims.saturating_add(spent.add.claims),
        lost: lost.saturating_add(spent.add.lost),
        spent_micro: spent_micro.saturating_add(spent.add.spent_micro),
    };
    days.insert(number, json(&after)?.as_slice())?;
    Ok(())
}
